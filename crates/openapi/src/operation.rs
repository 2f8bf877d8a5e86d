//! What can be done at a path, and how OpenAPI v3 and v2 say it.

use crate::params::{Param, Place};
use pintle_apimachinery::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Media types of built-in objects.
pub(crate) const OBJECT_TYPES: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Media types of lists that can be watched.
pub(crate) const LIST_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// Media types of custom objects.
pub(crate) const CUSTOM_TYPES: &[&str] = &["application/json", "application/yaml"];
/// Any media type.
pub(crate) const ANY_TYPE: &[&str] = &["*/*"];
/// Media types of patches.
pub(crate) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// Media types of patches of custom objects.
pub(crate) const CUSTOM_PATCH_TYPES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// What a body holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An object of this definition.
    Of(String),
    /// Text.
    Text,
}

impl Content {
    pub(crate) fn of(definition: impl Into<String>) -> Content {
        Content::Of(definition.into())
    }

    fn schema(&self, prefix: &str) -> Value {
        match self {
            Content::Of(definition) => json!({"$ref": (format!("{prefix}{definition}"))}),
            Content::Text => json!({"type": "string"}),
        }
    }
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) content: Content,
    pub(crate) is_required: bool,
}

/// One method of a path.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// In lower case.
    pub(crate) method: &'static str,
    pub(crate) id: String,
    pub(crate) tag: String,
    pub(crate) about: String,
    /// `x-kubernetes-action`; empty for none.
    pub(crate) action: &'static str,
    /// Group, version and kind; none for what is about no object.
    pub(crate) gvk: Option<[String; 3]>,
    pub(crate) params: Vec<Param>,
    pub(crate) body: Option<Body>,
    /// Media types that are taken.
    pub(crate) consumes: &'static [&'static str],
    /// Media types that are given.
    pub(crate) produces: &'static [&'static str],
    /// What is given, by status.
    pub(crate) responses: Vec<(u16, Content)>,
}

/// A path and what can be done there.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) path: String,
    pub(crate) operations: Vec<Operation>,
}

fn status_text(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        _ => "Unauthorized",
    }
}

/// The prefix of references in v3.
pub(crate) const V3_PREFIX: &str = "#/components/schemas/";
/// The prefix of references in v2.
pub(crate) const V2_PREFIX: &str = "#/definitions/";

impl Operation {
    /// The definitions that are referred to.
    fn definitions(&self) -> impl Iterator<Item = &str> {
        let contents = self.responses.iter().map(|(_, content)| content).chain(self.body.iter().map(|b| &b.content));
        contents.filter_map(|content| match content {
            Content::Of(definition) => Some(definition.as_str()),
            Content::Text => None,
        })
    }

    fn common(&self) -> Value {
        let mut out = json!({
            "tags": [(self.tag.as_str())],
            "description": (self.about.as_str()),
            "operationId": (self.id.as_str()),
        });
        if !self.action.is_empty() {
            out.set("x-kubernetes-action", self.action);
        }
        if let Some([group, version, kind]) = &self.gvk {
            let gvk = json!({"group": (group.as_str()), "version": (version.as_str()), "kind": (kind.as_str())});
            out.set("x-kubernetes-group-version-kind", gvk);
        }
        out
    }

    fn v3(&self, shared: &BTreeSet<&Param>) -> Value {
        let mut out = self.common();
        let own: BTreeSet<&Param> = self.params.iter().filter(|p| !shared.contains(p)).collect();
        if !own.is_empty() {
            out.set("parameters", own.into_iter().map(Param::v3).collect::<Value>());
        }
        let content = |content: &Content, types: &[&str]| -> Value {
            let schema = content.schema(V3_PREFIX);
            Value::Object(types.iter().map(|t| (*t, json!({"schema": (schema.clone())}))).collect())
        };
        if let Some(body) = &self.body {
            out.set("requestBody", json!({"content": (content(&body.content, self.consumes))}));
            if body.is_required {
                out["requestBody"].set("required", true);
            }
        }
        let mut responses = json!({"401": {"description": "Unauthorized"}});
        for (status, given) in &self.responses {
            let response = json!({"description": (status_text(*status)), "content": (content(given, self.produces))});
            responses.set(&status.to_string(), response);
        }
        out.set("responses", responses);
        out
    }

    fn v2(&self, shared: &BTreeSet<&Param>, params: &mut SharedParams) -> Value {
        let mut out = self.common();
        let body = self.body.iter().map(|body| {
            let mut param = json!({"name": "body", "in": "body", "schema": (body.content.schema(V2_PREFIX))});
            if body.is_required {
                param.set("required", true);
            }
            param
        });
        let own: BTreeSet<&Param> = self.params.iter().filter(|p| !shared.contains(p)).collect();
        let own: Vec<Value> = body.chain(own.into_iter().map(|p| params.refer(p))).collect();
        if !own.is_empty() {
            out.set("parameters", own);
        }
        let mut responses = json!({"401": {"description": "Unauthorized"}});
        for (status, given) in &self.responses {
            let response = json!({"description": (status_text(*status)), "schema": (given.schema(V2_PREFIX))});
            responses.set(&status.to_string(), response);
        }
        out.set("responses", responses);
        let strings = |list: &[&str]| list.iter().copied().map(Value::from).collect::<Value>();
        if !self.consumes.is_empty() {
            out.set("consumes", strings(self.consumes));
        }
        out.set("produces", strings(self.produces));
        out.set("schemes", strings(&["https"]));
        out
    }
}

impl Route {
    /// The parameters that all operations of the path have: they are said once.
    fn shared(&self) -> BTreeSet<&Param> {
        let Some((first, others)) = self.operations.split_first() else { return BTreeSet::new() };
        let is_shared = |param: &&Param| others.iter().all(|other| other.params.contains(param));
        first.params.iter().filter(is_shared).collect()
    }

    /// The definitions that are referred to.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(Operation::definitions)
    }

    /// The path item of OpenAPI v3.
    pub(crate) fn v3(&self) -> Value {
        let shared = self.shared();
        let mut item = Value::object();
        for operation in &self.operations {
            item.set(operation.method, operation.v3(&shared));
        }
        if !shared.is_empty() {
            item.set("parameters", shared.into_iter().map(Param::v3).collect::<Value>());
        }
        item
    }

    /// The path item of OpenAPI v2.
    pub(crate) fn v2(&self, params: &mut SharedParams) -> Value {
        let shared = self.shared();
        let mut item = Value::object();
        for operation in &self.operations {
            item.set(operation.method, operation.v2(&shared, params));
        }
        if !shared.is_empty() {
            let shared: Vec<Value> = shared.into_iter().map(|p| params.refer(p)).collect();
            item.set("parameters", shared);
        }
        item
    }
}

/// The parameters that a v2 document says once for all paths.
#[derive(Debug, Default)]
pub(crate) struct SharedParams(BTreeMap<String, Value>);

impl SharedParams {
    /// The parameter, or a reference to it. Names of objects differ in what they say of their kind and are not shared.
    fn refer(&mut self, param: &Param) -> Value {
        let full = param.v2();
        if param.place == Place::Path && param.name == "name" {
            return full;
        }
        let key = format!("{}-{:08x}", param.name, crate::hash::of(&[&full.to_json()]) >> 96);
        let reference = json!({"$ref": (format!("#/parameters/{key}"))});
        self.0.insert(key, full);
        reference
    }

    /// The document's `parameters`.
    pub(crate) fn finish(self) -> Value {
        Value::Object(self.0.into_iter().collect())
    }
}
