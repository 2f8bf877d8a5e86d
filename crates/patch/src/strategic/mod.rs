//! Strategic merge patch: a merge patch that merges lists by key and carries directives.
//!
//! Directives: `$patch` (replace, delete) in an object, `$retainKeys` in an object, `$setElementOrder/LIST` and
//! `$deleteFromPrimitiveList/LIST` beside a list. Which lists merge, and by which key, the schema says
//! ([`Field::patch_merge`](pintle_schema::Field::patch_merge)).
//!
//! Follows: apimachinery/pkg/util/strategicpatch (v0.35) as the server calls it. Differs: members of a patch are taken
//! in the order of their names, where Go's order is random.

mod directives;
mod lists;
mod lookup;
mod order;

use crate::document::MapDocument;
use directives::{DELETE_FROM_LIST, DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER};
use lookup::{list_meta, struct_meta};
use pintle_apimachinery::status::{Result, Status};
use pintle_apimachinery::value::parse_guided;
use pintle_apimachinery::{Object, Value};
use pintle_schema::Node;

/// A decoded strategic merge patch.
#[derive(Clone, Debug)]
pub struct StrategicPatch {
    pub(crate) patch: Object,
}

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq)]
enum Fault {
    /// 400 with this text.
    BadFormat(&'static str),
    /// 422 without a text of its own.
    Unprocessable,
    /// 500 with this text and no reason.
    Plain(String),
}

impl Fault {
    const RETAIN_KEYS: Fault = Fault::BadFormat("invalid patch format of retainKeys");
    const PRIMITIVE_LIST: Fault = Fault::BadFormat("invalid patch format of primitive list");
    const ELEMENT_ORDER: Fault = Fault::BadFormat("invalid patch format of setElementOrder list");

    fn status(self) -> Box<Status> {
        Box::new(match self {
            Fault::BadFormat(text) => Status::bad_request(text),
            Fault::Unprocessable => crate::json_patch::unprocessable(),
            Fault::Plain(text) => Status::plain_error(text),
        })
    }

    /// A value of another type than the code needs there.
    fn wrong_type(expected: &str, found: &Value) -> Fault {
        let found = if found.is_null() { "%!s(<nil>)" } else { crate::go::type_name(found) };
        Fault::Plain(format!("expected a {expected}, but received a {found}"))
    }

    fn no_merge_key(item: &Value, merge_key: &str) -> Fault {
        Fault::Plain(format!("map: {} does not contain declared merge key: {merge_key}", crate::go::v(item)))
    }

    fn unknown_directive(directive: &Value, patch: &Value) -> Fault {
        Fault::Plain(format!("unknown patch type: {} in map: {}", crate::go::s(directive), crate::go::v(patch)))
    }
}

/// Reads a strategic merge patch and, where `is_checked`, tells duplicate members.
///
/// # Errors
/// 400 when `body` is no JSON object (`null` is an empty patch).
pub(crate) fn decode(body: &[u8], is_checked: bool) -> Result<(StrategicPatch, Vec<String>)> {
    let parsed = parse_guided(body, MapDocument::ROOT).map_err(|e| Box::new(Status::bad_request(e.message)))?;
    if let Some(text) = parsed.issues.wrong_type {
        return Err(Box::new(Status::bad_request(text)));
    }
    let strict = if is_checked { parsed.issues.strict.iter().map(ToString::to_string).collect() } else { Vec::new() };
    let patch = match parsed.value {
        Value::Object(patch) => patch,
        _ => Object::new(),
    };
    Ok((StrategicPatch { patch }, strict))
}

impl StrategicPatch {
    /// Applies the patch to a copy of `document`, which `node` describes.
    ///
    /// # Errors
    /// 400, 422 or 500 (without a reason) as upstream, by the fault in the patch.
    pub fn apply(&self, document: &Value, node: Node<'_>) -> Result<Value> {
        let mut patched = document.as_object().cloned().unwrap_or_default();
        merge_object(&mut patched, &self.patch, Some(node)).map_err(Fault::status)?;
        Ok(Value::Object(patched))
    }
}

/// Merges `patch` into `original`, which `node` describes; `None` where the schema knows nothing.
fn merge_object(original: &mut Object, patch: &Object, node: Option<Node<'_>>) -> Result<(), Fault> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return directives::apply_to_object(directive, original, patch);
    }
    directives::retain_keys(original, patch)?;
    let done = merge_ordered_lists(original, patch, node)?;
    for (key, change) in patch.iter() {
        if key == RETAIN_KEYS || key.starts_with(SET_ELEMENT_ORDER) || done.contains(&key.as_str()) {
            continue;
        }
        merge_member(original, key, change, node)?;
    }
    Ok(())
}

/// The lists of a patch that have a `$setElementOrder` beside them: merged and put in order. Answers their names.
fn merge_ordered_lists<'p>(
    original: &mut Object,
    patch: &'p Object,
    node: Option<Node<'_>>,
) -> Result<Vec<&'p str>, Fault> {
    let mut done = Vec::new();
    for (directive, wanted) in patch.iter().filter(|(key, _)| key.starts_with(SET_ELEMENT_ORDER)) {
        let wanted = as_list(wanted)?;
        let name = directives::list_name(directive, SET_ELEMENT_ORDER).ok_or(Fault::ELEMENT_ORDER)?;
        let before = original.get(name).map(as_list).transpose()?;
        let change = patch.get(name).map(as_list).transpose()?;
        let meta = list_meta(node, name)?;
        let merged = lists::merge_in_order(before, change, wanted, &meta)?;
        if let Some(merged) = merged {
            original.insert(name, Value::Array(merged));
            done.push(name);
        }
    }
    Ok(done)
}

fn as_list(value: &Value) -> Result<&Vec<Value>, Fault> {
    value.as_array().ok_or_else(|| Fault::wrong_type("[]interface {}", value))
}

/// Merges one member of a patch that is no directive, or the list of items to take out of a list of scalars.
fn merge_member(original: &mut Object, key: &str, change: &Value, node: Option<Node<'_>>) -> Result<(), Fault> {
    let mut name = key;
    let is_deletion = key.starts_with(DELETE_FROM_LIST);
    if is_deletion {
        let list = directives::list_name(key, DELETE_FROM_LIST).ok_or(Fault::PRIMITIVE_LIST)?;
        name = if list.is_empty() { key } else { list };
    }
    if change.is_null() {
        original.remove(name);
        return Ok(());
    }
    match (original.get_mut(name), change) {
        (Some(Value::Object(current)), Value::Object(change)) => {
            let meta = struct_meta(node, name)?;
            if meta.is_replaced {
                current.clone_from(change);
                return Ok(());
            }
            merge_object(current, change, meta.node)
        }
        (Some(Value::Array(current)), Value::Array(change)) => {
            let meta = list_meta(node, name)?;
            if is_deletion || meta.is_merged {
                let items = std::mem::take(current);
                *current = lists::merge(items, change, &meta, is_deletion)?;
            } else {
                current.clone_from(change);
            }
            Ok(())
        }
        _ if is_deletion => Ok(()),
        _ => {
            match directives::without_directives(change, true) {
                Some(value) => original.insert(name, value),
                None => original.remove(name),
            };
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
