//! The API that every node's agent has, for all simulated nodes on one port: logs, `exec`, `attach`, forwarded ports.

mod channels;
mod exec;
mod logs;
mod port_forward;
mod serve;
mod spdy;
mod streams;
mod websocket;

pub(crate) use serve::Kubelet;
