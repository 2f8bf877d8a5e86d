//! Custom resources: their paths, and their schemas as they are published.
//!
//! Follows: apiextensions-apiserver `controller/openapi` (v0.35): what v2 cannot say is left out there.

use crate::builtin::prefix;
use crate::names::{capital, custom_definition, group_tag, group_word, meta, with_article};
use crate::operation::{Body, CUSTOM_PATCH_TYPES, CUSTOM_TYPES, Content, Operation, Route, V2_PREFIX, V3_PREFIX};
use crate::params::{Param, of_custom_action};
use pintle_apimachinery::{Value, json};

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const API_VERSION: &str = "The schema version of this object.";
const KIND: &str = "The kind of this object, in CamelCase.";
const METADATA: &str = "Metadata that all objects have.";

/// A served version of a custom resource.
#[derive(Clone, Copy, Debug)]
pub struct CustomResource<'a> {
    /// API group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Kind of its lists.
    pub list_kind: &'a str,
    /// Plural name, as in paths.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether it has the subresource `status`.
    pub has_status: bool,
    /// Whether it has the subresource `scale`.
    pub has_scale: bool,
    /// Whether the definition preserves unknown fields as a whole.
    pub preserves_unknown_fields: bool,
    /// The version's `openAPIV3Schema`; `null` for none. A schema that is not structural counts as none.
    pub schema: &'a Value,
    /// The JSON paths of its selectable fields.
    pub selectable_fields: &'a [&'a str],
}

/// Which version of OpenAPI a schema is published in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    V2,
    V3,
}

