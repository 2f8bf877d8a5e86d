//! Decoding along a schema: what Go's decoder and encoder together make of a document. Unknown fields are dropped and
//! told, wrong types told in Go's words, zero values dropped or added by each field's rules, quantities and times
//! brought to their canonical form.

use crate::types::{Field, Node, Schema, Shape, ShapeId, TypeId};
use crate::{builtin, type_named};
use base64::Engine as _;
use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::value::{FieldGuide, Guide, Mismatch, ParseError, Parsed, Scalar, parse_guided};
use pintle_apimachinery::{Object, Str, Value, time};

/// Reads JSON as the type `id` of the built-in schema.
///
/// # Errors
/// [`ParseError`] when `input` is no JSON. Type errors and strictness faults are in [`Parsed::issues`].
pub fn decode(input: &[u8], id: TypeId) -> Result<Parsed, ParseError> {
    parse_guided(input, Walk(builtin().root(id)))
}

/// [`decode`] of a document that is a value already.
///
/// # Errors
/// As [`decode`]; a value that nests too deep is the only fault it can have.
pub fn decode_value(value: &Value, id: TypeId) -> Result<Parsed, ParseError> {
    decode(&value.to_json(), id)
}

/// The value that a field of this shape has when nothing was said of it and it is written all the same.
pub fn zero_value(node: Node<'_>) -> Value {
    match node.shape() {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => Value::Int(0),
        Shape::String => Value::String(Str::default()),
        Shape::Quantity => Value::from("0"),
        Shape::Struct { id, .. } => {
            let ty = node.schema.ty(*id);
            let fields = node.schema.fields(ty).iter();
            let members = fields.filter_map(|f| Some((f.name.clone(), absent_member(node.schema, f)?)));
            Value::Object(members.collect::<Object>())
        }
        Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Raw
        | Shape::FieldsV1
        | Shape::SchemaOrBool
        | Shape::SchemaOrArray
        | Shape::SchemaOrStrings
        | Shape::StringList
        | Shape::List { .. }
        | Shape::Map { .. }
        | Shape::Any => Value::Null,
    }
}

/// What stands for an absent field of a struct; `None` where nothing does.
pub fn absent_member(schema: &Schema, field: &Field) -> Option<Value> {
    if !schema.is_always_written(field) {
        return None;
    }
    let is_null = field.is_pointer;
    Some(if is_null { Value::Null } else { zero_value(Node { schema, shape: field.shape }) })
}

/// Turns empty lists and maps that are always written into `null`: what is stored does not tell them from absent ones,
/// as upstream's protobuf does not, while the owners of fields and the texts of refusals do.
pub fn forget_empty(value: &mut Value, node: Node<'_>) {
    match (node.shape(), value) {
        (Shape::Struct { id, .. }, Value::Object(members)) => {
            let ty = node.schema.ty(*id);
            for (name, member) in members.iter_mut() {
                if !matches!(member, Value::Array(_) | Value::Object(_)) {
                    continue;
                }
                let Some(field) = node.schema.field(ty, name) else { continue };
                let below = node.with(field.shape);
                if is_empty_collection(below.shape(), member) && node.schema.is_always_written(field) {
                    *member = absent_member(node.schema, field).unwrap_or_default();
                } else {
                    forget_empty(member, below);
                }
            }
        }
        (Shape::List { item, .. }, Value::Array(items)) => {
            items.iter_mut().for_each(|member| forget_empty(member, node.with(*item)));
        }
        (Shape::Map { value, .. }, Value::Object(members)) => {
            members.iter_mut().for_each(|(_, member)| forget_empty(member, node.with(*value)));
        }
        _ => {}
    }
}

fn is_empty_collection(shape: &Shape, value: &Value) -> bool {
    match value {
        // a list in a message of its own is told from none
        Value::Array(items) => items.is_empty() && matches!(shape, Shape::List { .. }),
        Value::Object(members) => members.is_empty() && matches!(shape, Shape::Map { .. }),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => false,
    }
}

/// The list whose emptiness asks to forget all owners. What a write makes of it is not empty
/// (`pintle_patch::apply::update`).
const MANAGED_FIELDS: &str = "managedFields";

