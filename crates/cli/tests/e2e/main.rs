//! The binary, driven over real sockets: by hand-written requests, by signals, by kubectl and by the client libraries that
//! people use. One test binary, so that it is linked once.
#![expect(clippy::panic, reason = "a test fails so, also where it asks others to look")]
#![expect(clippy::disallowed_methods, reason = "these tests wait for other processes, whose time cannot be paused")]

mod durability;
mod foreign_clients;
mod http;
mod kube_rs;
mod kubectl;
mod list_watch;
mod process;
mod server;
mod tools;
