//! The reflector: keeps a [`Store`] equal to what a server has.

mod run;
mod step;

pub use run::{Reflector, ReflectorConfig, WatchErrorHandler};
pub use step::{Do, Failure, Input, Machine, Phase, Step, StoreAction};
