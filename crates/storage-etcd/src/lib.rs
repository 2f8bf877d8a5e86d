//! etcd v3 as a store.
