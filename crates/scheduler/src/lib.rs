//! Binds pods to nodes.
