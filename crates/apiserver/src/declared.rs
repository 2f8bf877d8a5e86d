//! JSON with the members of objects in the order in which upstream declares them, which is the order of its answers.
//! Objects at rest are sorted by name instead, so that only answers that are made on the spot are written so.

use crate::encode::indented;
use crate::negotiate::Output;
use bytes::Bytes;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersion, Value};
use pintle_registry::decode::Media;
use pintle_schema::{Node, write_declared};

/// A value that was made on the spot (a Status, a review, a discovery document), in an encoding.
///
/// # Errors
/// 500 when it has no such form.
pub(crate) fn encode(object: &Value, output: &Output) -> Result<Bytes> {
    if output.media != Media::Json {
        return crate::encode::value(object, output);
    }
    let mut out = Vec::with_capacity(512);
    write_declared(&mut out, object, node(object));
    if output.pretty {
        return Ok(Bytes::from(indented(&out)));
    }
    out.push(b'\n');
    Ok(Bytes::from(out))
}

/// What describes a value, by its kind. Discovery documents may say no version.
fn node(object: &Value) -> Option<Node<'static>> {
    let gv = GroupVersion::parse(object["apiVersion"].str_or_empty())?;
    let version = if gv.version.is_empty() { "v1" } else { &gv.version };
    let kind = pintle_schema::kind(&gv.group, version, object["kind"].str_or_empty())?;
    Some(pintle_schema::builtin().root(kind.id))
}
