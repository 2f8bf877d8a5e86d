//! Reading a JSON patch, with the words that Go's decoders find for what is none.

use super::{JsonPatch, OPERATIONS_MAX, Operation};
use pintle_apimachinery::status::{Result, Status};
use pintle_apimachinery::value::{FieldGuide, Guide, Mismatch, Scalar, parse, parse_guided};
use pintle_apimachinery::{Str, Value};

/// Reads a JSON patch and, where `is_checked`, tells the unknown and duplicate members of its operations.
///
/// # Errors
/// 400 when `body` is no JSON patch, 413 when it has too many operations.
pub(crate) fn decode(body: &[u8], is_checked: bool) -> Result<(JsonPatch, Vec<String>)> {
    let mut strict = Vec::new();
    if is_checked {
        let parsed = parse_guided(body, Place::CHECKED).map_err(|e| refused(&e.message))?;
        if let Some(text) = parsed.issues.wrong_type {
            return Err(refused(&text));
        }
        strict.extend(parsed.issues.strict.iter().map(|issue| format!("json patch {issue}")));
    } else {
        let parsed = parse_guided(body, Place::BARE).map_err(|e| Box::new(Status::bad_request(e.message)))?;
        if let Some(text) = parsed.issues.wrong_type {
            return Err(Box::new(Status::bad_request(text)));
        }
    }
    let document = parse(body).map_err(|e| Box::new(Status::bad_request(e.message)))?;
    let n_operations = document.items().len();
    if n_operations > OPERATIONS_MAX {
        return Err(Box::new(Status::too_large(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {n_operations}"
        ))));
    }
    let operations = document.items().iter().map(operation).collect();
    Ok((JsonPatch { operations }, strict))
}

fn refused(why: &str) -> Box<Status> {
    Box::new(Status::bad_request(format!("error decoding patch: {why}")))
}

fn operation(item: &Value) -> Operation {
    let text = |name: &str| item.get(name).as_str().map(Str::new);
    Operation {
        op: text("op"),
        path: text("path"),
        from: text("from"),
        value: item.as_object().and_then(|o| o.get("value")).cloned(),
    }
}

/// A place in a patch document, for type errors in Go's words.
#[derive(Clone, Copy)]
struct Place {
    step: Step,
    /// Whether Go reads the operations as structs (it does when validation is on) and not as maps.
    is_checked: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Patch,
    Operation,
    /// `op`, `path` or `from`.
    Text,
    Any,
}

impl Place {
    const CHECKED: Place = Place { step: Step::Patch, is_checked: true };
    const BARE: Place = Place { step: Step::Patch, is_checked: false };

    fn at(self, step: Step) -> Place {
        Place { step, ..self }
    }

    fn mismatch(self, value: &str) -> Mismatch {
        let go_type = match (self.step, self.is_checked) {
            (Step::Patch, true) => "[]handlers.jsonPatchOp",
            (Step::Patch, false) => "jsonpatch.Patch",
            (Step::Operation, true) => "handlers.jsonPatchOp",
            (Step::Operation, false) => "jsonpatch.Operation",
            (Step::Text | Step::Any, _) => "string",
        };
        Mismatch::Type { value: value.to_owned(), go_type: go_type.to_owned() }
    }
}

impl Guide for Place {
    fn member(self, key: &str) -> FieldGuide<Self> {
        let step = match (self.step, key) {
            (Step::Operation, "op" | "path" | "from") if self.is_checked => Step::Text,
            (Step::Operation, _) if self.is_checked && key != "value" => return FieldGuide::Unknown,
            _ => Step::Any,
        };
        let is_field = self.step == Step::Operation && self.is_checked;
        FieldGuide::Known { guide: self.at(step), name: None, omit_empty: false, is_field }
    }

    fn item(self) -> Self {
        self.at(if self.step == Step::Patch { Step::Operation } else { Step::Any })
    }

    fn enter_object(self) -> Result<(), Mismatch> {
        match self.step {
            Step::Operation | Step::Any => Ok(()),
            Step::Patch | Step::Text => Err(self.mismatch("object")),
        }
    }

    fn enter_array(self) -> Result<(), Mismatch> {
        match self.step {
            Step::Patch | Step::Any => Ok(()),
            Step::Operation | Step::Text => Err(self.mismatch("array")),
        }
    }

    fn scalar(self, scalar: Scalar<'_>) -> Result<Value, Mismatch> {
        match (self.step, scalar) {
            (Step::Any, _) | (Step::Text, Scalar::String(_)) => Ok(Value::Null),
            (_, Scalar::Bool(_)) => Err(self.mismatch("bool")),
            (_, Scalar::Number(_)) => Err(self.mismatch("number")),
            (_, Scalar::String(_)) => Err(self.mismatch("string")),
        }
    }

    fn null(self) -> Value {
        Value::Null
    }

    fn drops_null_members(self) -> bool {
        false
    }

    fn struct_name(self) -> &'static str {
        if self.step == Step::Operation { "jsonPatchOp" } else { "" }
    }

    fn finish_object(self, _members: &mut Vec<(Str, Value)>) {}
}
