//! Informers with several handlers over one cache, and a factory that makes one for each kind.

mod factory;
mod informer;
mod listener;

pub use factory::SharedInformerFactory;
pub use informer::{NOTIFICATIONS_MAX, SharedInformer, SharedInformerOptions};
pub use listener::Registration;
