//! The embedded store: an append-only log with group commit, history and recovery.
