//! The kind catalogue: every type, field, kind, resource and column of Kubernetes v1.35 as data, and what follows from
//! it alone: decoding with defaults for absent members, unknown-field detection and Go's type errors.
//!
//! The tables in `facts/` are read from the reference implementation; the build script turns them into statics. The
//! same [`Schema`] type also describes custom resources, so that patches and server-side apply know one form only.

mod builtin;
mod declared;
mod decode;
mod lookup;
mod resources;
mod types;

pub use builtin::{Kind, builtin, kind, kinds, type_named};
pub use declared::write_declared;
pub use decode::{absent_member, decode, decode_value, forget_empty, zero_value};
pub use resources::{Column, Resource, columns, resource, resources};
pub use types::{Field, Keys, ListKind, MessageField, Node, Range, Schema, Shape, ShapeId, Slot, Type, TypeId};
