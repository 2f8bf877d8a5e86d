//! Patches and field ownership: JSON patch, merge patch, strategic merge patch, server-side apply and managedFields.
//!
//! Everything is a pure function over [`Value`](pintle_apimachinery::Value) and a place in a schema
//! ([`Node`](pintle_schema::Node)); built-in kinds and custom resources differ only in their schema. No I/O, no clock:
//! the time of a write comes in.
//!
//! # What a handler calls
//!
//! PATCH with one of the three patch types, on an object in the version of the request:
//! ```text
//! let decoded = patch::decode(PatchType::Merge, body, is_checked)?;        // once a request; is_checked: Warn or Strict
//! let patched = decoded.patch.apply(&current, node)?;                      // once an attempt; not yet decoded along the schema
//! ```
//! Results of strategic merge patches and of apply are refused in other words than those of decoding where a type does
//! not fit: [`conversion_fault`] has them. `decoded.strict` holds what strict validation refuses in the patch itself; faults of the result are found when it is
//! decoded along the schema, and told on field `patch` with `decoded.patch.shown(&patched)` as the value.
//!
//! Every write (create, update, patch; not apply) of an object with metadata, before mutating admission:
//! ```text
//! apply::update(&scope, live, &mut object, &Writer { manager, now });
//! ```
//! It sets `metadata.managedFields` of `object` and never fails. `live` is the stored object, `None` on create.
//!
//! Server-side apply:
//! ```text
//! match apply::apply(&scope, live, &config, &Writer { manager, now }, force)? {
//!     Applied::Nothing => live,                    // answered as it is
//!     Applied::Owners(object) => object,           // the live object with other managedFields
//!     Applied::Object(object) => object,           // yet to be decoded along the schema (else scope.conversion_failed)
//! }                                                // and defaulted; carries its managedFields
//! ```
//!
//! Before every commit of an update: `apply::keep_times(&live, &mut object)` takes new times back where they are the
//! only change, so that a write that changes nothing is none.
//!
//! A [`Scope`](apply::Scope) says for which endpoint: kind and version, schema node, subresource, the fields the
//! strategy resets (never owned through this endpoint), and how to see an object in the kind's other versions.
//! `apply::scale` carries the ownership of `replicas` between a resource and its scale subresource.

pub mod apply;
mod document;
mod go;
mod json_patch;
mod merge_patch;
mod shown;
mod strategic;
#[cfg(test)]
mod testing;
mod unstructured;

pub use json_patch::{COPIED_BYTES_MAX, JsonPatch, OPERATIONS_MAX};
pub use merge_patch::MergePatch;
pub use strategic::StrategicPatch;
pub use unstructured::conversion_fault;

use pintle_apimachinery::Value;
use pintle_apimachinery::status::Result;
use pintle_schema::Node;

/// The three kinds of patch that are applied to an object as it is (server-side apply is the fourth).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`; built-in kinds only.
    Strategic,
}

/// A decoded patch: applied afresh to what each attempt of a write finds.
#[derive(Clone, Debug)]
pub enum Patch {
    /// A list of operations.
    Json(JsonPatch),
    /// Members to set, and to remove by `null`.
    Merge(MergePatch),
    /// A merge patch that merges lists and obeys directives.
    Strategic(StrategicPatch),
}

/// A patch and what strict validation refuses in it.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The patch.
    pub patch: Patch,
    /// Texts of the faults (`duplicate field "data.k"`), empty where nothing is checked: an error on field `patch`
    /// under strict validation, warnings otherwise.
    pub strict: Vec<String>,
}

/// Reads a patch. `is_checked`: field validation is `Warn` or `Strict`, so that faults in the patch itself are wanted.
///
/// # Errors
/// 400 when `body` is no patch of this type, 413 when a JSON patch has too many operations.
pub fn decode(patch_type: PatchType, body: &[u8], is_checked: bool) -> Result<Decoded> {
    let (patch, strict) = match patch_type {
        PatchType::Json => {
            let (patch, strict) = json_patch::decode(body, is_checked)?;
            (Patch::Json(patch), strict)
        }
        PatchType::Merge => {
            let (patch, strict) = merge_patch::decode(body, is_checked)?;
            (Patch::Merge(patch), strict)
        }
        PatchType::Strategic => {
            let (patch, strict) = strategic::decode(body, is_checked)?;
            (Patch::Strategic(patch), strict)
        }
    };
    Ok(Decoded { patch, strict })
}

impl Patch {
    /// Applies the patch to a copy of `document`, which is in the version of the request and described by `node`. The
    /// answer is not yet decoded along the schema: it may hold unknown fields, wrong types, even be no object.
    ///
    /// # Errors
    /// 422 when a JSON patch cannot be done; 400, 422 or 500 (without a reason) for faults of a strategic merge patch.
    pub fn apply(&self, document: &Value, node: Node<'_>) -> Result<Value> {
        match self {
            Patch::Json(patch) => patch.apply(document),
            Patch::Merge(patch) => Ok(patch.apply(document)),
            Patch::Strategic(patch) => patch.apply(document, node),
        }
    }

    /// What upstream shows as the invalid value of field `patch` when the result cannot be decoded: the result of a
    /// patch of `document`, and of a strategic merge patch the patch itself.
    pub fn shown(&self, document: &Value, patched: &Value, node: Node<'_>) -> String {
        let mut out = Vec::new();
        match self {
            Patch::Json(patch) => shown::patched(&mut out, document, patched, node, &patch.passed()),
            Patch::Merge(patch) => shown::merged(&mut out, document, &patch.patch, patched, node),
            Patch::Strategic(patch) => return go::v(&Value::Object(patch.patch.clone())),
        }
        String::from_utf8(out).unwrap_or_default()
    }
}
