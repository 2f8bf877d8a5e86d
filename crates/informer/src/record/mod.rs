//! Events: what a controller tells people about an object (`kubectl describe` shows them).
//!
//! An [`EventRecorder`] makes events and never waits; an [`EventBroadcaster`] carries them to a server, where the
//! [`EventCorrelator`] keeps a stuck controller from filling it: repeated events become a count, many similar ones
//! become one, and an object gets a burst of 25 and then one every five minutes.
//!
//! Follows: client-go tools/record (v0.35).

mod broadcaster;
mod correlator;
mod recorder;

pub use broadcaster::{EventBroadcaster, QUEUED_EVENTS_MAX, TRIES_PER_EVENT_MAX};
pub use correlator::{Correlated, CorrelatorOptions, EventCorrelator};
pub use recorder::{EventRecorder, EventType, FakeRecorder, Recorder, reference};
