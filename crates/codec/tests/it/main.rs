//! The codec against the reference implementation.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod pairs;
mod protobuf;
mod yaml;
