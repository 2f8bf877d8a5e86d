//! Parts of a definition as Go prints its internal form in error messages: every field, under its Go name.

use pintle_apimachinery::{Object, Str, Value};

/// How a field is shown.
#[derive(Clone, Copy)]
enum As {
    /// As it is; absent or zero by the given zero.
    Plain(Zero),
    /// A schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// A map of schemas.
    SchemaMap,
    /// `JSONSchemaPropsOrBool`.
    SchemaOrBool,
    /// `JSONSchemaPropsOrArray`.
    SchemaOrArray,
    /// `JSONSchemaPropsOrStringArray` in a map.
    Dependencies,
    /// A list of rules.
    Rules,
    /// `ExternalDocumentation`.
    Docs,
}

/// What stands for an absent field.
#[derive(Clone, Copy)]
enum Zero {
    Null,
    False,
    Text,
}

use As::{Dependencies, Docs, Plain, Rules, Schema, SchemaMap, SchemaOrArray, SchemaOrBool, Schemas};
use Zero::{False, Null, Text};

/// The fields of `JSONSchemaProps` in their order: Go name, JSON name, form.
const SCHEMA_FIELDS: &[(&str, &str, As)] = &[
    ("ID", "id", Plain(Text)),
    ("Schema", "$schema", Plain(Text)),
    ("Ref", "$ref", Plain(Null)),
    ("Description", "description", Plain(Text)),
    ("Type", "type", Plain(Text)),
    ("Nullable", "nullable", Plain(False)),
    ("Format", "format", Plain(Text)),
    ("Title", "title", Plain(Text)),
    ("Default", "default", Plain(Null)),
    ("Maximum", "maximum", Plain(Null)),
    ("ExclusiveMaximum", "exclusiveMaximum", Plain(False)),
    ("Minimum", "minimum", Plain(Null)),
    ("ExclusiveMinimum", "exclusiveMinimum", Plain(False)),
    ("MaxLength", "maxLength", Plain(Null)),
    ("MinLength", "minLength", Plain(Null)),
    ("Pattern", "pattern", Plain(Text)),
    ("MaxItems", "maxItems", Plain(Null)),
    ("MinItems", "minItems", Plain(Null)),
    ("UniqueItems", "uniqueItems", Plain(False)),
    ("MultipleOf", "multipleOf", Plain(Null)),
    ("Enum", "enum", Plain(Null)),
    ("MaxProperties", "maxProperties", Plain(Null)),
    ("MinProperties", "minProperties", Plain(Null)),
    ("Required", "required", Plain(Null)),
    ("Items", "items", SchemaOrArray),
    ("AllOf", "allOf", Schemas),
    ("OneOf", "oneOf", Schemas),
    ("AnyOf", "anyOf", Schemas),
    ("Not", "not", Schema),
    ("Properties", "properties", SchemaMap),
    ("AdditionalProperties", "additionalProperties", SchemaOrBool),
    ("PatternProperties", "patternProperties", SchemaMap),
    ("Dependencies", "dependencies", Dependencies),
    ("AdditionalItems", "additionalItems", SchemaOrBool),
    ("Definitions", "definitions", SchemaMap),
    ("ExternalDocs", "externalDocs", Docs),
    ("Example", "example", Plain(Null)),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Plain(Null)),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Plain(False)),
    ("XIntOrString", "x-kubernetes-int-or-string", Plain(False)),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Plain(Null)),
    ("XListType", "x-kubernetes-list-type", Plain(Null)),
    ("XMapType", "x-kubernetes-map-type", Plain(Null)),
    ("XValidations", "x-kubernetes-validations", Rules),
];

const RULE_FIELDS: &[(&str, &str, As)] = &[
    ("Rule", "rule", Plain(Text)),
    ("Message", "message", Plain(Text)),
    ("MessageExpression", "messageExpression", Plain(Text)),
    ("Reason", "reason", Plain(Null)),
    ("FieldPath", "fieldPath", Plain(Text)),
    ("OptionalOldSelf", "optionalOldSelf", Plain(Null)),
];

const VERSION_FIELDS: &[(&str, &str, As)] = &[
    ("Name", "name", Plain(Text)),
    ("Served", "served", Plain(False)),
    ("Storage", "storage", Plain(False)),
    ("Deprecated", "deprecated", Plain(False)),
    ("DeprecationWarning", "deprecationWarning", Plain(Null)),
];

const COLUMN_FIELDS: &[(&str, &str, As)] = &[
    ("Name", "name", Plain(Text)),
    ("Type", "type", Plain(Text)),
    ("Format", "format", Plain(Text)),
    ("Description", "description", Plain(Text)),
];

/// Appends one member of a Go struct; the order of fields is the struct's, not the alphabet's.
fn member(out: &mut Vec<u8>, name: &str, json: &str) {
    let separator: &[u8] = if out.last() == Some(&b'{') { b"" } else { b"," };
    out.extend_from_slice(separator);
    out.extend_from_slice(format!("{name:?}:{json}").as_bytes());
}

fn json_of(value: &Value) -> String {
    pintle_apimachinery::value::html_escaped(value)
}

fn structure(value: &Value, fields: &[(&str, &str, As)]) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (go_name, name, form) in fields {
        member(&mut out, go_name, &shown(&value[*name], *form));
    }
    out
}

