//! One generic store for every resource: strategy, admission, storage, subresources. Knows kinds; knows neither HTTP nor
//! a back end.

pub mod admit;
mod allocate;
pub mod call;
pub mod create;
pub mod custom;
pub mod decode;
pub mod delete;
pub mod errors;
pub mod fields;
pub mod head;
pub mod options;
mod ownership;
pub mod read;
pub mod resource;
pub mod select;
mod token;
pub mod update;
pub mod watch;

pub use call::{Call, MayAlwaysCreate, MayCreate, World};
pub use create::{Answer, Written};
pub use delete::Deleted;
pub use head::Head;
pub use options::{Caller, DeleteOptions, ListOptions, Warnings, WriteOptions};
pub use read::Listed;
pub use resource::{Resource, Store};
pub use watch::{EventKind, Watch, WatchEvent};
