//! [`Value`]: a JSON document in memory, with the number model of Kubernetes (64-bit integers and floats apart) and
//! objects kept sorted by key, so that equal documents serialise to equal bytes.
//!
//! Reading is total: [`Value::get`] and indexing by `&str` answer [`Value::NULL`] for what is absent, so that rules
//! over deep optional structures read as one line. Absence and an explicit `null` are told apart by
//! [`Object::get`].

mod object;
mod read;
mod write;

pub use object::Object;
pub use read::{
    FieldGuide, Guide, Issue, IssueKind, Issues, Mismatch, NESTING_DEPTH_MAX, ParseError, Parsed, Scalar, parse,
    parse_free, parse_guided,
};
pub use write::{go_float, go_g, go_v, html_escaped, write_json_string, write_value};

use crate::Str;
use std::ops::{Index, IndexMut};

/// One JSON value.
///
/// Numbers without fraction and exponent that fit `i64` are [`Value::Int`]; all others are [`Value::Float`], which is
/// never NaN or infinite when it comes from a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`, and what reading an absent member answers.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Str),
    /// A list.
    Array(Vec<Value>),
    /// An object, its members sorted by key.
    Object(Object),
}

static NULL: Value = Value::Null;
static EMPTY_OBJECT: Object = Object::new();

impl Value {
    /// The value that absent members read as.
    pub const NULL: Value = Value::Null;

    /// An object without members.
    pub const fn object() -> Value {
        Value::Object(Object::new())
    }

    /// A list without items.
    pub const fn array() -> Value {
        Value::Array(Vec::new())
    }

    /// A string value.
    pub fn str(s: impl AsRef<str>) -> Value {
        Value::String(Str::new(s))
    }

    /// Whether this is `null` (or was absent).
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether this is `null`, `false`, `0`, `""`, `[]` or `{}`: what Go's `omitempty` leaves out.
    pub fn is_empty(&self) -> bool {
        match self {
            Value::Null => true,
            Value::Bool(b) => !b,
            Value::Int(i) => *i == 0,
            Value::Float(f) => *f == 0.0,
            Value::String(s) => s.is_empty(),
            Value::Array(a) => a.is_empty(),
            Value::Object(o) => o.is_empty(),
        }
    }

    /// The member `key`; [`Value::NULL`] when it is absent or `self` is no object.
    pub fn get(&self, key: &str) -> &Value {
        match self {
            Value::Object(o) => o.get(key).unwrap_or(&NULL),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => {
                &NULL
            }
        }
    }

    /// The value at a dotted path of member names, such as `spec.template.metadata`. Names that contain dots cannot be
    /// reached this way.
    pub fn at(&self, path: &str) -> &Value {
        path.split('.').fold(self, |value, key| value.get(key))
    }

    /// Whether `self` is an object with a member `key`, even a `null` one.
    pub fn has(&self, key: &str) -> bool {
        matches!(self, Value::Object(o) if o.contains_key(key))
    }

    /// The member `key` for change, if `self` is an object that has it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Value::Object(o) => o.get_mut(key),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// The value at a dotted path for change, if every member on the way exists.
    pub fn at_mut(&mut self, path: &str) -> Option<&mut Value> {
        path.split('.').try_fold(self, |value, key| value.get_mut(key))
    }

    /// The value at a dotted path for change; objects on the way are made, and what is no object is replaced by one.
    pub fn make(&mut self, path: &str) -> &mut Value {
        path.split('.').fold(self, |value, key| value.make_object().entry(key))
    }

    /// `self` as an object, which it becomes if it is none.
    pub fn make_object(&mut self) -> &mut Object {
        if !matches!(self, Value::Object(_)) {
            *self = Value::object();
        }
        match self {
            Value::Object(o) => o,
            _ => unreachable!("made an object above"),
        }
    }

    /// `self` as a list, which it becomes if it is none.
    pub fn make_array(&mut self) -> &mut Vec<Value> {
        if !matches!(self, Value::Array(_)) {
            *self = Value::array();
        }
        match self {
            Value::Array(a) => a,
            _ => unreachable!("made an array above"),
        }
    }

