//! The values of the language. JSON is not copied: lists, maps and texts of the input are looked at where they are,
//! and each part becomes a value only when an expression asks for it.

use super::map::Map;
use crate::authz::Authz;
use crate::decl::{Decl, Shape};
use crate::golang::ip::{Addr, Prefix};
use crate::golang::url::Url;
use crate::golang::{base64, duration};
use crate::library::formats::Format;
use crate::library::semver::Semver;
use crate::time::{self, Timestamp};
use pintle_apimachinery::Value;
use pintle_apimachinery::quantity::Quantity;
use std::rc::Rc;
use std::sync::Arc;

/// Why evaluating failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Something went wrong; `||` and `&&` may disregard it.
    Error(Rc<str>),
    /// A function was applied to values it does not take; the caller says which.
    NoOverload,
    /// The evaluation cost more than it may.
    CostExceeded,
}

impl Failure {
    /// A failure with a text.
    #[must_use]
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Error(text.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Error(text) => text,
            Self::NoOverload => "no such overload",
            Self::CostExceeded => "operation cancelled: actual cost limit exceeded",
        })
    }
}

/// What evaluating yields.
pub type Eval<T> = Result<T, Failure>;

/// A value.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the simple values are of the types they are named after")]
pub enum Val<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'v>),
    Bytes(Rc<[u8]>),
    /// In nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'v>),
    Map(Map<'v>),
    Optional(Option<Rc<Val<'v>>>),
    /// A type, by its name.
    Type(Rc<str>),
    /// JSON of no declared type; it can be compared and no more.
    Preserved(&'v Value),
    /// A value of the Kubernetes libraries.
    Library(Rc<Library<'v>>),
}

/// A text, of the input or made.
#[derive(Debug, Clone)]
pub enum Text<'v> {
    /// A text that was there before.
    Borrowed(&'v str),
    /// A text that was made.
    Shared(Rc<str>),
}

impl Text<'_> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// A value of the Kubernetes libraries.
#[derive(Debug)]
#[expect(missing_docs, reason = "the values are of the types they are named after")]
pub enum Library<'v> {
    Url(Url),
    Ip(Addr),
    Cidr(Prefix),
    Quantity(Quantity),
    Semver(Semver),
    Format(&'static Format),
    Authz(Authz<'v>),
}

/// A constant of a program.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the values are of the types they are named after")]
pub enum Frozen {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    Duration(i64),
    Timestamp(Timestamp),
    List(Vec<Frozen>),
    Map(Vec<(Frozen, Frozen)>),
    Type(Arc<str>),
}

/// A list, of the input, of the program, or made.
#[derive(Debug, Clone)]
pub enum List<'v> {
    /// A list of the input, with the type of its elements if it is declared.
    Json(&'v [Value], Option<&'v Decl>),
    /// A constant of the program.
    Frozen(&'v [Frozen]),
    /// A list that was made, with what it was declared as if it is a changed list of the input.
    Made(Rc<Vec<Val<'v>>>, Option<&'v Decl>),
}

impl<'v> Val<'v> {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// A text of the input or the program.
    #[must_use]
    pub const fn str(text: &'v str) -> Self {
        Self::String(Text::Borrowed(text))
    }

    /// A list.
    #[must_use]
    pub fn list(values: Vec<Self>) -> Self {
        Self::List(List::Made(Rc::new(values), None))
    }

    /// A value of the Kubernetes libraries.
    #[must_use]
    pub fn library(value: Library<'v>) -> Self {
        Self::Library(Rc::new(value))
    }

    /// An optional that holds a value.
    #[must_use]
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// An optional that holds nothing.
    pub const NONE: Self = Self::Optional(None);

    /// A JSON value of no declared type.
    #[must_use]
    pub fn json(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Float(value) => Self::Double(*value),
            Value::String(text) => Self::str(text),
            Value::Array(items) => Self::List(List::Json(items, None)),
            Value::Object(object) => Self::Map(Map::Json(object, None)),
        }
    }

    /// A JSON value of a declared type.
    ///
    /// # Errors
    /// Why it is no value of the type.
    pub fn declared(value: &'v Value, decl: &'v Decl) -> Eval<Self> {
        if matches!(decl.shape, Shape::Dyn) {
            return Ok(Self::json(value));
        }
        let wrong = |text: &str| Err(Failure::text(text));
        let not =
            |expected: &str| Err(Failure::text(format!("invalid data, expected {expected}, got {}", go_type(value))));
        match (&decl.shape, value) {
            (_, Value::Null) if decl.is_nullable => Ok(Self::Null),
            (_, Value::Null) => wrong("invalid data, got null for schema with nullable=false"),
            (Shape::IntOrString, Value::String(text)) => Ok(Self::str(text)),
            (Shape::IntOrString, Value::Int(int)) => Ok(Self::Int(*int)),
            (Shape::IntOrString, _) => {
                wrong("invalid data, expected XIntOrString value to be either a string or integer")
            }
            (Shape::Object(_) | Shape::Map(_), Value::Object(object)) => Ok(Self::Map(Map::Json(object, Some(decl)))),
            (Shape::Object(_) | Shape::Map(_), _) => {
                wrong("invalid data, expected a map for the provided schema with type=object")
            }
            (Shape::List(..), Value::Array(items)) => Ok(Self::List(List::Json(items, Some(decl)))),
            (Shape::List(..), _) => wrong("invalid data, expected an array for the provided schema with type=array"),
            (Shape::String, Value::String(text)) => Ok(Self::str(text)),
            (Shape::Bytes | Shape::Duration | Shape::Date | Shape::DateTime, Value::String(text)) => {
                formatted(&decl.shape, text)
            }
            (Shape::String | Shape::Bytes | Shape::Duration | Shape::Date | Shape::DateTime, _) => not("string"),
            (Shape::Double, Value::Int(int)) => Ok(Self::Double(*int as f64)),
            (Shape::Double, Value::Float(double)) => Ok(Self::Double(*double)),
            (Shape::Double, _) => not("float"),
            (Shape::Int, Value::Int(int)) => Ok(Self::Int(*int)),
            (Shape::Int, _) => not("int"),
            (Shape::Bool, Value::Bool(bool)) => Ok(Self::Bool(*bool)),
            (Shape::Bool, _) => not("bool"),
            (Shape::Preserved, _) => Ok(Self::Preserved(value)),
            (Shape::Dyn | Shape::Library(_), _) => Ok(Self::json(value)),
        }
    }

    /// The name of the value's type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Preserved(_) => "unknown",
            Self::Library(library) => library.type_name(),
        }
    }

    /// How large the value is where costs depend on it: characters, bytes, elements or entries; one for all else.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.as_str().chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Optional(Some(held)) => held.size(),
            Self::Library(library) => match library.as_ref() {
                Library::Ip(addr) => u64::from(addr.bit_len().div_ceil(8)),
                Library::Cidr(prefix) => u64::from(prefix.bits).div_ceil(8),
                _ => 1,
            },
            _ => 1,
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl Library<'_> {
    /// The name of the value's type.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Authz(authz) => authz.type_name(),
        }
    }
}

