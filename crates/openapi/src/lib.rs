//! The OpenAPI documents of the API, by which clients explain, validate and apply: v3 (an index and one document for
//! each group and version) and v2 (one document for everything), both as JSON and in the protobuf form of gnostic.
//!
//! Structure comes from the kind catalogue, prose from the build script; custom resources are told of with each call.
//! Nothing is kept between calls: documents are large and asked for seldom, and their hashes are known without them.

mod builtin;
mod custom;
mod definitions;
mod gnostic;
mod hash;
mod meta;
mod names;
mod operation;
mod params;
pub mod v2;
pub mod v3;

pub use custom::CustomResource;
pub use gnostic::{v2_protobuf, v3_protobuf};

/// The media type of v2 documents in protobuf, as it is answered.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The media type of v3 documents in protobuf, as it is answered.
pub const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
/// An older spelling of [`V2_PROTOBUF`] that clients still ask with.
pub const V2_PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// An older spelling of [`V3_PROTOBUF`] that clients still ask with.
pub const V3_PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

use pintle_apimachinery::{Value, json};

/// What the documents of built-in groups say of themselves.
fn info() -> Value {
    json!({"title": "Kubernetes", "version": "1.35"})
}