/// The lists that are told from absent ones when they are empty. Besides owners, the policies of an autoscaler's
/// behavior: absent ones have defaults, empty ones are refused.
const TOLD_WHEN_EMPTY: [&str; 2] = [MANAGED_FIELDS, "policies"];

/// The guide of a schema.
#[derive(Clone, Copy)]
struct Walk<'s>(Node<'s>);

impl<'s> Walk<'s> {
    fn with(self, shape: ShapeId) -> Walk<'s> {
        Walk(self.0.with(shape))
    }

    fn mismatch(self, value: impl Into<String>) -> Mismatch {
        Mismatch::Type { value: value.into(), go_type: go_type(self.0) }
    }

    /// The schema of JSONSchemaProps, where one may stand here beside something else.
    fn schema_props(self) -> Option<Walk<'static>> {
        match self.0.shape() {
            Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings => {
                type_named("apiextensions/v1.JSONSchemaProps").map(|id| Walk(builtin().root(id)))
            }
            _ => None,
        }
    }
}

fn go_type(node: Node<'_>) -> String {
    match node.shape() {
        Shape::Bool => "bool".to_owned(),
        Shape::Int32 | Shape::IntOrString => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Float => "float64".to_owned(),
        Shape::String | Shape::Time | Shape::MicroTime | Shape::Quantity => "string".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::StringList => "[]string".to_owned(),
        Shape::Struct { id, .. } => node.schema.ty(*id).go_name().to_owned(),
        Shape::List { item, .. } => format!("[]{}", go_type(node.with(*item))),
        Shape::Map { value, .. } => format!("map[string]{}", go_type(node.with(*value))),
        Shape::Raw
        | Shape::FieldsV1
        | Shape::SchemaOrBool
        | Shape::SchemaOrArray
        | Shape::SchemaOrStrings
        | Shape::Any => "interface {}".to_owned(),
    }
}

impl<'s> Guide for Walk<'s> {
    fn member(self, key: &str) -> FieldGuide<Self> {
        match self.0.shape() {
            Shape::Struct { id, .. } => {
                let schema = self.0.schema;
                let Some(field) = schema.field(schema.ty(*id), key) else { return FieldGuide::Unknown };
                FieldGuide::Known {
                    guide: self.with(field.shape),
                    name: field.name.as_static_str(),
                    omit_empty: schema.is_dropped_when_empty(field) && !TOLD_WHEN_EMPTY.contains(&field.name.as_str()),
                    is_field: true,
                }
            }
            Shape::Map { value, .. } => {
                FieldGuide::Known { guide: self.with(*value), name: None, omit_empty: false, is_field: false }
            }
            _ => match self.schema_props() {
                Some(props) => match props.member(key) {
                    FieldGuide::Known { guide, name, omit_empty, is_field } => {
                        FieldGuide::Known { guide, name, omit_empty, is_field }
                    }
                    FieldGuide::Unknown => FieldGuide::Unknown,
                },
                None => FieldGuide::Known { guide: self, name: None, omit_empty: false, is_field: false },
            },
        }
    }

    fn item(self) -> Self {
        match self.0.shape() {
            Shape::List { item, .. } => self.with(*item),
            Shape::StringList => Walk(Node { schema: self.0.schema, shape: string_shape(self.0) }),
            Shape::SchemaOrArray => self.schema_props().unwrap_or(self),
            _ => self,
        }
    }

    fn enter_object(self) -> Result<(), Mismatch> {
        match self.0.shape() {
            Shape::Struct { .. }
            | Shape::Map { .. }
            | Shape::Raw
            | Shape::FieldsV1
            | Shape::SchemaOrBool
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
            | Shape::Any => Ok(()),
            Shape::Quantity => Err(no_quantity()),
            _ => Err(self.mismatch("object")),
        }
    }

    fn enter_array(self) -> Result<(), Mismatch> {
        match self.0.shape() {
            Shape::List { .. }
            | Shape::StringList
            | Shape::Raw
            | Shape::FieldsV1
            | Shape::SchemaOrArray
            | Shape::SchemaOrStrings
            | Shape::Any => Ok(()),
            Shape::Quantity => Err(no_quantity()),
            // Go reads a list of numbers as bytes; no client sends one
            _ => Err(self.mismatch("array")),
        }
    }

