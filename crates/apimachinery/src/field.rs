//! Field paths and field errors: what validation finds, in upstream's words.
//!
//! Follows: apimachinery/pkg/util/validation/field (v0.35).

use crate::value::{go_g, html_escaped};
use crate::{Str, Value};
use std::fmt::{self, Write as _};

/// Where a field stands in an object, as `spec.containers[0].ports[1].name` or `metadata.labels[a/b]`.
///
/// Cheap to extend: each child borrows its parent, and text is made only when an error needs it.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// Nothing: the object itself.
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself; children of it are written without a leading dot.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// A top-level field.
    pub const fn new(name: &'a str) -> Path<'a> {
        Path { parent: None, step: Step::Child(name) }
    }

    /// A field of the object at this path. `name` may hold several names with dots between.
    #[must_use]
    pub const fn child(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Child(name) }
    }

    /// An item of the list at this path.
    #[must_use]
    pub const fn index(&'a self, idx: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(idx) }
    }

    /// An entry of the map at this path.
    #[must_use]
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_parent = match self.parent {
            Some(parent) => {
                parent.fmt(f)?;
                !matches!(parent.step, Step::Root) || parent.parent.is_some()
            }
            None => false,
        };
        match self.step {
            Step::Root => Ok(()),
            Step::Child(name) if has_parent => write!(f, ".{name}"),
            Step::Child(name) => f.write_str(name),
            Step::Index(idx) => write!(f, "[{idx}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorType {
    /// A value that refers to something cannot be found.
    NotFound,
    /// A required value is absent.
    Required,
    /// A value that must be unique stands there twice.
    Duplicate,
    /// A malformed value.
    Invalid,
    /// A value that an enumeration does not have.
    NotSupported,
    /// A well-formed value that present conditions do not allow.
    Forbidden,
    /// Too many bytes.
    TooLong,
    /// Too many items.
    TooMany,
    /// Something else that the user cannot mend.
    Internal,
    /// The value is not of the schema's type.
    TypeInvalid,
}

impl ErrorType {
    /// The `reason` of a Status cause.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorType::NotFound => "FieldValueNotFound",
            ErrorType::Required => "FieldValueRequired",
            ErrorType::Duplicate => "FieldValueDuplicate",
            ErrorType::Invalid => "FieldValueInvalid",
            ErrorType::NotSupported => "FieldValueNotSupported",
            ErrorType::Forbidden => "FieldValueForbidden",
            ErrorType::TooLong => "FieldValueTooLong",
            ErrorType::TooMany => "FieldValueTooMany",
            ErrorType::Internal => "InternalError",
            ErrorType::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The first words of the message.
    pub fn words(self) -> &'static str {
        match self {
            ErrorType::NotFound => "Not found",
            ErrorType::Required => "Required value",
            ErrorType::Duplicate => "Duplicate value",
            ErrorType::Invalid | ErrorType::TypeInvalid => "Invalid value",
            ErrorType::NotSupported => "Unsupported value",
            ErrorType::Forbidden => "Forbidden",
            ErrorType::TooLong => "Too long",
            ErrorType::TooMany => "Too many",
            ErrorType::Internal => "Internal error",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorType,
    /// Where; `<nil>` for the root.
    pub field: String,
    /// The value as the message shows it; `None` where messages of the kind show none.
    pub shown: Option<String>,
    /// The rule that was broken.
    pub detail: String,
}

impl FieldError {
    fn new(kind: ErrorType, field: &Path<'_>, shown: Option<String>, detail: impl Into<String>) -> FieldError {
        let mut text = String::new();
        write!(text, "{field}").expect("writing to a String cannot fail");
        FieldError { kind, field: text, shown, detail: detail.into() }
    }

    /// A malformed value.
    pub fn invalid(field: &Path<'_>, value: impl Shown, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Invalid, field, Some(value.shown()), detail)
    }

    /// A malformed value whose message does not show it.
    pub fn invalid_omit_value(field: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Invalid, field, None, detail)
    }

    /// A value that is not of the schema's type.
    pub fn type_invalid(field: &Path<'_>, value: impl Shown, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::TypeInvalid, field, Some(value.shown()), detail)
    }

    /// A required value that is absent. `detail` may be empty.
    pub fn required(field: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Required, field, None, detail)
    }

    /// A value that must be unique and is not.
    pub fn duplicate(field: &Path<'_>, value: impl Shown) -> FieldError {
        FieldError::new(ErrorType::Duplicate, field, Some(value.shown()), "")
    }

    /// A reference to something that cannot be found.
    pub fn not_found(field: &Path<'_>, value: impl Shown) -> FieldError {
        FieldError::new(ErrorType::NotFound, field, Some(value.shown()), "")
    }

    /// A value that is none of `supported`, which are told in the order given (upstream mostly sorts them).
    pub fn not_supported<S: AsRef<str>>(field: &Path<'_>, value: impl Shown, supported: &[S]) -> FieldError {
        let detail = if supported.is_empty() {
            String::new()
        } else {
            let quoted: Vec<String> = supported.iter().map(|s| go_quote(s.as_ref())).collect();
            format!("supported values: {}", quoted.join(", "))
        };
        FieldError::new(ErrorType::NotSupported, field, Some(value.shown()), detail)
    }

    /// A value that present conditions do not allow.
    pub fn forbidden(field: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Forbidden, field, None, detail)
    }

    /// A value of more than `bytes_max` bytes.
    pub fn too_long(field: &Path<'_>, bytes_max: usize) -> FieldError {
        let unit = if bytes_max == 1 { "byte" } else { "bytes" };
        FieldError::new(ErrorType::TooLong, field, None, format!("may not be more than {bytes_max} {unit}"))
    }

    /// A list of `actual` items where at most `items_max` may be.
    pub fn too_many(field: &Path<'_>, actual: usize, items_max: usize) -> FieldError {
        let unit = if items_max == 1 { "item" } else { "items" };
        FieldError::new(
            ErrorType::TooMany,
            field,
            Some(actual.to_string()),
            format!("must have at most {items_max} {unit}"),
        )
    }

    /// Something that the user cannot mend.
    pub fn internal(field: &Path<'_>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorType::Internal, field, None, detail)
    }

    /// The message without the field.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if let Some(shown) = &self.shown {
            text.push_str(": ");
            text.push_str(shown);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Everything that validation found, in order.
