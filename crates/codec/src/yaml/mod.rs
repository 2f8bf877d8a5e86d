//! YAML as Kubernetes reads and writes it: the scalars of YAML 1.1 (`yes` is a boolean, `0777` a number), keys turned
//! into strings, and only the first document of a stream counts.
//!
//! JSON is YAML, and most of what arrives as YAML is JSON: it is read as such. Everything else goes through a node tree,
//! because aliases and merge keys need it.
//!
//! Follows: sigs.k8s.io/yaml v1.6 over go.yaml.in/yaml v2, texts of errors included where the parser allows.

mod decode;
mod nodes;
mod scalar;
mod write;

pub use write::write;

use pintle_apimachinery::{Object, Value, value};

/// A document, and the keys that stand in it twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The document; of equal keys the last one counts.
    pub value: Value,
    /// `line 5: key "name" already set in map`, in document order.
    pub duplicates: Vec<String>,
}

impl Parsed {
    /// The error of a strict reader, if there are duplicates.
    pub fn strict_error(&self) -> Option<String> {
        if self.duplicates.is_empty() {
            return None;
        }
        Some(format!("yaml: unmarshal errors:\n  {}", self.duplicates.join("\n  ")))
    }
}

/// Why a text is no YAML, or none that JSON can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct YamlError(pub String);

/// Reads the first document. An empty text is `null`.
///
/// # Errors
/// [`YamlError`] when the text is no YAML, has keys or numbers that JSON has no form for, or takes more than its size
/// allows by aliases or depth.
pub fn parse(input: &[u8]) -> Result<Parsed, YamlError> {
    if let Some(value) = parse_json(input) {
        return Ok(Parsed { value, duplicates: Vec::new() });
    }
    let text = std::str::from_utf8(input).map_err(|_| YamlError("yaml: invalid leading UTF-8 octet".to_owned()))?;
    let tree = nodes::Tree::parse(text)?;
    decode::decode(&tree)
}

/// The document, if it is JSON without duplicate keys (whose lines only the YAML reader knows).
fn parse_json(input: &[u8]) -> Option<Value> {
    let begins = input.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if !matches!(begins, b'{' | b'[') {
        return None;
    }
    let parsed = value::parse_free(input).ok()?;
    if !parsed.issues.strict.is_empty() {
        return None;
    }
    Some(whole_numbers(parsed.value))
}

/// YAML has no floats that are whole: `1.0` and `1e3` are integers when they come out of it.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Float(f) => decode::number(f),
        Value::Array(items) => Value::Array(items.into_iter().map(whole_numbers).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, member)| (key, whole_numbers(member))).collect::<Object>())
        }
        other => other,
    }
}
