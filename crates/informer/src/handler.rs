//! Who hears of changes: [`ResourceEventHandler`] and the usual ways to make one.

use crate::fifo::Deleted;
use crate::store::Item;
use crate::workqueue::{QueueItem, WorkQueue};
use crate::{Cached, ObjectName};
use pintle_client::Object;

/// Hears of the changes in a cache.
///
/// The calls of one handler come one after the other; those about one object come in the order of its states. What a
/// handler gets is shared and never changes. A handler must be quick: it usually puts a name into a
/// [`WorkQueue`](crate::workqueue::WorkQueue) and leaves the work to others.
///
/// What a handler may assume of the calls about one name: an add comes first or after a delete, updates and a delete
/// come after an add. What it may not: that it hears of every state (some are skipped), that an update is about the
/// same object (compare the uids: it may have been deleted and made again in between), that an update is a change (a
/// resync has equal versions), or any order between different objects.
pub trait ResourceEventHandler<T>: Send + Sync + 'static {
    /// The object is new in the cache. `is_in_initial_list` tells those that were there when the cache, or the
    /// handler, began.
    fn on_add(&self, object: &T, is_in_initial_list: bool);

    /// The object is another one now, or is shown again (a resync: equal versions).
    fn on_update(&self, old: &T, new: &T);

    /// The object is gone. It is as it was when it went, unless that was missed: then it is the last state known.
    fn on_delete(&self, deleted: &Deleted<T>);
}

type OnAdd<T> = Box<dyn Fn(&T, bool) + Send + Sync>;
type OnUpdate<T> = Box<dyn Fn(&T, &T) + Send + Sync>;
type OnDelete<T> = Box<dyn Fn(&Deleted<T>) + Send + Sync>;

/// A handler made of closures; those that are missing do nothing.
pub struct ResourceEventHandlerFuncs<T> {
    add: Option<OnAdd<T>>,
    update: Option<OnUpdate<T>>,
    delete: Option<OnDelete<T>>,
}

impl<T> std::fmt::Debug for ResourceEventHandlerFuncs<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResourceEventHandlerFuncs(..)")
    }
}

impl<T> Default for ResourceEventHandlerFuncs<T> {
    fn default() -> ResourceEventHandlerFuncs<T> {
        ResourceEventHandlerFuncs { add: None, update: None, delete: None }
    }
}

impl<T> ResourceEventHandlerFuncs<T> {
    /// A handler that does nothing yet.
    pub fn new() -> ResourceEventHandlerFuncs<T> {
        ResourceEventHandlerFuncs::default()
    }

    /// On a new object.
    #[must_use]
    pub fn on_add(mut self, f: impl Fn(&T) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(move |object, _| f(object)));
        self
    }

    /// On a new object, told whether it was there at the beginning.
    #[must_use]
    pub fn on_add_detailed(mut self, f: impl Fn(&T, bool) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(f));
        self
    }

    /// On a change, with the object before and after.
    #[must_use]
    pub fn on_update(mut self, f: impl Fn(&T, &T) + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(f));
        self
    }

    /// On a deletion.
    #[must_use]
    pub fn on_delete(mut self, f: impl Fn(&Deleted<T>) + Send + Sync + 'static) -> Self {
        self.delete = Some(Box::new(f));
        self
    }
}

impl<T: 'static> ResourceEventHandler<T> for ResourceEventHandlerFuncs<T> {
    fn on_add(&self, object: &T, is_in_initial_list: bool) {
        if let Some(add) = &self.add {
            add(object, is_in_initial_list);
        }
    }

    fn on_update(&self, old: &T, new: &T) {
        if let Some(update) = &self.update {
            update(old, new);
        }
    }

    fn on_delete(&self, deleted: &Deleted<T>) {
        if let Some(delete) = &self.delete {
            delete(deleted);
        }
    }
}

/// Passes on only what is about objects that `filter` wants. An object that begins to be wanted is added, one that
/// ceases to be is deleted.
#[derive(Debug)]
pub struct FilteringResourceEventHandler<F, H> {
    /// Which objects.
    pub filter: F,
    /// Who hears of them.
    pub handler: H,
}

impl<T, F, H> ResourceEventHandler<T> for FilteringResourceEventHandler<F, H>
where
    T: Clone,
    F: Fn(&T) -> bool + Send + Sync + 'static,
    H: ResourceEventHandler<T>,
{
    fn on_add(&self, object: &T, is_in_initial_list: bool) {
        if (self.filter)(object) {
            self.handler.on_add(object, is_in_initial_list);
        }
    }

    fn on_update(&self, old: &T, new: &T) {
        match ((self.filter)(old), (self.filter)(new)) {
            (true, true) => self.handler.on_update(old, new),
            (false, true) => self.handler.on_add(new, false),
            (true, false) => self.handler.on_delete(&Deleted::Final(old.clone())),
            (false, false) => {}
        }
    }

    fn on_delete(&self, deleted: &Deleted<T>) {
        if (self.filter)(deleted.object()) {
            self.handler.on_delete(deleted);
        }
    }
}

/// Calls `f` with every object that is new, has changed (before and after) or is gone.
struct EachObject<F>(F);

impl<T, F> ResourceEventHandler<T> for EachObject<F>
where
    T: Item,
    F: Fn(&T) + Send + Sync + 'static,
{
    fn on_add(&self, object: &T, _is_in_initial_list: bool) {
        (self.0)(object);
    }

    fn on_update(&self, old: &T, new: &T) {
        // the old object may lead to somebody else who must know: a former owner, say
        (self.0)(old);
        (self.0)(new);
    }

    fn on_delete(&self, deleted: &Deleted<T>) {
        (self.0)(deleted.object());
    }
}

/// Puts the name of every object that changes into `queue`.
pub fn enqueue<T: Item>(queue: &WorkQueue<ObjectName>) -> impl ResourceEventHandler<T> + use<T> {
    enqueue_by(queue, |object: &T| Some(object.object_name()))
}

/// Puts what `items` makes of every object that changes into `queue`; of a change, both of the object before and of
/// the object after.
pub fn enqueue_by<T, Q, I, F>(queue: &WorkQueue<Q>, items: F) -> impl ResourceEventHandler<T> + use<T, Q, I, F>
where
    T: Item,
    Q: QueueItem,
    F: Fn(&T) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = Q>,
{
    let queue = queue.clone();
    EachObject(move |object: &T| {
        for item in items(object) {
            queue.add(item);
        }
    })
}

/// Puts the name of the owner of every object that changes into `queue`, if the owner controls the object and is of
/// this kind.
pub fn enqueue_owner<K: Object>(
    queue: &WorkQueue<ObjectName>,
    kind: &str,
) -> impl ResourceEventHandler<Cached<K>> + use<K> {
    let kind = kind.to_owned();
    enqueue_by(queue, move |object: &Cached<K>| {
        let owner = object.controller_ref().filter(|owner| owner.kind == kind)?;
        Some(ObjectName::new(object.namespace(), &owner.name))
    })
}
