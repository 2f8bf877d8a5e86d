//! `application/vnd.kubernetes.protobuf`: objects as protobuf messages, by the field numbers of the kind catalogue.
//!
//! A message body ([`encode`], [`decode`]) says nothing of its kind; the envelope around it does ([`envelope`],
//! [`open_envelope`]). A list is framed from bodies that were encoded on their own ([`list`]), a watch event from an
//! enveloped object ([`watch_frame`]), so that each object is encoded once per revision and the bytes are shared.
//!
//! Zero values, the part that schemas of the field do not show: what is no pointer is always in the message, pointers
//! exactly when set. Decoding ends in the same canonical [`Value`] as decoding the same object from JSON.
//!
//! Follows: apimachinery `runtime/serializer/protobuf` and the code that gogo/protobuf generates (v0.35).

use pintle_apimachinery::Str;

mod decode;
mod document;
mod encode;
mod envelope;
mod tape;
mod wire;

pub use decode::{decode, decode_into};
pub use encode::{encode, encode_json};
pub use envelope::{
    Envelope, FRAME_BYTES_MAX, FrameReader, ListMeta, decode_object, encode_object, envelope, list, open_envelope,
    watch_frame,
};

/// The media type of enveloped objects.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a watch: length-delimited frames.
pub const WATCH_CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Why bytes are no message of the type they were read as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are no bytes at all.
    #[error("empty data")]
    Empty,
    /// The bytes do not begin with the envelope's prefix.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// The envelope's prefix stands alone.
    #[error("empty body")]
    EmptyBody,
    /// The bytes end within a field.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number takes more than ten bytes.
    #[error("proto: integer overflow")]
    Overflow,
    /// A group ends that never began, or a field has the number 0.
    #[error("proto: {message}: illegal tag {number} (wire type {wire})")]
    IllegalTag {
        /// The message's type.
        message: &'static str,
        /// The field's number.
        number: u64,
        /// Its wire type.
        wire: u64,
    },
    /// A field has another wire type than its declaration.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WireType {
        /// The JSON name of the field.
        field: Str,
        /// The wire type that was met.
        wire: u64,
    },
    /// Messages nest deeper than [`pintle_apimachinery::value::NESTING_DEPTH_MAX`].
    #[error("proto: exceeded max depth")]
    TooDeep,
    /// A field's text is not what its type wants.
    #[error("{0}")]
    Text(String),
    /// The envelope names no kind.
    #[error("Object 'Kind' is missing in '{0}'")]
    MissingKind(String),
    /// The kind is none that has a protobuf form.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// What the envelope says.
        api_version: String,
        /// What the envelope says.
        kind: String,
    },
}

/// Why a value cannot be written as a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A member does not have the type that the schema declares: the value was not decoded along it.
    #[error("{kind}: field {field}: the value is no {wanted}")]
    Mismatch {
        /// The message's type.
        kind: &'static str,
        /// The JSON name of the innermost field.
        field: String,
        /// What the schema declares.
        wanted: &'static str,
    },
    /// The kind has no protobuf form.
    #[error(
        "object {api_version}, Kind={kind} does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
    )]
    NoMessage {
        /// The object's `apiVersion`.
        api_version: String,
        /// The object's `kind`.
        kind: String,
    },
}
