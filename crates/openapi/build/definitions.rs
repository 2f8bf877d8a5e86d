//! Types as published schemas, in the form of OpenAPI v3.

use crate::facts::{Facts, Field, Type};
use crate::prose::Prose;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const PREFIX: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

/// All definitions, by name.
pub(crate) fn all(
    facts: &Facts,
    prose: &BTreeMap<String, Prose>,
) -> Result<BTreeMap<String, Value>, Box<dyn std::error::Error>> {
    let mut out = specials();
    let published = facts.types.iter().filter(|(_, t)| !t.definition.is_empty() && !is_partial(&t.definition));
    for (name, ty) in published {
        out.insert(ty.definition.clone(), definition(facts, prose, name, ty)?);
    }
    for (name, schema) in &mut out {
        if let Some(Prose { about, .. }) = prose.get(name).filter(|p| !p.about.is_empty()) {
            schema["description"] = json!(about);
        }
    }
    Ok(out)
}

/// The partial metadata kinds are nobody's resource.
fn is_partial(definition: &str) -> bool {
    definition.contains("PartialObjectMetadata")
}

/// The names that a schema refers to.
pub(crate) fn refs(schema: &Value) -> BTreeSet<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(PREFIX));
            own.map(str::to_owned).into_iter().chain(members.values().flat_map(refs)).collect()
        }
        Value::Array(items) => items.iter().flat_map(refs).collect(),
        _ => BTreeSet::new(),
    }
}

fn definition(
    facts: &Facts,
    prose: &BTreeMap<String, Prose>,
    name: &str,
    ty: &Type,
) -> Result<Value, Box<dyn std::error::Error>> {
    let fields = facts.flat(name);
    let mut out = json!({"type": "object"});
    let mut properties = serde_json::Map::new();
    for field in &fields {
        let about = about(prose, &ty.definition, &field.name);
        let mut property = property(facts, field, &about)?;
        if let Some(values) = facts.value_enums.get(&(ty.definition.clone(), field.name.clone())) {
            property["additionalProperties"]["enum"] = json!(values);
        }
        properties.insert(field.name.clone(), property);
    }
    if !properties.is_empty() {
        out["properties"] = Value::Object(properties);
    }
    let required: Vec<&str> = fields.iter().filter(|f| f.is_required).map(|f| f.name.as_str()).collect();
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    if !ty.map_type.is_empty() {
        out["x-kubernetes-map-type"] = json!(ty.map_type);
    }
    if let Some((discriminator, values)) = facts.unions.get(&ty.definition) {
        out["x-kubernetes-unions"] = json!([{"discriminator": discriminator, "fields-to-discriminateBy": values}]);
    }
    if let Some(kinds) = facts.kinds.get(&ty.definition) {
        let gvk = |[group, version, kind]: &[String; 3]| json!({"group": group, "version": version, "kind": kind});
        out["x-kubernetes-group-version-kind"] = kinds.iter().map(gvk).collect();
    }
    if let Some(kind) = ty.definition.rsplit('.').next().and_then(|n| n.strip_suffix("List")) {
        out["description"] = json!(format!("A list of {kind} objects."));
    }
    Ok(out)
}

/// What a list of this type is a list of, in words.
fn plural(definition: &str) -> String {
    let kind = definition.rsplit('.').next().unwrap_or_default().trim_end_matches("List").to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with("endpoints") => kind,
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    }
}

/// The prose of a field; for the members that all kinds have, some other kind's will do.
fn about(prose: &BTreeMap<String, Prose>, definition: &str, field: &str) -> String {
    let of = |definition: &str| prose.get(definition)?.fields.get(field).filter(|text| !text.is_empty()).cloned();
    let found = of(definition).or_else(|| match field {
        "apiVersion" | "kind" => of("io.k8s.api.core.v1.Pod"),
        "metadata" if definition.ends_with("List") => Some("Standard list metadata.".to_owned()),
        "items" if definition.ends_with("List") => Some(format!("List of {}", plural(definition))),
        "object" if definition.ends_with("WatchEvent") => {
            Some("The object as it is now, or the Status of an error.".to_owned())
        }
        _ => None,
    });
    found.unwrap_or_default()
}

fn property(facts: &Facts, field: &Field, about: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let mut out = base(facts, field.shape.trim_start_matches('*'))?;
    let default = match field.default.as_str() {
        "" => None,
        // bare words stand for strings
        text => Some(serde_json::from_str(text).unwrap_or_else(|_| json!(text))),
    };
    if !about.is_empty() || default.is_some() {
        out = with_siblings(out);
    }
    if !about.is_empty() {
        out["description"] = json!(about);
    }
    if let Some(default) = default {
        out["default"] = default;
    }
    // of a list they speak of the items
    let is_list = out.get("items").is_some();
    let scalar = if is_list { &mut out["items"] } else { &mut out };
    if !field.enumeration.is_empty() {
        scalar["enum"] = field.enumeration.split(',').map(Value::from).collect();
    }
    if !field.format.is_empty() {
        scalar["format"] = json!(field.format);
    }
    for (marker, value) in [
        ("x-kubernetes-list-type", &field.list_type),
        ("x-kubernetes-map-type", &field.map_type),
        ("x-kubernetes-patch-strategy", &field.patch_strategy),
        ("x-kubernetes-patch-merge-key", &field.patch_merge_key),
    ] {
        if !value.is_empty() {
            out[marker] = json!(value);
        }
    }
    if !field.list_keys.is_empty() {
        out["x-kubernetes-list-map-keys"] = field.list_keys.split(',').map(Value::from).collect();
    }
    Ok(out)
}

