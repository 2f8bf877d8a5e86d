//! etcd v3 as a store: a thin client of our own, which knows what a store needs and nothing else.
//!
//! ```text
//! create/update/delete --> Txn guarded by the key's mod revision --\
//! get/list/count       --> Range, in pages of one revision          +--> cluster: one member at a time, the next when it fails
//! watch                --> hub: many watches in one stream ---------/
//!                           |  resumes each from its own revision when the stream breaks
//!                           v
//!                          one queue per watcher; who is slow is cancelled and resumed, and costs nobody else anything
//! ```
//!
//! Keys and values are as kube-apiserver's, so several API servers of both kinds may share a cluster; so is the way they
//! take turns in compacting it.

mod barrier;
mod cluster;
mod compactor;
mod convert;
mod endpoint;
mod fault;
mod hub;
mod known;
mod lease;
mod options;
mod proto;
mod range;
mod store;

pub use options::{Options, OptionsError, TlsFiles};
pub use store::{EtcdStore, MemberStatus};

#[cfg(test)]
mod tests;
