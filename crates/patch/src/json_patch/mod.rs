//! JSON patch as kube-apiserver applies it: Go's evanphx/json-patch v4, which is not RFC 6902.
//!
//! What differs: `replace` and `copy` take an absent member of an object for `null`, `test` cannot tell `null` from
//! absence, `add` without a value adds `null`, and paths are read leniently (see `pointer`). Every failure of an
//! operation has one and the same answer, so faults carry no text.

mod decode;
mod pointer;

use pintle_apimachinery::status::{Details, Result, Status};
use pintle_apimachinery::{Str, Value};
use pointer::{Container, Pointer, index_of};
use std::collections::BTreeSet;

pub(crate) use decode::decode;

/// Operations in one patch; more are refused with 413.
pub const OPERATIONS_MAX: usize = 10_000;

/// Bytes of JSON that all `copy` operations of one patch may add; beyond them the patch fails with 422.
pub const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// An operation that cannot be done.
#[derive(Debug)]
struct Fault;

/// One step of a patch. What is missing or of a wrong type fails only when the step is reached.
#[derive(Clone, Debug)]
struct Operation {
    /// `None` when absent, null or no string.
    op: Option<Str>,
    path: Option<Str>,
    from: Option<Str>,
    /// `None` when absent; an explicit `null` means the same in most operations.
    value: Option<Value>,
}

/// A decoded JSON patch.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
}

impl JsonPatch {
    /// Applies all operations to a copy of `document`.
    ///
    /// # Errors
    /// 422 when an operation cannot be done or a test fails; nothing is told of which.
    pub fn apply(&self, document: &Value) -> Result<Value> {
        let mut patched = document.clone();
        let mut copied_bytes = 0;
        for operation in &self.operations {
            operation.apply(&mut patched, &mut copied_bytes).map_err(|Fault| Box::new(unprocessable()))?;
        }
        Ok(patched)
    }
}

impl JsonPatch {
    /// The pointers of all objects and lists that the operations pass.
    pub(crate) fn passed(&self) -> BTreeSet<String> {
        let paths = self.operations.iter().flat_map(|operation| [&operation.path, &operation.from]).flatten();
        let starts =
            |path: &'_ Str| -> Vec<String> { path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect() };
        paths.flat_map(starts).collect()
    }
}

/// The answer to every patch that cannot be applied.
pub(crate) fn unprocessable() -> Status {
    Status::failure(422, "Invalid", "the server rejected our request due to an error in our request")
        .with_details(Details::default())
}

impl Operation {
    fn apply(&self, document: &mut Value, copied_bytes: &mut usize) -> Result<(), Fault> {
        match self.op.as_deref() {
            Some("add") => add(document, self.path()?, self.value()),
            Some("remove") => remove(document, self.path()?).map(drop),
            Some("replace") => self.replace(document),
            Some("move") => {
                let value = remove(document, self.from.as_deref().ok_or(Fault)?)?;
                add(document, self.path()?, value)
            }
            Some("copy") => {
                let value = get(document, self.from.as_deref().ok_or(Fault)?)?.clone();
                Pointer::parse(self.path()?)?.container(document)?;
                *copied_bytes = copied_bytes.saturating_add(value.to_json().len());
                if *copied_bytes > COPIED_BYTES_MAX {
                    return Err(Fault);
                }
                add(document, self.path()?, value)
            }
            Some("test") => self.test(document),
            Some(_) | None => Err(Fault),
        }
    }

    fn path(&self) -> Result<&str, Fault> {
        self.path.as_deref().ok_or(Fault)
    }

    fn value(&self) -> Value {
        self.value.clone().unwrap_or_default()
    }

    fn replace(&self, document: &mut Value) -> Result<(), Fault> {
        let path = self.path()?;
        if path.is_empty() {
            let value = self.value();
            if !matches!(value, Value::Object(_) | Value::Array(_)) {
                return Err(Fault);
            }
            *document = value;
            return Ok(());
        }
        let pointer = Pointer::parse(path)?;
        match pointer.container_mut(document)? {
            Container::Object(object) => {
                object.insert(pointer.key(), self.value());
            }
            Container::Array(items) => {
                let idx = index_of(&pointer.key(), items.len())?;
                items[idx] = self.value();
            }
        }
        Ok(())
    }

    fn test(&self, document: &Value) -> Result<(), Fault> {
        let path = self.path()?;
        let found = if path.is_empty() { document } else { get(document, path)? };
        let is_equal = *found == *self.value.as_ref().unwrap_or(&Value::NULL);
        if is_equal { Ok(()) } else { Err(Fault) }
    }
}

/// The value at a path; an absent member of an object reads as `null`.
fn get<'a>(document: &'a Value, path: &str) -> Result<&'a Value, Fault> {
    static NULL: Value = Value::Null;
    let pointer = Pointer::parse(path)?;
    match pointer.container(document)? {
        Container::Object(object) => Ok(object.get(&pointer.key()).unwrap_or(&NULL)),
        Container::Array(items) => Ok(&items[index_of(&pointer.key(), items.len())?]),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Fault> {
    let pointer = Pointer::parse(path)?;
    let key = pointer.key();
    match pointer.container_mut(document)? {
        Container::Object(object) => {
            object.insert(key, value);
        }
        Container::Array(items) if key == "-" => items.push(value),
        Container::Array(items) => items.insert(index_of(&key, items.len() + 1)?, value),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Fault> {
    let pointer = Pointer::parse(path)?;
    match pointer.container_mut(document)? {
        Container::Object(object) => object.remove(&pointer.key()).ok_or(Fault),
        Container::Array(items) => {
            let idx = index_of(&pointer.key(), items.len())?;
            Ok(items.remove(idx))
        }
    }
}

#[cfg(test)]
mod tests;