/// A reference has no siblings in OpenAPI v3: it moves aside for them.
fn with_siblings(schema: Value) -> Value {
    if schema.get("$ref").is_some() { json!({"allOf": [schema]}) } else { schema }
}

/// The schema of a shape on its own.
fn base(facts: &Facts, shape: &str) -> Result<Value, Box<dyn std::error::Error>> {
    if let Some(item) = shape.strip_prefix("[]") {
        return Ok(json!({"type": "array", "items": element(facts, item)?}));
    }
    if let Some(value) = shape.strip_prefix("{}") {
        return Ok(json!({"type": "object", "additionalProperties": element(facts, value)?}));
    }
    if let Some(name) = shape.strip_prefix('@') {
        let ty = facts.types.get(name).ok_or_else(|| format!("no table has the type {name}"))?;
        return Ok(json!({"$ref": format!("{PREFIX}{}", ty.definition)}));
    }
    let reference = |name: &str| json!({"$ref": format!("{PREFIX}{name}")});
    Ok(match shape {
        "string" => json!({"type": "string"}),
        "bool" => json!({"type": "boolean"}),
        "int32" | "uint32" | "int" => json!({"type": "integer", "format": "int32"}),
        "int64" | "uint64" => json!({"type": "integer", "format": "int64"}),
        "float64" => json!({"type": "number", "format": "double"}),
        "bytes" => json!({"type": "string", "format": "byte"}),
        "stringlist" => json!({"type": "array", "items": {"type": "string", "default": ""}}),
        "time" => reference(&format!("{META}.Time")),
        "microtime" => reference(&format!("{META}.MicroTime")),
        "fieldsv1" => reference(&format!("{META}.FieldsV1")),
        "quantity" => reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        "intorstring" => reference("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
        "rawextension" => reference("io.k8s.apimachinery.pkg.runtime.RawExtension"),
        "json" => reference(&format!("{APIEXTENSIONS}.JSON")),
        "schemaorbool" => reference(&format!("{APIEXTENSIONS}.JSONSchemaPropsOrBool")),
        "schemaorarray" => reference(&format!("{APIEXTENSIONS}.JSONSchemaPropsOrArray")),
        "schemaorstrings" => reference(&format!("{APIEXTENSIONS}.JSONSchemaPropsOrStringArray")),
        other => return Err(format!("no shape is called {other:?}").into()),
    })
}

/// The schema of a shape as an item of a list or a value of a map: there the zero value is its default.
fn element(facts: &Facts, shape: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let mut out = base(facts, shape)?;
    let zero = match shape {
        "string" => json!(""),
        "bool" => json!(false),
        "int32" | "uint32" | "int" | "int64" | "uint64" | "float64" => json!(0),
        _ if shape.starts_with('@') => json!({}),
        _ => return Ok(out),
    };
    out = with_siblings(out);
    out["default"] = zero;
    Ok(out)
}

/// Definitions that no type table has: scalars with a form of their own, and what any document may be.
fn specials() -> BTreeMap<String, Value> {
    let strings =
        ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
    let versions = ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
    let required = strings.iter().map(|name| ((*name).to_owned(), json!({"type": "string", "default": ""})));
    let optional = versions.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
    let info: serde_json::Map<String, Value> = required.chain(optional).collect();
    let any = |about: &str| json!({"description": about});
    let time = |about: &str| json!({"description": about, "type": "string", "format": "date-time"});
    BTreeMap::from([
        (format!("{META}.Time"), time("A moment, to the second (RFC 3339).")),
        (format!("{META}.MicroTime"), time("A moment, to the microsecond (RFC 3339).")),
        (format!("{META}.FieldsV1"), json!({"description": "A set of fields.", "type": "object"})),
        (
            format!("{META}.Patch"),
            json!({"description": "The body of a PATCH request, in the form that its content type says.", "type": "object"}),
        ),
        (
            "io.k8s.apimachinery.pkg.runtime.RawExtension".to_owned(),
            json!({"description": "An object of another kind, as it is.", "type": "object"}),
        ),
        (
            "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
            json!({"description": "An amount, with a unit.", "oneOf": [{"type": "string"}, {"type": "number"}]}),
        ),
        (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
            json!({"description": "A number or a text.", "format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        (format!("{APIEXTENSIONS}.JSON"), any("Any JSON value.")),
        (format!("{APIEXTENSIONS}.JSONSchemaPropsOrBool"), any("A schema, or whether anything may stand here.")),
        (format!("{APIEXTENSIONS}.JSONSchemaPropsOrArray"), any("A schema, or several.")),
        (format!("{APIEXTENSIONS}.JSONSchemaPropsOrStringArray"), any("A schema, or names of fields.")),
        (
            "io.k8s.apimachinery.pkg.version.Info".to_owned(),
            json!({"description": "The version of the server.", "type": "object", "required": strings, "properties": info}),
        ),
    ])
}