impl CustomResource<'_> {
    /// The name of its definition.
    pub(crate) fn definition(&self) -> String {
        custom_definition(self.group, self.version, self.kind)
    }

    /// Changes with everything that is published of it.
    pub(crate) fn hash(&self) -> u128 {
        let flags = [self.is_namespaced, self.has_status, self.has_scale, self.preserves_unknown_fields].map(u8::from);
        let fields = self.selectable_fields.join(",");
        let schema = self.schema.to_json();
        let texts = [self.group, self.version, self.kind, self.list_kind, self.plural, &fields].map(str::as_bytes);
        let parts: Vec<&[u8]> = texts.into_iter().chain([&flags[..], &schema]).collect();
        crate::hash::of(&parts)
    }

    /// Its definition and that of its lists.
    pub(crate) fn schemas(&self, form: Form) -> [(String, Value); 2] {
        let mut kind = self.kind_schema(form);
        let mut list = self.list_schema(form);
        if !self.selectable_fields.is_empty() {
            let field = |path: &&str| json!({"fieldPath": (path.strip_prefix('.').unwrap_or(path))});
            let fields: Value = self.selectable_fields.iter().map(field).collect();
            list.set("x-kubernetes-selectable-fields", fields.clone());
            kind.set("x-kubernetes-selectable-fields", fields);
        }
        [(self.definition(), kind), (custom_definition(self.group, self.version, self.list_kind), list)]
    }

    fn gvk(&self, kind: &str) -> Value {
        json!([{"group": (self.group), "version": (self.version), "kind": kind}])
    }

    fn kind_schema(&self, form: Form) -> Value {
        let preserves = self.preserves_unknown_fields || self.schema["x-kubernetes-preserve-unknown-fields"].is_true();
        let mut out = if self.schema.is_null() || (form == Form::V2 && preserves) {
            // kubectl takes listed properties for all there are
            json!({"type": "object"})
        } else {
            let mut out = published(self.schema, form);
            add_object_properties(&mut out, form, [API_VERSION, KIND]);
            add_embedded(&mut out, form);
            out
        };
        out.set("x-kubernetes-group-version-kind", self.gvk(self.kind));
        out
    }

    fn list_schema(&self, form: Form) -> Value {
        let prefix = prefix_of(form);
        let items = json!({
            "type": "array",
            "description": (format!("List of {}.", self.plural)),
            "items": {"$ref": (format!("{prefix}{}", self.definition()))},
        });
        json!({
            "type": "object",
            "description": (format!("{} is a list of {}", self.list_kind, self.kind)),
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string", "description": API_VERSION},
                "kind": {"type": "string", "description": KIND},
                "items": items,
                "metadata": (reference(form, &meta("ListMeta"), "Metadata of the list.")),
            },
            "x-kubernetes-group-version-kind": (self.gvk(self.list_kind)),
        })
    }

    /// Its paths.
    pub(crate) fn routes(&self) -> Vec<Route> {
        let base = prefix(self.group, self.version);
        let mut routes = Vec::new();
        let root = if self.is_namespaced {
            let path = format!("{base}/{}", self.plural);
            let version = capital(self.version);
            let id = format!("list{}{version}{}ForAllNamespaces", group_word(self.group), self.kind);
            routes.push(self.place(path, vec![Operation { id, ..self.list() }]));
            format!("{base}/namespaces/{{namespace}}/{}", self.plural)
        } else {
            format!("{base}/{}", self.plural)
        };
        let (own, status) = (Content::of(self.definition()), Content::of(meta("Status")));
        let delete_collection = self.operation("delete", "deletecollection", "", status.clone());
        let create = self.with_body(
            Operation {
                responses: vec![(200, own.clone()), (201, own.clone()), (202, own.clone())],
                ..self.operation("post", "post", "", own.clone())
            },
            own.clone(),
        );
        routes.push(self.place(root.clone(), vec![self.list(), create, delete_collection]));
        let delete = Operation {
            body: Some(Body { content: Content::of(meta("DeleteOptions")), is_required: false }),
            responses: vec![(200, status.clone()), (202, status.clone())],
            ..self.operation("delete", "delete", "", status)
        };
        let mut by_name = self.by_name("", &own);
        by_name.push(delete);
        let path = format!("{root}/{{name}}");
        routes.push(self.place(path.clone(), by_name));
        if self.has_status {
            routes.push(self.place(format!("{path}/status"), self.by_name("status", &own)));
        }
        if self.has_scale {
            routes.push(self.place(format!("{path}/scale"), self.by_name("scale", &Content::of(SCALE))));
        }
        routes
    }

    fn list(&self) -> Operation {
        let list = custom_definition(self.group, self.version, self.list_kind);
        self.operation("get", "list", "", Content::of(list))
    }

    /// Reading, replacing and patching one object or a part of it.
    fn by_name(&self, part: &str, content: &Content) -> Vec<Operation> {
        let get = self.operation("get", "get", part, content.clone());
        let mut put = self.with_body(self.operation("put", "put", part, content.clone()), content.clone());
        put.responses.push((201, content.clone()));
        let mut patch =
            self.with_body(self.operation("patch", "patch", part, content.clone()), Content::of(meta("Patch")));
        patch.consumes = CUSTOM_PATCH_TYPES;
        vec![get, put, patch]
    }

    fn with_body(&self, operation: Operation, content: Content) -> Operation {
        Operation { body: Some(Body { content, is_required: true }), ..operation }
    }

    fn operation(&self, method: &'static str, action: &'static str, part: &str, content: Content) -> Operation {
        let of_part = if part.is_empty() { String::new() } else { format!(" {part} of") };
        let (verb, about) = match action {
            "list" => ("list", format!("list objects of kind {}", self.kind)),
            "post" => ("create", format!("create{}", with_article(self.kind))),
            "deletecollection" => ("delete", format!("delete collection of {}", self.kind)),
            "delete" => ("delete", format!("delete{}", with_article(self.kind))),
            "get" => ("read", format!("read{of_part} the specified {}", self.kind)),
            "put" => ("replace", format!("replace{of_part} the specified {}", self.kind)),
            _ => ("patch", format!("partially update{of_part} the specified {}", self.kind)),
        };
        let infix = if action == "deletecollection" { "Collection" } else { "" };
        let namespaced = if self.is_namespaced { "Namespaced" } else { "" };
        let place = format!("{}{}", group_word(self.group), capital(self.version));
        Operation {
            method,
            id: format!("{verb}{place}{infix}{namespaced}{}{}", self.kind, capital(part)),
            tag: format!("{}_{}", group_tag(self.group), self.version),
            about,
            action,
            gvk: Some([self.group, self.version, self.kind].map(str::to_owned)),
            params: of_custom_action(action),
            body: None,
            consumes: CUSTOM_TYPES,
            produces: CUSTOM_TYPES,
            responses: vec![(200, content)],
        }
    }

    fn place(&self, path: String, mut operations: Vec<Operation>) -> Route {
        for operation in &mut operations {
            if path.contains("{namespace}") {
                operation.params.push(Param::namespace());
            }
            if path.contains("{name}") {
                operation.params.push(Param::name(self.kind));
            }
        }
        Route { path, operations }
    }
}

