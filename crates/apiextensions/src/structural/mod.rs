//! Structural schemas: a version's `openAPIV3Schema` as a tree, and what it does to objects.
//!
//! [`Structural`] holds a whole schema node, junctors (`allOf`, `anyOf`, `oneOf`, `not`) included, so one type serves
//! the structure and the value validations in it. Whether a schema is structural at all is checked when its definition
//! is written.
//!
//! Follows: apiextensions-apiserver/pkg/apiserver/schema (v0.35).

pub mod compile;
pub mod correlate;
pub mod default;
pub mod fieldpath;
pub mod listtype;
pub mod objectmeta;
pub mod openapi;
pub mod prune;
pub mod typed;

use pintle_apimachinery::{Str, Value};
use pintle_cel::regexp::Regexp;

/// The type that a schema node names.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Type {
    /// None: int-or-string, preserved unknown fields, or a node inside a junctor.
    #[default]
    Unset,
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
    /// Something else, which the validation of definitions refuses.
    Other(Str),
}

impl Type {
    /// The word in the schema; empty for none.
    pub fn as_str(&self) -> &str {
        match self {
            Type::Unset => "",
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::Other(word) => word,
        }
    }

    fn parse(word: &str) -> Type {
        match word {
            "" => Type::Unset,
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            other => Type::Other(Str::new(other)),
        }
    }
}

/// What `additionalProperties` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Additional {
    /// Nothing.
    #[default]
    Unset,
    /// `true` or `false`.
    Bool(bool),
    /// A schema for every member that is no property.
    Schema(Box<Structural>),
}

impl Additional {
    /// The schema, if it is one.
    pub fn schema(&self) -> Option<&Structural> {
        match self {
            Additional::Schema(schema) => Some(schema),
            Additional::Unset | Additional::Bool(_) => None,
        }
    }

    /// Whether it is given at all.
    pub fn is_set(&self) -> bool {
        !matches!(self, Additional::Unset)
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// Not given, which means atomic.
    #[default]
    Unset,
    /// One value.
    Atomic,
    /// Each item once.
    Set,
    /// Items known by their keys.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// Not given, which means granular.
    #[default]
    Unset,
    /// Each member for itself.
    Granular,
    /// One value.
    Atomic,
}

/// One rule of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What is told when it is false; empty for a text made of the rule.
    pub message: String,
    /// An expression that makes the message; empty for none.
    pub message_expression: String,
    /// The reason of the error; empty for `FieldValueInvalid`.
    pub reason: Str,
    /// The field of the error, relative to the node; empty for the node itself.
    pub field_path: String,
    /// `optionalOldSelf`, if given.
    pub optional_old_self: Option<bool>,
}

/// A regular expression of a schema: compiled, or why it does not compile.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The text in the schema.
    pub text: Str,
    /// The expression; `Err` holds Go's words.
    pub compiled: Result<Regexp, String>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

/// What a node asks of values beside their structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// `format`.
    pub format: Str,
    /// `maximum`.
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// `minimum`.
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `maxLength`.
    pub max_length: Option<i64>,
    /// `minLength`.
    pub min_length: Option<i64>,
    /// `pattern`.
    pub pattern: Option<Pattern>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// `enum`.
    pub enumeration: Vec<Value>,
    /// `required`.
    pub required: Vec<Str>,
    /// `allOf`.
    pub all_of: Vec<Structural>,
    /// `anyOf`.
    pub any_of: Vec<Structural>,
    /// `oneOf`.
    pub one_of: Vec<Structural>,
    /// `not`.
    pub not: Option<Box<Structural>>,
}

/// A node of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Structural {
    /// `type`.
    pub ty: Type,
    /// `title`.
    pub title: Str,
    /// Whether there is a `description`.
    pub has_description: bool,
    /// `nullable`.
    pub is_nullable: bool,
    /// `default`, unless absent or null.
    pub default: Option<Value>,
    /// `properties`, sorted by name.
    pub properties: Vec<(Str, Structural)>,
    /// `additionalProperties`.
    pub additional: Additional,
    /// `items`.
    pub items: Option<Box<Structural>>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserves_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub is_embedded: bool,
    /// `x-kubernetes-int-or-string`.
    pub is_int_or_string: bool,
    /// `x-kubernetes-list-type`.
    pub list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<Str>,
    /// `x-kubernetes-map-type`.
    pub map_type: MapType,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// All else; `None` where nothing else is said.
    pub checks: Option<Box<Checks>>,
}

static NO_CHECKS: Checks = Checks {
    format: Str::const_new(""),
    maximum: None,
    exclusive_maximum: false,
    minimum: None,
    exclusive_minimum: false,
    multiple_of: None,
    max_length: None,
    min_length: None,
    pattern: None,
    max_items: None,
    min_items: None,
    unique_items: false,
    max_properties: None,
    min_properties: None,
    enumeration: Vec::new(),
    required: Vec::new(),
    all_of: Vec::new(),
    any_of: Vec::new(),
    one_of: Vec::new(),
    not: None,
};

impl Structural {
    /// The property of this name.
    pub fn property(&self, name: &str) -> Option<&Structural> {
        let found = self.properties.binary_search_by(|(n, _)| n.as_str().cmp(name));
        found.ok().map(|idx| &self.properties[idx].1)
    }

    /// The schema of the member `name`: its property's, or that of additional properties.
    pub fn member(&self, name: &str) -> Option<&Structural> {
        self.property(name).or_else(|| self.additional.schema())
    }

    /// What it asks of values.
    pub fn checks(&self) -> &Checks {
        self.checks.as_deref().unwrap_or(&NO_CHECKS)
    }

    /// This node as the root of an object, whose type and metadata fields are known without being declared.
    pub(crate) fn is_root_or_embedded(&self, is_root: bool) -> bool {
        is_root || self.is_embedded
    }
}

/// The fields of objects that a schema need not declare.
pub(crate) fn is_meta_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

#[cfg(test)]
mod tests;