    /// Sets the member `key`, making `self` an object if it is none.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.make_object().insert(key, value.into());
    }

    /// Sets the member `key` unless it is there already with a value other than `null`.
    pub fn set_default(&mut self, key: &str, value: impl Into<Value>) {
        if self.get(key).is_null() {
            self.set(key, value);
        }
    }

    /// Takes the member `key` out; [`Value::Null`] if there is none.
    pub fn remove(&mut self, key: &str) -> Value {
        match self {
            Value::Object(o) => o.remove(key).unwrap_or(Value::Null),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => {
                Value::Null
            }
        }
    }

    /// Takes the member at the end of a dotted path out; [`Value::Null`] if there is none.
    pub fn remove_at(&mut self, path: &str) -> Value {
        match path.rsplit_once('.') {
            Some((parent, key)) => self.at_mut(parent).map_or(Value::Null, |value| value.remove(key)),
            None => self.remove(path),
        }
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The string, or `""`.
    pub fn str_or_empty(&self) -> &str {
        self.as_str().unwrap_or_default()
    }

    /// The integer, if this is one (or a float with an integer's value in range).
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            #[expect(clippy::cast_possible_truncation, reason = "the guard holds the value within i64's range")]
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 9.0e18 => Some(*f as i64),
            Value::Float(_) | Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                None
            }
        }
    }

    /// The number as a float, if this is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
            Value::Int(i) => Some(*i as f64),
            Value::Float(f) => Some(*f),
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            Value::Null | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                None
            }
        }
    }

    /// Whether this is `true`; absence and everything else is `false`.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The items of a list; none when this is no list.
    pub fn items(&self) -> &[Value] {
        match self {
            Value::Array(a) => a,
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Object(_) => &[],
        }
    }

    /// The items of a list for change; none when this is no list.
    pub fn items_mut(&mut self) -> &mut [Value] {
        match self {
            Value::Array(a) => a,
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Object(_) => {
                &mut []
            }
        }
    }

    /// The list, if this is one.
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(a) => Some(a),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Object(_) => {
                None
            }
        }
    }

    /// The list for change, if this is one.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(a) => Some(a),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Object(_) => {
                None
            }
        }
    }

    /// The object, if this is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(o) => Some(o),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// The object for change, if this is one.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Value::Object(o) => Some(o),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Array(_) => None,
        }
    }

    /// The members of an object, sorted by key; none when this is no object.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&Str, &Value)> {
        self.as_object().unwrap_or(&EMPTY_OBJECT).iter()
    }

    /// Takes the value, leaving `null`.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// The canonical JSON bytes: members sorted by key, no spaces, numbers and strings as Go's `encoding/json` writes
    /// them without HTML escaping.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        write_value(&mut out, self);
        out
    }

    /// [`Value::to_json`] as text.
    pub fn to_json_string(&self) -> String {
        String::from_utf8(self.to_json()).unwrap_or_default()
    }
}

impl Index<&str> for Value {
    type Output = Value;
    /// The member `key`, or [`Value::NULL`].
    fn index(&self, key: &str) -> &Value {
        self.get(key)
    }
}

impl IndexMut<&str> for Value {
    /// The member `key` for change; made (as `null`) when absent, and `self` becomes an object if it is none.
    fn index_mut(&mut self, key: &str) -> &mut Value {
        self.make_object().entry(key)
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json_string())
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::String(Str::new(s))
    }
}
impl From<&String> for Value {
    fn from(s: &String) -> Value {
        Value::String(Str::new(s))
    }
}
impl From<String> for Value {
    fn from(s: String) -> Value {
        Value::String(Str::from(s))
    }
}
impl From<Str> for Value {
    fn from(s: Str) -> Value {
        Value::String(s)
    }
}
impl From<&Str> for Value {
    fn from(s: &Str) -> Value {
        Value::String(s.clone())
    }
}
impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}
impl From<i64> for Value {
    fn from(i: i64) -> Value {
        Value::Int(i)
    }
}
impl From<i32> for Value {
    fn from(i: i32) -> Value {
        Value::Int(i64::from(i))
    }
}
impl From<u32> for Value {
    fn from(i: u32) -> Value {
        Value::Int(i64::from(i))
    }
}
impl From<u16> for Value {
    fn from(i: u16) -> Value {
        Value::Int(i64::from(i))
    }
}
impl From<usize> for Value {
    fn from(i: usize) -> Value {
        Value::Int(i64::try_from(i).unwrap_or(i64::MAX))
    }
}
impl From<f64> for Value {
    fn from(f: f64) -> Value {
        Value::Float(f)
    }
}
impl From<Object> for Value {
    fn from(o: Object) -> Value {
        Value::Object(o)
    }
}
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Value {
        Value::Array(items.into_iter().collect())
    }
}