fn prefix_of(form: Form) -> &'static str {
    match form {
        Form::V2 => V2_PREFIX,
        Form::V3 => V3_PREFIX,
    }
}

/// A reference with a description: v3 allows no siblings of references.
fn reference(form: Form, definition: &str, about: &str) -> Value {
    let target = json!({"$ref": (format!("{}{definition}", prefix_of(form)))});
    match form {
        Form::V2 => {
            let mut out = target;
            out.set("description", about);
            out
        }
        Form::V3 => json!({"description": about, "allOf": [target]}),
    }
}

fn add_object_properties(schema: &mut Value, form: Form, about: [&str; 2]) {
    let [api_version, kind] = about;
    let properties = schema.make("properties");
    properties.set("apiVersion", json!({"type": "string", "description": api_version}));
    properties.set("kind", json!({"type": "string", "description": kind}));
    properties.set("metadata", reference(form, &meta("ObjectMeta"), METADATA));
}

/// Embedded resources have what all objects have. v2 leaves them open where unknown fields are preserved.
fn add_embedded(schema: &mut Value, form: Form) {
    for child in ["items", "additionalProperties"] {
        if let Some(child) = schema.get_mut(child).filter(|c| c.as_object().is_some()) {
            add_embedded(child, form);
        }
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(|property| add_embedded(property, form));
    }
    let preserves = schema["x-kubernetes-preserve-unknown-fields"].is_true();
    if schema["x-kubernetes-embedded-resource"].is_true() && !(form == Form::V2 && preserves) {
        add_object_properties(schema, form, [API_VERSION, KIND]);
        let required = schema.make("required").make_array();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|r| r.as_str() == Some(name)) {
                required.push(Value::from(name));
            }
        }
    }
}

/// Parts of a definition's schema that are not published.
const NOT_PUBLISHED: &[&str] = &["example", "externalDocs", "$schema", "id"];

/// The schema as it is published.
fn published(schema: &Value, form: Form) -> Value {
    let mut out = schema.clone();
    if let Some(members) = out.as_object_mut() {
        members.retain(|key, _| !NOT_PUBLISHED.contains(&key.as_str()));
    }
    for child in ["items", "additionalProperties", "not"] {
        if let Some(child) = out.get_mut(child).filter(|c| c.as_object().is_some()) {
            *child = published(child, form);
        }
    }
    for children in ["properties"] {
        if let Some(members) = out.get_mut(children).and_then(Value::as_object_mut) {
            members.values_mut().for_each(|child| *child = published(child, form));
        }
    }
    // what may be a number or a text says so
    if out["x-kubernetes-int-or-string"].is_true() && form == Form::V3 && !out.has("anyOf") && !out.has("allOf") {
        out.set("anyOf", json!([{"type": "integer"}, {"type": "string"}]));
    }
    if form == Form::V2 {
        reduce_to_v2(&mut out, schema);
    }
    out
}

/// Leaves out what v2, or kubectl reading it, does not know. `source` is the schema before its parts were reduced.
fn reduce_to_v2(out: &mut Value, source: &Value) {
    for junctor in ["allOf", "oneOf", "anyOf", "not", "default", "nullable"] {
        out.remove(junctor);
    }
    let is_nullable = source["nullable"].is_true();
    let preserves = source["x-kubernetes-preserve-unknown-fields"].is_true();
    if is_nullable || preserves {
        out.remove("items");
        out.remove("properties");
    }
    let kind = source["type"].str_or_empty();
    let is_bare_list = kind == "array" && out["items"].is_null();
    if is_nullable || is_bare_list || (preserves && kind == "object") {
        out.remove("type");
    }
    let is_nullable_property = |name: &Value| source["properties"][name.str_or_empty()]["nullable"].is_true();
    if let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !is_nullable_property(name));
    }
    if source["additionalProperties"]["nullable"].is_true() || out["required"].items().is_empty() {
        out.remove("required");
    }
}
