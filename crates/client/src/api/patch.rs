//! The four kinds of patches.

use crate::error::{Error, Result};
use crate::request::Request;
use bytes::Bytes;
use serde::Serialize;

/// A change to an object.
///
/// `Json` and `Merge` are RFC 6902 and RFC 7386, `Strategic` merges lists by the kind's rules (built-in kinds only),
/// `Apply` is server-side apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch<P> {
    /// Operations: `[{"op": "add", "path": "/spec/replicas", "value": 3}]`.
    Json(P),
    /// Members to set; `null` removes, lists are replaced.
    Merge(P),
    /// Members to set; `null` removes, lists are merged by their keys.
    Strategic(P),
    /// Fields to have and own. Needs `apiVersion` and `kind`.
    Apply(P),
}

impl<P> Patch<P> {
    /// Media type of an apply.
    pub(crate) const APPLY: &'static str = "application/apply-patch+yaml";

    /// The media type.
    pub fn content_type(&self) -> &'static str {
        match self {
            Patch::Json(_) => "application/json-patch+json",
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Strategic(_) => "application/strategic-merge-patch+json",
            Patch::Apply(_) => Patch::<P>::APPLY,
        }
    }
}

impl<P: Serialize> Patch<P> {
    pub(crate) fn write(&self, mut request: Request) -> Result<Request> {
        let (Patch::Json(body) | Patch::Merge(body) | Patch::Strategic(body) | Patch::Apply(body)) = self;
        let bytes = serde_json::to_vec(body).map_err(|source| Error::Encode { what: "patch", source })?;
        request.body = Bytes::from(bytes);
        request.content_type = self.content_type();
        Ok(request)
    }
}