    fn scalar(self, scalar: Scalar<'_>) -> Result<Value, Mismatch> {
        match (self.0.shape(), scalar) {
            (Shape::Raw | Shape::FieldsV1 | Shape::Any, scalar) => Ok(free(scalar)),
            (Shape::Bool, Scalar::Bool(b)) => Ok(Value::Bool(b)),
            (Shape::SchemaOrBool, Scalar::Bool(b)) => Ok(Value::Bool(b)),
            (Shape::String, Scalar::String(s)) => Ok(Value::String(s)),
            (Shape::Int32, Scalar::Number(literal)) => match literal.parse::<i32>() {
                Ok(i) => Ok(Value::Int(i64::from(i))),
                Err(_) => Err(self.mismatch(format!("number {literal}"))),
            },
            (Shape::Int64, Scalar::Number(literal)) => match literal.parse::<i64>() {
                Ok(i) => Ok(Value::Int(i)),
                Err(_) => Err(self.mismatch(format!("number {literal}"))),
            },
            (Shape::Float, number @ Scalar::Number(_)) => Ok(free(number)),
            (Shape::IntOrString, Scalar::String(s)) => Ok(Value::String(s)),
            (Shape::IntOrString, Scalar::Number(literal)) => match literal.parse::<i32>() {
                Ok(i) => Ok(Value::Int(i64::from(i))),
                Err(_) => Err(self.mismatch(format!("number {literal}"))),
            },
            (Shape::Quantity, Scalar::String(s)) => quantity(s.trim()),
            (Shape::Quantity, Scalar::Number(literal)) => quantity(literal),
            (Shape::Bytes, Scalar::String(s)) => bytes(&s),
            (Shape::Time, Scalar::String(s)) => moment(&s),
            (Shape::MicroTime, Scalar::String(s)) => micro_moment(&s),
            (Shape::SchemaOrStrings, Scalar::String(s)) => Ok(Value::String(s)),
            (Shape::Quantity, Scalar::Bool(_)) => Err(no_quantity()),
            (_, Scalar::Bool(_)) => Err(self.mismatch("bool")),
            (_, Scalar::Number(_)) => Err(self.mismatch("number")),
            (_, Scalar::String(_)) => Err(self.mismatch("string")),
        }
    }

    fn null(self) -> Value {
        match self.0.shape() {
            Shape::Raw | Shape::Any => Value::Null,
            _ => zero_value(self.0),
        }
    }

    fn drops_null_members(self) -> bool {
        matches!(
            self.0.shape(),
            Shape::Struct { .. } | Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings
        )
    }

    fn struct_name(self) -> &'static str {
        match self.schema_props() {
            Some(props) => props.struct_name(),
            None => self.0.ty().map_or("", crate::types::Type::struct_name),
        }
    }

    fn finish_object(self, members: &mut Vec<(Str, Value)>) {
        let Shape::Struct { id, .. } = self.0.shape() else { return };
        let schema = self.0.schema;
        for field in schema.fields(schema.ty(*id)) {
            if !schema.is_always_written(field) {
                continue;
            }
            if !members.iter().any(|(name, _)| *name == field.name) {
                members.push((field.name.clone(), absent_member(schema, field).unwrap_or_default()));
            }
        }
        let metadata = members.iter_mut().find(|(name, _)| name == "metadata").map(|(_, value)| value);
        if let Some(metadata) = metadata.filter(|m| m.has(MANAGED_FIELDS) && m[MANAGED_FIELDS].items().is_empty())
            && schema.field(schema.ty(*id), "apiVersion").is_none()
        {
            // metadata of a template, which nobody resets
            metadata.remove(MANAGED_FIELDS);
        }
        // omitzero structs vanish when nothing is in them
        members.retain(|(name, value)| {
            let is_zero_struct = matches!(value, Value::Object(o) if o.is_empty());
            !is_zero_struct || !schema.field(schema.ty(*id), name).is_some_and(|f| f.omit_zero && !f.is_pointer)
        });
    }
}

