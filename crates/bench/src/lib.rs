//! A load generator that says how fast an API server really is.
//!
//! It drives any Kubernetes API server through HTTP/2 connections, as clients do, and shares the machine with it: so it
//! is light (requests are bytes made beforehand, answers are counted, events are scanned) and says what itself cost.
//! Two servers are measured in turns, so that what else happens on the machine meets both.
//!
//! Not here: what the numbers were, and what they taught (`docs/performance.md`).

mod bodies;
mod drive;
mod histogram;
mod lab;
mod link;
mod options;
mod plot;
mod process;
mod progress;
mod random;
mod report;
mod run;
mod scenario;
mod server;
mod tally;
mod watchers;

pub use options::{BenchFlags, LoadFlags};
pub use run::run;
