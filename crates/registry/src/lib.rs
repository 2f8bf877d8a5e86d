//! One generic store for every resource: strategy, admission, storage, subresources. Knows kinds; knows neither HTTP nor
//! a back end.

pub mod admit;
pub mod allocate;
pub mod bootstrap;
pub mod call;
pub mod catalog;
mod conversion;
pub mod create;
pub mod custom;
pub mod decode;
pub mod definitions;
pub mod delete;
pub mod errors;
pub mod feed;
pub mod fields;
pub mod flow_schemas;
mod foreign;
pub mod forms;
pub mod head;
pub mod identity;
pub mod lookup;
mod modify;
pub mod options;
mod ownership;
pub mod patch;
pub mod quota;
pub mod read;
pub mod resource;
pub mod select;
pub mod sub;
pub mod tables;
mod token;
pub mod transient;
mod unserved;
pub mod update;
pub mod watch;

pub use call::{Call, MayAlwaysCreate, MayCreate, World};
pub use catalog::{Catalog, Served, StorageFactory};
pub use create::{Answer, Written};
pub use delete::Deleted;
pub use head::Head;
pub use options::{Caller, DeleteOptions, ListOptions, Warnings, WriteOptions};
pub use read::Listed;
pub use resource::{Resource, Store};
pub use watch::{EventKind, Watch, WatchEvent};
