//! The built-in control loops: what kube-controller-manager does, on Pintle's own client toolkit.
//!
//! [`Controllers::start`] starts the loops that [`Options`] enable, over any client; [`run_all`] also waits for their
//! end. Each loop has the same shape: informers feed a work queue with names, workers take names out, look at the
//! caches, **decide** in a pure function what is to be done (the `plan` modules, tested without a server), and do it.
//!
//! Follows: kubernetes/pkg/controller (v1.35): conditions, reasons, messages, events, order and limits are upstream's.
//! Differs: what upstream polls for (discovery, resyncs) is watched for, so that idle loops do nothing.
//!
//! Not here: the scheduler (`pintle-scheduler`) and nodes (`pintle-node`).

mod clusterrole_aggregation;
mod common;
mod context;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod garbagecollector;
mod job;
mod namespace;
mod podgc;
mod replicaset;
mod root_ca;
mod selection;
mod serviceaccount;
mod start;
mod statefulset;
mod ttl_after_finished;
mod volume_protection;

pub use context::{Context, Options};
pub use selection::{ControllerSelection, UnknownController};
pub use start::{Controllers, names, run_all};
