//! Owners and owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::{Metadata, Resource};
use pintle_apimachinery::Str;
use pintle_client::Object;
use pintle_informer::{Cached, SharedInformer};

/// The index of objects by the uid of the owner that controls them; see [`index_by_controller`].
pub(crate) const BY_CONTROLLER: &str = "controllerUID";

/// The reference of an object to the owner that controls it.
pub(crate) fn controller_ref<K: Object + Resource>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::API_VERSION.to_owned(),
        kind: K::KIND.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The reference to the owner that controls an object.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the object is controlled by the owner of this uid.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|owner| owner.uid == uid)
}

/// The value of [`BY_CONTROLLER`] for the objects of a namespace that nobody controls.
pub(crate) fn orphans_of(namespace: &str) -> Str {
    compact_str::format_compact!("/{namespace}")
}

/// Adds the index [`BY_CONTROLLER`] to an informer.
pub(crate) fn index_by_controller<K: Object + Metadata>(informer: &SharedInformer<K>) {
    informer.add_index(BY_CONTROLLER, |object: &Cached<K>| {
        vec![object.controller_ref().map_or_else(|| orphans_of(object.namespace()), |owner| Str::new(&owner.uid))]
    });
}