fn closed(mut out: Vec<u8>) -> String {
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn list(value: &Value, item: impl Fn(&Value) -> String) -> String {
    match value {
        Value::Null => "null".to_owned(),
        list => format!("[{}]", list.items().iter().map(item).collect::<Vec<_>>().join(",")),
    }
}

fn map(value: &Value, member: impl Fn(&Value) -> String) -> String {
    match value {
        Value::Null => "null".to_owned(),
        map => {
            let members = map.entries().map(|(key, value)| format!("{}:{}", json_of(&Value::from(key)), member(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}

fn shown(value: &Value, form: As) -> String {
    match (form, value) {
        (Plain(False), Value::Null) => "false".to_owned(),
        (Plain(Text), Value::Null) => "\"\"".to_owned(),
        (Schema | SchemaOrBool | SchemaOrArray | Docs, Value::Null) => "null".to_owned(),
        (Plain(_), value) => json_of(value),
        (Schema, value) => schema(value),
        (Schemas, value) => list(value, schema),
        (SchemaMap, value) => map(value, schema),
        (SchemaOrBool, Value::Bool(allows)) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        (SchemaOrBool, value) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        (SchemaOrArray, Value::Array(_)) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", list(value, schema)),
        (SchemaOrArray, value) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        (Dependencies, value) => map(value, |dependency| match dependency {
            Value::Array(_) => format!("{{\"Schema\":null,\"Property\":{}}}", json_of(dependency)),
            other => format!("{{\"Schema\":{},\"Property\":null}}", schema(other)),
        }),
        (Rules, value) => list(value, rule),
        (Docs, value) => {
            closed(structure(value, &[("Description", "description", Plain(Text)), ("URL", "url", Plain(Text))]))
        }
    }
}

/// A schema.
pub(super) fn schema(value: &Value) -> String {
    closed(structure(value, SCHEMA_FIELDS))
}

/// `JSONSchemaPropsOrArray`.
pub(super) fn schema_or_array(value: &Value) -> String {
    shown(value, SchemaOrArray)
}

/// A rule.
pub(super) fn rule(value: &Value) -> String {
    closed(structure(value, RULE_FIELDS))
}

/// The first field of a schema's root, in the struct's order, that `is_allowed` refuses; `Type` is told apart.
pub(super) fn set_fields(value: &Value) -> impl Iterator<Item = &'static str> {
    SCHEMA_FIELDS.iter().filter(|(_, name, form)| is_set(&value[*name], *form)).map(|(go_name, ..)| *go_name)
}

/// Whether a field is not its Go zero value.
fn is_set(value: &Value, form: As) -> bool {
    match (form, value) {
        (_, Value::Null) => false,
        (Plain(False | Text), value) => !value.is_empty(),
        _ => true,
    }
}

/// The parts of versions that all versions have alike, which the internal form keeps once for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    pub(super) schema: bool,
    pub(super) subresources: bool,
    pub(super) columns: bool,
    pub(super) selectable: bool,
}

impl Shared {
    /// What the versions of a definition share.
    pub(super) fn of(versions: &[Value]) -> Shared {
        let is_same = |field: &str| versions.iter().all(|v| v[field] == versions[0][field]);
        let is_some = !versions.is_empty();
        Shared {
            schema: is_some && is_same("schema"),
            subresources: is_some && is_same("subresources"),
            columns: is_some && is_same("additionalPrinterColumns"),
            selectable: is_some && is_same("selectableFields"),
        }
    }
}

/// The versions, without what they share.
pub(super) fn versions(value: &Value, shared: Shared) -> String {
    list(value, |version| {
        let mut out = structure(version, VERSION_FIELDS);
        let unless = |is_shared: bool, shown: String| if is_shared { "null".to_owned() } else { shown };
        let schema_of = match version.at("schema.openAPIV3Schema") {
            Value::Null => "null".to_owned(),
            schema_value => schema(schema_value),
        };
        let whole_schema = match &version["schema"] {
            Value::Null => "null".to_owned(),
            _ => format!("{{\"OpenAPIV3Schema\":{schema_of}}}"),
        };
        member(&mut out, "Schema", &unless(shared.schema, whole_schema));
        member(&mut out, "Subresources", &unless(shared.subresources, subresources(&version["subresources"])));
        let columns = list(&version["additionalPrinterColumns"], column);
        member(&mut out, "AdditionalPrinterColumns", &unless(shared.columns, columns));
        let selectable = list(&version["selectableFields"], |field| {
            closed(structure(field, &[("JSONPath", "jsonPath", Plain(Text))]))
        });
        member(&mut out, "SelectableFields", &unless(shared.selectable, selectable));
        closed(out)
    })
}

fn column(value: &Value) -> String {
    let mut out = structure(value, COLUMN_FIELDS);
    member(&mut out, "Priority", &value["priority"].as_i64().unwrap_or(0).to_string());
    member(&mut out, "JSONPath", &shown(&value["jsonPath"], Plain(Text)));
    closed(out)
}

fn subresources(value: &Value) -> String {
    if value.is_null() {
        return "null".to_owned();
    }
    let status = if value["status"].is_null() { "null" } else { "{}" };
    let scale = match &value["scale"] {
        Value::Null => "null".to_owned(),
        scale => closed(structure(
            scale,
            &[
                ("SpecReplicasPath", "specReplicasPath", Plain(Text)),
                ("StatusReplicasPath", "statusReplicasPath", Plain(Text)),
                ("LabelSelectorPath", "labelSelectorPath", Plain(Null)),
            ],
        )),
    };
    format!("{{\"Status\":{status},\"Scale\":{scale}}}")
}

/// An object with one member.
pub(super) fn single(key: &str, value: Value) -> Value {
    Value::Object([(Str::new(key), value)].into_iter().collect::<Object>())
}
