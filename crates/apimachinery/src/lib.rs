//! The Kubernetes wire vocabulary: JSON values, object metadata, `Status` errors, field errors, quantities,
//! selectors, names, time. Everything here is pure: no I/O, no clock, no randomness ([`env`] holds the traits
//! through which those come in).

pub mod env;
pub mod field;
pub mod fieldselector;
pub mod gvk;
pub mod intstr;
pub mod labels;
pub mod meta;
pub mod names;
pub mod quantity;
pub mod status;
pub mod time;
pub mod value;

pub use compact_str::CompactString as Str;
pub use field::{ErrorList, FieldError, Path};
pub use gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use status::Status;
pub use value::{Object, Value};
