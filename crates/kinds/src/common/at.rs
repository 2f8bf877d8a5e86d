//! [`At`]: a place in an object, which is a value and the path that messages call it by.

use pintle_apimachinery::field::Shown;
use pintle_apimachinery::{FieldError, Path, Str, Value};
use std::ops::Deref;

/// A value and the path of the field that holds it. Reads as the value (`at["name"]`, `at.is_null()`), walks with both
/// ([`At::child`], [`At::each`]) and makes the errors of its field.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    value: &'a Value,
    path: Path<'a>,
}

impl Deref for At<'_> {
    type Target = Value;
    fn deref(&self) -> &Value {
        self.value
    }
}

impl<'a> At<'a> {
    /// `value` at `path`.
    pub const fn new(value: &'a Value, path: Path<'a>) -> At<'a> {
        At { value, path }
    }

    /// The top-level field `name` of an object.
    pub fn top(object: &'a Value, name: &'a str) -> At<'a> {
        At { value: object.get(name), path: Path::new(name) }
    }

    /// The value, for as long as the object lives.
    pub const fn value(&self) -> &'a Value {
        self.value
    }

    /// The string, or `""`, for as long as the object lives.
    pub fn text(&self) -> &'a str {
        self.value.str_or_empty()
    }

    /// The integer, or 0.
    pub fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// Whether there is a value other than `null`.
    pub fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// The path.
    pub const fn path(&self) -> &Path<'a> {
        &self.path
    }

    /// The member `name`.
    pub fn child<'b>(&'b self, name: &'b str) -> At<'b> {
        At { value: self.value.get(name), path: self.path.child(name) }
    }

    /// The value at a dotted path of members; the names in messages are the same.
    pub fn descend<'b>(&'b self, names: &'b str) -> At<'b> {
        At { value: self.value.at(names), path: self.path.child(names) }
    }

    /// The member `name`, called `called` in messages: upstream misspells a few.
    pub fn child_called<'b>(&'b self, name: &str, called: &'b str) -> At<'b> {
        At { value: self.value.get(name), path: self.path.child(called) }
    }

    /// The item `idx`.
    pub fn index(&self, idx: usize) -> At<'_> {
        At { value: self.value.items().get(idx).unwrap_or(const { &Value::NULL }), path: self.path.index(idx) }
    }

    /// The entry `key` of a map.
    pub fn key<'b>(&'b self, key: &'b str) -> At<'b> {
        At { value: self.value.get(key), path: self.path.key(key) }
    }

    /// The items of a list.
    pub fn each(&self) -> impl ExactSizeIterator<Item = At<'_>> {
        self.value.items().iter().enumerate().map(|(idx, value)| At { value, path: self.path.index(idx) })
    }

    /// The entries of a map with their keys, sorted by key.
    pub fn each_entry(&self) -> impl ExactSizeIterator<Item = (&'a Str, At<'_>)> {
        self.value.entries().map(|(key, value)| (key, At { value, path: self.path.key(key) }))
    }

    /// Malformed; the message shows the value, `""` when it is absent.
    pub fn invalid(&self, detail: impl Into<String>) -> FieldError {
        if self.value.is_null() {
            return FieldError::invalid(&self.path, "", detail);
        }
        FieldError::invalid(&self.path, self.value, detail)
    }

    /// Malformed; the message shows the integer, 0 when it is absent.
    pub fn invalid_int(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(&self.path, self.int(), detail)
    }

    /// Malformed; the message shows `shown` instead of the value.
    pub fn invalid_showing(&self, shown: impl Shown, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(&self.path, shown, detail)
    }

    /// Absent though required. `detail` may be empty.
    pub fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(&self.path, detail)
    }

    /// Not allowed as things are.
    pub fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(&self.path, detail)
    }

    /// There already.
    pub fn duplicate(&self) -> FieldError {
        FieldError::duplicate(&self.path, self.text())
    }

    /// Refers to what is not there.
    pub fn not_found(&self) -> FieldError {
        FieldError::not_found(&self.path, self.text())
    }

    /// None of `supported`, which are told in the order given.
    pub fn not_supported<S: AsRef<str>>(&self, supported: &[S]) -> FieldError {
        FieldError::not_supported(&self.path, self.text(), supported)
    }

    /// Longer than `bytes_max` bytes.
    pub fn too_long(&self, bytes_max: usize) -> FieldError {
        FieldError::too_long(&self.path, bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn walking() {
        let object = json!({"spec": {"ports": [{"name": "a"}], "limits": {"cpu": "1"}}});
        let spec = At::top(&object, "spec");
        let ports = spec.child("ports");
        let told: Vec<String> = ports.each().map(|port| port.child("name").invalid("no").to_string()).collect();
        assert_eq!(told, ["spec.ports[0].name: Invalid value: \"a\": no"]);
        let limits = spec.child("limits");
        assert_eq!(limits.key("cpu").invalid("no").to_string(), "spec.limits[cpu]: Invalid value: \"1\": no");
        assert_eq!(spec.child("x").invalid("no").to_string(), "spec.x: Invalid value: \"\": no");
        assert_eq!(spec.child("n").invalid_int("no").to_string(), "spec.n: Invalid value: 0: no");
    }
}