/// The shape of plain strings in the schema around `node`.
fn string_shape(node: Node<'_>) -> ShapeId {
    let idx = node.schema.shapes.iter().position(|s| *s == Shape::String).unwrap_or_default();
    ShapeId(u32::try_from(idx).unwrap_or_default())
}

fn free(scalar: Scalar<'_>) -> Value {
    match scalar {
        Scalar::Bool(b) => Value::Bool(b),
        Scalar::String(s) => Value::String(s),
        Scalar::Number(literal) => match literal.parse::<i64>() {
            Ok(i) => Value::Int(i),
            Err(_) => literal.parse::<f64>().ok().filter(|f| f.is_finite()).map_or(Value::Null, Value::Float),
        },
    }
}

/// What is said of whatever is no number and no string where a quantity is wanted.
fn no_quantity() -> Mismatch {
    let why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    Mismatch::Text(why.to_owned())
}

fn quantity(text: &str) -> Result<Value, Mismatch> {
    match Quantity::parse(text) {
        Ok(quantity) => Ok(Value::String(quantity.canonical())),
        Err(why) => Err(Mismatch::Text(why.to_string())),
    }
}

fn bytes(text: &str) -> Result<Value, Mismatch> {
    use base64::DecodeError;
    // Go skips line ends inside base64
    let compact: String;
    let text = if text.contains(['\n', '\r']) {
        compact = text.replace(['\n', '\r'], "");
        &compact
    } else {
        text
    };
    match base64::engine::general_purpose::STANDARD.decode(text) {
        Ok(bytes) => Ok(Value::from(base64::engine::general_purpose::STANDARD.encode(bytes))),
        Err(why) => {
            let at = match why {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => at,
                DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len() - text.len() % 4,
            };
            Err(Mismatch::Text(format!("illegal base64 data at input byte {at}")))
        }
    }
}

fn moment(text: &str) -> Result<Value, Mismatch> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    match time::parse_time(text) {
        Some(at) => Ok(time::time_value(at)),
        None => Err(Mismatch::Text(unparsed_time(text, "2006-01-02T15:04:05Z07:00"))),
    }
}

fn micro_moment(text: &str) -> Result<Value, Mismatch> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    let is_micro =
        text.as_bytes().get(19) == Some(&b'.') && text.bytes().skip(20).take_while(u8::is_ascii_digit).count() == 6;
    match time::parse_time(text).filter(|_| is_micro) {
        Some(at) => Ok(time::micro_time_value(at)),
        None => Err(Mismatch::Text(unparsed_time(text, LAYOUT))),
    }
}