pub type ErrorList = Vec<FieldError>;

/// The messages of `errors` as upstream joins them: each once, in brackets when there are several.
pub fn aggregate<T: fmt::Display>(errors: &[T]) -> String {
    let mut texts: Vec<String> = Vec::with_capacity(errors.len());
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.len() {
        1 => texts.remove(0),
        _ => format!("[{}]", texts.join(", ")),
    }
}

/// How a value shows in a message: strings quoted as Go quotes them, numbers plain, all else as JSON.
pub trait Shown {
    /// The text.
    fn shown(&self) -> String;
}

impl Shown for str {
    fn shown(&self) -> String {
        go_quote(self)
    }
}
impl Shown for String {
    fn shown(&self) -> String {
        go_quote(self)
    }
}
impl Shown for Str {
    fn shown(&self) -> String {
        go_quote(self)
    }
}
impl Shown for i64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl Shown for i32 {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl Shown for usize {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl Shown for bool {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl Shown for Value {
    fn shown(&self) -> String {
        match self {
            Value::String(s) => go_quote(s),
            Value::Float(f) => go_g(*f),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Array(_) | Value::Object(_) => html_escaped(self),
        }
    }
}
impl<T: Shown + ?Sized> Shown for &T {
    fn shown(&self) -> String {
        (**self).shown()
    }
}

/// `text` in double quotes, escaped as Go's `strconv.Quote` does.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\0'..='\u{1f}' | '\u{7f}' => {
                write!(out, "\\x{:02x}", u32::from(c)).expect("writing to a String cannot fail");
            }
            '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{feff}' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a String cannot fail");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn messages() {
        let spec = Path::new("spec");
        let ports = spec.child("ports");
        let first = ports.index(0);
        let name = first.child("name");
        assert_eq!(
            FieldError::invalid(&name, "A b", "must be lower case").to_string(),
            "spec.ports[0].name: Invalid value: \"A b\": must be lower case"
        );
        assert_eq!(FieldError::required(&name, "").to_string(), "spec.ports[0].name: Required value");
        assert_eq!(
            FieldError::not_supported(&name, "x", &["A", "B"]).to_string(),
            "spec.ports[0].name: Unsupported value: \"x\": supported values: \"A\", \"B\""
        );
        assert_eq!(FieldError::invalid(&ports, &json!({"a": 1}), "").body(), "Invalid value: {\"a\":1}");
        assert_eq!(
            FieldError::invalid(&ports, &json!({"a": "<x>"}), "").body(),
            r#"Invalid value: {"a":"\u003cx\u003e"}"#
        );
        assert_eq!(FieldError::invalid(&ports, json!(1e6), "").body(), "Invalid value: 1e+06");
        assert_eq!(
            FieldError::too_long(&spec.key("a/b"), 63).to_string(),
            "spec[a/b]: Too long: may not be more than 63 bytes"
        );
        assert_eq!(Path::ROOT.child("a").child("b").to_string(), "a.b");
    }

    #[test]
    fn aggregates_tell_each_message_once() {
        assert_eq!(aggregate(&["a"]), "a");
        assert_eq!(aggregate(&["a", "b", "a"]), "[a, b]");
    }
}
