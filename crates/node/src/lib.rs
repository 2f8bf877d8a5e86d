//! Simulated nodes: they register, heartbeat, and carry pods through their phases.
//!
//! [`Nodes::start`] runs any number of them in one process. To a server each looks like a kubelet: a Node object with
//! status and conditions, a Lease that is renewed, pods that go from `Pending` through `ContainerCreating` to `Running`
//! and, when their containers end, to `Succeeded` or `Failed`. Containers are not run: [`program`] tells from their
//! command how long they would run, how they would end and what they would print, and annotations may say otherwise.
//!
//! Written against the client toolkit alone, so that it works with any Kubernetes server.

mod heartbeat;
mod identity;
mod kubelet;
mod nodes;
mod objects;
mod pod;
mod pods;
mod profile;
pub mod program;
pub mod shell;

pub use identity::{Identity, NODES_MAX};
pub use nodes::{AgentsEndpoint, Nodes, NodesOptions, StartError};
pub use profile::{PODS_MAX, Profile};