/// A [`Value`] written as JSON-like literal: `json!({"a": [1, x, {"b": null}], (key): "v"})`. Any expression that is
/// `Into<Value>` may stand for a value, and a parenthesised expression for a key.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Value::Null };
    ([]) => { $crate::Value::Array(::std::vec::Vec::new()) };
    ([ $($tt:tt)+ ]) => { $crate::Value::Array($crate::json_items!([] $($tt)+)) };
    ({}) => { $crate::Value::object() };
    ({ $($tt:tt)+ }) => {{
        let mut object = $crate::Object::new();
        $crate::json_members!(object $($tt)+);
        $crate::Value::Object(object)
    }};
    ($other:expr) => { $crate::Value::from($other) };
}

/// The items of [`json!`]'s lists.
#[doc(hidden)]
#[macro_export]
macro_rules! json_items {
    ([ $($done:expr),* ]) => { ::std::vec![ $($done),* ] };
    ([ $($done:expr),* ] null $(, $($rest:tt)*)?) => { $crate::json_items!([ $($done,)* $crate::json!(null) ] $($($rest)*)?) };
    ([ $($done:expr),* ] [ $($inner:tt)* ] $(, $($rest:tt)*)?) => { $crate::json_items!([ $($done,)* $crate::json!([ $($inner)* ]) ] $($($rest)*)?) };
    ([ $($done:expr),* ] { $($inner:tt)* } $(, $($rest:tt)*)?) => { $crate::json_items!([ $($done,)* $crate::json!({ $($inner)* }) ] $($($rest)*)?) };
    ([ $($done:expr),* ] $next:expr $(, $($rest:tt)*)?) => { $crate::json_items!([ $($done,)* $crate::json!($next) ] $($($rest)*)?) };
}

/// The members of [`json!`]'s objects.
#[doc(hidden)]
#[macro_export]
macro_rules! json_members {
    ($object:ident) => {};
    ($object:ident $key:literal : null $(, $($rest:tt)*)?) => { $object.insert($key, $crate::Value::Null); $crate::json_members!($object $($($rest)*)?); };
    ($object:ident $key:literal : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => { $object.insert($key, $crate::json!([ $($inner)* ])); $crate::json_members!($object $($($rest)*)?); };
    ($object:ident $key:literal : { $($inner:tt)* } $(, $($rest:tt)*)?) => { $object.insert($key, $crate::json!({ $($inner)* })); $crate::json_members!($object $($($rest)*)?); };
    ($object:ident $key:literal : $value:expr $(, $($rest:tt)*)?) => { $object.insert($key, $crate::Value::from($value)); $crate::json_members!($object $($($rest)*)?); };
    ($object:ident ($key:expr) : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => { $object.insert(&$key, $crate::json!([ $($inner)* ])); $crate::json_members!($object $($($rest)*)?); };
    ($object:ident ($key:expr) : { $($inner:tt)* } $(, $($rest:tt)*)?) => { $object.insert(&$key, $crate::json!({ $($inner)* })); $crate::json_members!($object $($($rest)*)?); };
    ($object:ident ($key:expr) : $value:expr $(, $($rest:tt)*)?) => { $object.insert(&$key, $crate::Value::from($value)); $crate::json_members!($object $($($rest)*)?); };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_is_total() {
        let v = json!({"a": {"b": [1, "x", null]}, "n": null});
        assert_eq!(v["a"]["b"].items().len(), 3);
        assert!(v["a"]["zz"]["deep"].is_null());
        assert!(v.has("n") && !v.has("m"));
        assert_eq!(v.at("a.b").items()[1].as_str(), Some("x"));
    }

    #[test]
    fn making_paths() {
        let mut v = Value::Null;
        *v.make("spec.template.x") = 3.into();
        v.set("kind", "Pod");
        assert_eq!(v.to_json_string(), r#"{"kind":"Pod","spec":{"template":{"x":3}}}"#);
        assert_eq!(v.remove_at("spec.template.x"), Value::Int(3));
        assert_eq!(v.to_json_string(), r#"{"kind":"Pod","spec":{"template":{}}}"#);
    }
}