/// How Go calls a JSON value's type.
const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn formatted<'v>(shape: &Shape, text: &str) -> Eval<Val<'v>> {
    let wrong = |what: &str, why: String| Failure::text(format!("{what} {text}: {why}"));
    match shape {
        Shape::Duration => duration::parse_loose(text).map(Val::Duration).map_err(|why| wrong("Invalid duration", why)),
        Shape::Date => {
            let date = time::parse_date(text);
            date.map(Val::Timestamp).ok_or_else(|| wrong("Invalid date formatted string", time::go_fault(text)))
        }
        Shape::DateTime => {
            let parsed = time::parse_date_time(text);
            parsed.map(Val::Timestamp).ok_or_else(|| wrong("Invalid date-time formatted string", time::go_fault(text)))
        }
        _ => base64::decode(text)
            .map(|bytes| Val::Bytes(bytes.into()))
            .map_err(|why| wrong("Invalid byte formatted string", why)),
    }
}

impl Frozen {
    /// The constant as a value.
    #[must_use]
    pub fn value(&self) -> Val<'_> {
        match self {
            Self::Null => Val::Null,
            Self::Bool(value) => Val::Bool(*value),
            Self::Int(value) => Val::Int(*value),
            Self::Uint(value) => Val::Uint(*value),
            Self::Double(value) => Val::Double(*value),
            Self::String(text) => Val::str(text),
            Self::Bytes(bytes) => Val::Bytes(bytes.as_ref().into()),
            Self::Duration(nanos) => Val::Duration(*nanos),
            Self::Timestamp(at) => Val::Timestamp(*at),
            Self::List(items) => Val::List(List::Frozen(items)),
            Self::Map(entries) => Map::made(entries.iter().map(|(key, value)| (key.value(), value.value()))),
            Self::Type(name) => Val::Type(name.as_ref().into()),
        }
    }

    /// The value as a constant, if it can be one.
    #[must_use]
    pub fn of(value: &Val<'_>) -> Option<Self> {
        Some(match value {
            Val::Null => Self::Null,
            Val::Bool(value) => Self::Bool(*value),
            Val::Int(value) => Self::Int(*value),
            Val::Uint(value) => Self::Uint(*value),
            Val::Double(value) => Self::Double(*value),
            Val::String(text) => Self::String(text.as_str().into()),
            Val::Bytes(bytes) => Self::Bytes(bytes.as_ref().into()),
            Val::Duration(nanos) => Self::Duration(*nanos),
            Val::Timestamp(at) => Self::Timestamp(*at),
            Val::Type(name) => Self::Type(name.as_ref().into()),
            Val::List(List::Frozen(items)) => Self::List(items.to_vec()),
            _ => return None,
        })
    }
}

impl<'v> List<'v> {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items, _) => items.len(),
            Self::Frozen(items) => items.len(),
            Self::Made(items, _) => items.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the list is declared as.
    #[must_use]
    pub const fn decl(&self) -> Option<&'v Decl> {
        match self {
            Self::Json(_, decl) | Self::Made(_, decl) => *decl,
            Self::Frozen(_) => None,
        }
    }

    /// An element; none beyond the end.
    ///
    /// # Errors
    /// When the element is no value of its declared type.
    pub fn get(&self, index: usize) -> Eval<Option<Val<'v>>> {
        match self {
            Self::Json(items, decl) => items.get(index).map(|item| element(item, *decl)).transpose(),
            Self::Frozen(items) => Ok(items.get(index).map(Frozen::value)),
            Self::Made(items, _) => Ok(items.get(index).cloned()),
        }
    }

    /// The elements.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Eval<Val<'v>>> + '_ {
        (0..self.len()).map(|index| self.get(index).map(|found| found.unwrap_or(Val::Null)))
    }

    /// The elements, as values of their own.
    ///
    /// # Errors
    /// When one is no value of its declared type.
    pub fn to_vec(&self) -> Eval<Vec<Val<'v>>> {
        self.iter().collect()
    }
}

fn element<'v>(item: &'v Value, decl: Option<&'v Decl>) -> Eval<Val<'v>> {
    match decl {
        Some(Decl { shape: Shape::List(of, _), .. }) => Val::declared(item, of),
        _ => Ok(Val::json(item)),
    }
}
