//! Caches that follow a Kubernetes server, and what controllers are made of: client-go's list-watch machinery in Rust.
//!
//! * [`SharedInformer`] keeps a cache of one kind of objects and tells its handlers of every change;
//!   [`SharedInformerFactory`] has one for each kind.
//! * [`Lister`](store::Lister) reads the cache. What it gives are [`Cached`] objects, decoded when touched.
//! * [`WorkQueue`](workqueue::WorkQueue) collects what is to be done; [`run_workers`](workqueue::run_workers) does it.
//!
//! * [`expectations`], [`record`] (events) and [`leader_election`] are what else a controller needs.
//!
//! Underneath, each usable by itself: [`ListWatch`], the [`reflector`], the queues of [`fifo`], the caches of
//! [`store`], and [`Controller`].

pub mod backoff;
mod cached;
mod controller;
pub mod expectations;
pub mod fifo;
pub mod handler;
mod head;
pub mod leader_election;
mod lister_watcher;
mod object_name;
pub mod record;
pub mod reflector;
mod shared;
pub mod store;
pub mod testing;
pub mod workqueue;

pub use cached::{Cached, DecodeError, NotAnObject, OwnerRef};
pub use controller::{Controller, ProcessFunc, new_informer};
pub use fifo::Deleted;
pub use handler::{ResourceEventHandler, ResourceEventHandlerFuncs};
pub use lister_watcher::{ListWatch, ListerWatcher, OnItem, TransformFunc, transform};
pub use object_name::{KeyError, ObjectName};
pub use shared::{NOTIFICATIONS_MAX, Registration, SharedInformer, SharedInformerFactory, SharedInformerOptions};
pub use store::{Indexer, Lister};

pub use tokio_util::sync::CancellationToken;
