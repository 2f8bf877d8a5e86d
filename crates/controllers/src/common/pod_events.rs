//! What a change of a pod means for the workloads that control pods.

use super::owner::BY_CONTROLLER;
use k8s_openapi::api::core::v1::Pod;
use pintle_apimachinery::labels::Selector;
use pintle_client::Object;
use pintle_informer::expectations::UidTrackingControllerExpectations;
use pintle_informer::workqueue::WorkQueue;
use pintle_informer::{Cached, Deleted, Lister, ObjectName, OwnerRef, ResourceEventHandler};

/// Finds the owner of each pod that changes, counts what was expected, and puts the owner into the queue. A pod without
/// an owner goes to whoever may adopt it.
pub(crate) struct PodEvents<O: Object> {
    /// The owners' kind.
    pub(crate) kind: &'static str,
    /// The owners.
    pub(crate) owners: Lister<Cached<O>>,
    /// Where the names of owners go.
    pub(crate) queue: WorkQueue<ObjectName>,
    /// The selector of an owner's pods; `None` when the owner adopts none.
    pub(crate) selector: fn(&O) -> Option<Selector>,
    /// What the owners expect to see.
    pub(crate) expectations: UidTrackingControllerExpectations,
}

impl<O: Object> PodEvents<O> {
    /// The owner that a reference means, if it is of the kind and still the same object.
    fn resolve(&self, namespace: &str, owner: &OwnerRef<'_>) -> Option<ObjectName> {
        if owner.kind != self.kind {
            return None;
        }
        let name = ObjectName::new(namespace, &owner.name);
        let found = self.owners.get_by_key(&name)?;
        (found.uid() == owner.uid).then_some(name)
    }

    fn owner_of(&self, pod: &Cached<Pod>) -> Option<ObjectName> {
        self.resolve(pod.namespace(), &pod.controller_ref()?)
    }

    /// Those that may adopt a pod without an owner.
    fn enqueue_adopters(&self, pod: &Cached<Pod>) {
        for owner in self.owners.namespace(pod.namespace()).list() {
            let selector = owner.object().ok().and_then(|owner| (self.selector)(&owner));
            if selector.is_some_and(|selector| !selector.is_everything() && selector.matches(pod)) {
                self.queue.add(owner.object_name());
            }
        }
    }

    fn on_gone(&self, pod: &Cached<Pod>) {
        if let Some(owner) = self.owner_of(pod) {
            self.expectations.deletion_observed(&owner, pod.uid());
            self.queue.add(owner);
        }
    }
}

impl<O: Object> ResourceEventHandler<Cached<Pod>> for PodEvents<O> {
    fn on_add(&self, pod: &Cached<Pod>, _is_in_initial_list: bool) {
        // when a program starts again it may see a pod for the first time while it goes away
        if pod.is_terminating() {
            return self.on_gone(pod);
        }
        match pod.controller_ref() {
            Some(owner) => {
                if let Some(name) = self.resolve(pod.namespace(), &owner) {
                    self.expectations.creation_observed(&name);
                    self.queue.add(name);
                }
            }
            None => self.enqueue_adopters(pod),
        }
    }

    fn on_update(&self, old: &Cached<Pod>, new: &Cached<Pod>) {
        if old.resource_version() == new.resource_version() && old.uid() == new.uid() {
            return;
        }
        if new.is_terminating() {
            // as good as gone: its replacement does not wait for its end
            self.on_gone(new);
            if old.controller_ref() != new.controller_ref() {
                self.on_gone(old);
            }
            return;
        }
        if old.controller_ref() != new.controller_ref()
            && let Some(owner) = self.owner_of(old)
        {
            self.queue.add(owner);
        }
        match new.controller_ref() {
            Some(owner) => self.queue_owner(new.namespace(), &owner),
            None => self.enqueue_adopters(new),
        }
    }

    fn on_delete(&self, deleted: &Deleted<Cached<Pod>>) {
        self.on_gone(deleted.object());
    }
}

impl<O: Object> PodEvents<O> {
    fn queue_owner(&self, namespace: &str, owner: &OwnerRef<'_>) {
        if let Some(name) = self.resolve(namespace, owner) {
            self.queue.add(name);
        }
    }
}

/// The pods that an owner controls, and those of its namespace that nobody controls.
pub(crate) fn pods_around(pods: &Lister<Cached<Pod>>, namespace: &str, uid: &str) -> Vec<Cached<Pod>> {
    let of = |value: &str| pods.by_index(BY_CONTROLLER, value).unwrap_or_default();
    let mut found = of(uid);
    found.extend(of(&super::owner::orphans_of(namespace)));
    found
}
