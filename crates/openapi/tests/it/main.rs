//! The documents against those of kube-apiserver v1.35.4.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod custom;
mod gnostic;
mod structure;