/// Go's words for a time that is none: which part of the text does not fit which part of the layout.
fn unparsed_time(text: &str, layout: &str) -> String {
    // The layout's parts with the width of digits each takes.
    let parts: &[(&str, usize)] = &[
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ];
    let quoted = pintle_apimachinery::field::go_quote(text);
    let mut rest = text;
    for (part, n_digits) in parts {
        let is_fit = if *n_digits == 0 {
            rest.starts_with(part)
        } else {
            rest.len() >= *n_digits && rest.as_bytes()[..*n_digits].iter().all(u8::is_ascii_digit)
        };
        if !is_fit {
            let rest = pintle_apimachinery::field::go_quote(rest);
            return format!("parsing time {quoted} as {layout:?}: cannot parse {rest} as {part:?}");
        }
        rest = &rest[part.len()..];
    }
    let mut last = "Z07:00";
    if layout.contains(".000000") {
        const FRACTION_BYTES: usize = ".000000".len();
        let is_fraction = |text: &[u8]| text[0] == b'.' && text[1..].iter().all(u8::is_ascii_digit);
        match rest.as_bytes().get(..FRACTION_BYTES) {
            Some(fraction) if is_fraction(fraction) => rest = &rest[FRACTION_BYTES..],
            _ => last = ".000000",
        }
    }
    let shown = pintle_apimachinery::field::go_quote(rest);
    format!("parsing time {quoted} as {layout:?}: cannot parse {shown} as {last:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;
    use expect_test::expect;

    fn pod(json: &str) -> Parsed {
        decode(json.as_bytes(), kind("", "v1", "Pod").unwrap().id).unwrap()
    }

    #[test]
    fn zero_values_follow_the_fields_rules() {
        let parsed = pod(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{},"generateName":""},
            "spec":{"containers":[{"name":"c","image":"","tty":false,"resources":{"limits":{"cpu":"1000m","memory":1024}}}],
            "hostNetwork":false,"automountServiceAccountToken":false,"priority":null}}"#);
        assert_eq!(parsed.issues, pintle_apimachinery::value::Issues::default());
        expect![[r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"1024"}}}]},"status":{}}"#]]
        .assert_eq(&parsed.value.to_json_string());
    }

    #[test]
    fn what_is_written_though_it_is_not_there() {
        let decoded = |group: &str, kind_name: &str, json: &str| {
            let id = kind(group, "v1", kind_name).unwrap().id;
            let mut value = decode(json.as_bytes(), id).unwrap().value;
            forget_empty(&mut value, builtin().root(id));
            value.to_json_string()
        };
        expect![[r#"{"metadata":{},"rules":null}"#]].assert_eq(&decoded(
            "rbac.authorization.k8s.io",
            "Role",
            r#"{"rules":[]}"#,
        ));
        expect![[
            r#"{"metadata":{},"spec":{"dataSource":{"apiGroup":null,"kind":"","name":"a"},"resources":{}},"status":{}}"#
        ]]
        .assert_eq(&decoded("", "PersistentVolumeClaim", r#"{"spec":{"dataSource":{"name":"a"}}}"#));
        expect![[r#"{"metadata":{},"spec":{"cephfs":{"monitors":null,"secretRef":{}}},"status":{}}"#]]
            .assert_eq(&decoded("", "PersistentVolume", r#"{"spec":{"cephfs":{"monitors":[],"secretRef":{}}}}"#));
    }

    #[test]
    fn faults_in_document_order() {
        let parsed = pod(
            r#"{"foo":1,"metadata":{"name":"a","name":"b"},"spec":{"containers":[{"name":"c","imag":"x","ports":[{"hostport":1}]}],"z":{"y":1}}}"#,
        );
        let told: Vec<String> = parsed.issues.strict.iter().map(ToString::to_string).collect();
        expect![[r#"
            [
                "unknown field \"foo\"",
                "duplicate field \"metadata.name\"",
                "unknown field \"spec.containers[0].imag\"",
                "unknown field \"spec.containers[0].ports[0].hostport\"",
                "unknown field \"spec.z\"",
            ]
        "#]]
        .assert_debug_eq(&told);
    }

    #[test]
    fn wrong_types_in_gos_words() {
        for (json, want) in [
            (
                r#"{"metadata":{"name":1}}"#,
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
            ),
            (
                r#"{"metadata":"a"}"#,
                "json: cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta",
            ),
            (
                r#"{"metadata":{"labels":{"a":1}}}"#,
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
            ),
            (
                r#"{"spec":{"containers":{}}}"#,
                "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                r#"{"spec":{"terminationGracePeriodSeconds":1.5}}"#,
                "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
            ),
            (
                r#"{"spec":{"containers":[{"ports":[{"containerPort":"x"}]}]}}"#,
                "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            ),
            (r#"[]"#, "json: cannot unmarshal array into Go value of type v1.Pod"),
        ] {
            assert_eq!(pod(json).issues.wrong_type.as_deref(), Some(want), "{json}");
        }
    }

    #[test]
    fn empty_managed_fields_stay_where_they_mean_a_reset() {
        let parsed = decode(
            br#"{"metadata":{"managedFields":[],"finalizers":[]},"template":{"metadata":{"managedFields":[]},"spec":{"containers":[]}}}"#,
            kind("", "v1", "PodTemplate").unwrap().id,
        );
        let value = parsed.unwrap().value;
        assert_eq!(value["metadata"].to_json_string(), r#"{"managedFields":[]}"#);
        assert_eq!(value["template"]["metadata"].to_json_string(), "{}");
    }

    #[test]
    fn times_that_are_none() {
        let parsed = pod(r#"{"metadata":{"creationTimestamp":"yesterday"}}"#);
        assert_eq!(
            parsed.issues.wrong_type.as_deref(),
            Some(r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#)
        );
    }
}
