//! The paths of built-in resources, from the catalogue.

use crate::names::{capital, group_tag, group_word, meta, with_article};
use crate::operation::{ANY_TYPE, Body, Content, LIST_TYPES, OBJECT_TYPES, Operation, PATCH_TYPES, Route};
use crate::params::{Param, of_action, of_options};
use pintle_schema::{Resource, builtin, kind, resources};

/// Kinds whose deletion answers with the object; others answer with a Status.
const RETURNED_ON_DELETE: &[&str] = &[
    "CSIDriver",
    "CSINode",
    "DeviceClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "ResourceSlice",
    "Service",
    "ServiceAccount",
    "StorageClass",
    "VolumeAttachment",
    "VolumeAttributesClass",
];

/// Subresources that connect to something else, and the options they take.
const CONNECTED: &[(&str, &str, &str)] = &[
    ("pods", "attach", "PodAttachOptions"),
    ("pods", "exec", "PodExecOptions"),
    ("pods", "portforward", "PodPortForwardOptions"),
    ("pods", "proxy", "PodProxyOptions"),
    ("services", "proxy", "ServiceProxyOptions"),
    ("nodes", "proxy", "NodeProxyOptions"),
];

/// Methods of a proxy; everything else that connects takes the first two.
const CONNECT_METHODS: &[&str] = &["get", "post", "delete", "head", "options", "patch", "put"];

/// A resource or subresource, and what the names of its operations are made of.
struct Subject<'r> {
    resource: &'r Resource,
    /// The kind of the resource itself.
    parent_kind: &'r str,
    prefix: String,
}

/// `/api/v1` or `/apis/GROUP/VERSION`.
pub(crate) fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The groups and versions that are served, in the order of discovery, each once.
pub(crate) fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut out: Vec<(&str, &str)> = Vec::new();
    for resource in resources() {
        if !out.contains(&(resource.group, resource.version)) {
            out.push((resource.group, resource.version));
        }
    }
    out
}

/// The paths of a group and version; none when it is not built in.
pub(crate) fn routes(group: &str, version: &str) -> Vec<Route> {
    let mut routes = Vec::new();
    let of_version = || resources().iter().filter(|r| r.group == group && r.version == version);
    for resource in of_version() {
        let parent = of_version().find(|r| r.plural == resource.plural && r.subresource.is_empty());
        let parent_kind = parent.map_or(resource.kind, |r| r.kind);
        let subject = Subject { resource, parent_kind, prefix: prefix(group, version) };
        if resource.subresource.is_empty() {
            subject.collection(&mut routes);
            subject.object(&mut routes);
            subject.watches(&mut routes);
        } else {
            subject.subresource(&mut routes);
        }
    }
    routes.retain(|route| !route.operations.is_empty());
    routes
}

impl Subject<'_> {
    fn has(&self, verb: &str) -> bool {
        self.resource.verbs.contains(&verb)
    }

    /// The definition of the kind that answers.
    fn definition(&self) -> String {
        self.definition_of(self.resource.kind)
    }

    fn definition_of(&self, kind_name: &str) -> String {
        let found = kind(self.resource.kind_group, self.resource.kind_version, kind_name);
        found.map_or_else(String::new, |k| builtin().ty(k.id).definition.to_owned())
    }

    /// `/namespaces/{namespace}/PLURAL`, or `/PLURAL`.
    fn scoped(&self) -> String {
        let scope = if self.resource.is_namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{scope}/{}", self.resource.plural)
    }

    /// The name of an operation: `list` + `AppsV1` + infix + `Namespaced` + kind + suffix.
    fn id(&self, verb: &str, infix: &str, is_in_namespace: bool, suffix: &str) -> String {
        let version = capital(self.resource.version);
        let namespaced = if is_in_namespace { "Namespaced" } else { "" };
        format!("{verb}{}{version}{infix}{namespaced}{}{suffix}", group_word(self.resource.group), self.parent_kind)
    }

    fn operation(&self, method: &'static str, action: &'static str, id: String, about: String) -> Operation {
        let r = self.resource;
        Operation {
            method,
            id,
            tag: format!("{}_{}", group_tag(r.group), r.version),
            about,
            action,
            gvk: Some([r.kind_group, r.kind_version, r.kind].map(str::to_owned)),
            params: of_action(action),
            body: None,
            consumes: ANY_TYPE,
            produces: OBJECT_TYPES,
            responses: vec![(200, Content::of(self.definition()))],
        }
    }

    /// Adds the parameters of the path.
    fn place(&self, path: String, mut operations: Vec<Operation>) -> Route {
        for operation in &mut operations {
            if path.contains("{namespace}") {
                operation.params.push(Param::namespace());
            }
            if path.contains("{name}") {
                operation.params.push(Param::name(self.resource.kind));
            }
        }
        Route { path, operations }
    }

    fn list(&self, id: String) -> Operation {
        let watch = if self.has("watch") { "list or watch" } else { "list" };
        let about = format!("{watch} objects of kind {}", self.parent_kind);
        let definition = self.definition_of(&format!("{}List", self.resource.kind));
        Operation {
            produces: LIST_TYPES,
            responses: vec![(200, Content::of(definition))],
            ..self.operation("get", "list", id, about)
        }
    }

    fn collection(&self, routes: &mut Vec<Route>) {
        let is_namespaced = self.resource.is_namespaced;
        let kind_name = self.parent_kind;
        if is_namespaced && self.has("list") {
            let path = format!("{}/{}", self.prefix, self.resource.plural);
            routes.push(self.place(path, vec![self.list(self.id("list", "", false, "ForAllNamespaces"))]));
        }
        let mut operations = Vec::new();
        if self.has("list") {
            operations.push(self.list(self.id("list", "", is_namespaced, "")));
        }
        if self.has("create") {
            let about = format!("create{}", with_article(kind_name));
            operations.push(self.create(self.id("create", "", is_namespaced, ""), about));
        }
        if self.has("deletecollection") {
            let id = self.id("delete", "Collection", is_namespaced, "");
            let about = format!("delete collection of {kind_name}");
            operations.push(Operation {
                body: Some(Body { content: Content::of(meta("DeleteOptions")), is_required: false }),
                responses: vec![(200, Content::of(meta("Status")))],
                ..self.operation("delete", "deletecollection", id, about)
            });
        }
        routes.push(self.place(format!("{}{}", self.prefix, self.scoped()), operations));
    }

    fn create(&self, id: String, about: String) -> Operation {
        let content = Content::of(self.definition());
        Operation {
            body: Some(Body { content: content.clone(), is_required: true }),
            responses: vec![(200, content.clone()), (201, content.clone()), (202, content)],
            ..self.operation("post", "post", id, about)
        }
    }

    fn replace(&self, id: String, about: String) -> Operation {
        let content = Content::of(self.definition());
        Operation {
            body: Some(Body { content: content.clone(), is_required: true }),
            responses: vec![(200, content.clone()), (201, content)],
            ..self.operation("put", "put", id, about)
        }
    }

    fn patch(&self, id: String, about: String) -> Operation {
        let content = Content::of(self.definition());
        Operation {
            body: Some(Body { content: Content::of(meta("Patch")), is_required: true }),
            consumes: PATCH_TYPES,
            responses: vec![(200, content.clone()), (201, content)],
            ..self.operation("patch", "patch", id, about)
        }
    }

    fn delete(&self) -> Operation {
        let kind_name = self.parent_kind;
        let content = match RETURNED_ON_DELETE.contains(&kind_name) {
            true => Content::of(self.definition()),
            false => Content::of(meta("Status")),
        };
        let id = self.id("delete", "", self.resource.is_namespaced, "");
        Operation {
            body: Some(Body { content: Content::of(meta("DeleteOptions")), is_required: false }),
            responses: vec![(200, content.clone()), (202, content)],
            ..self.operation("delete", "delete", id, format!("delete{}", with_article(kind_name)))
        }
    }

    /// What can be done to one object, or to a part of it.
    fn by_name(&self, suffix: &str, part: &str) -> Vec<Operation> {
        let id = |verb: &str| self.id(verb, "", self.resource.is_namespaced, suffix);
        let about = |verb: &str| format!("{verb}{part} the specified {}", self.parent_kind);
        let mut operations = Vec::new();
        if self.has("get") {
            operations.push(self.operation("get", "get", id("read"), about("read")));
        }
        if self.has("update") {
            operations.push(self.replace(id("replace"), about("replace")));
        }
        if self.has("patch") {
            operations.push(self.patch(id("patch"), about("partially update")));
        }
        operations
    }

    fn object(&self, routes: &mut Vec<Route>) {
        let mut operations = self.by_name("", "");
        if self.has("delete") {
            operations.push(self.delete());
        }
        routes.push(self.place(format!("{}{}/{{name}}", self.prefix, self.scoped()), operations));
    }

    /// The older paths of watches.
    fn watches(&self, routes: &mut Vec<Route>) {
        if !self.has("watch") {
            return;
        }
        let kind_name = self.parent_kind;
        let list_about = format!(
            "watch individual changes to a list of {kind_name}. deprecated: use the 'watch' parameter with a list operation instead."
        );
        let one_about = format!(
            "watch changes to an object of kind {kind_name}. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."
        );
        let event = Content::of(meta("WatchEvent"));
        let watch = |action, id, about| Operation {
            produces: LIST_TYPES,
            responses: vec![(200, event.clone())],
            ..self.operation("get", action, id, about)
        };
        let is_namespaced = self.resource.is_namespaced;
        let base = format!("{}/watch", self.prefix);
        if is_namespaced {
            let id = self.id("watch", "", false, "ListForAllNamespaces");
            let path = format!("{base}/{}", self.resource.plural);
            routes.push(self.place(path, vec![watch("watchlist", id, list_about.clone())]));
        }
        let id = self.id("watch", "", is_namespaced, "List");
        routes.push(self.place(format!("{base}{}", self.scoped()), vec![watch("watchlist", id, list_about)]));
        if self.has("get") {
            let id = self.id("watch", "", is_namespaced, "");
            let path = format!("{base}{}/{{name}}", self.scoped());
            routes.push(self.place(path, vec![watch("watch", id, one_about)]));
        }
    }

    fn subresource(&self, routes: &mut Vec<Route>) {
        let r = self.resource;
        let path = format!("{}{}/{{name}}/{}", self.prefix, self.scoped(), r.subresource);
        let suffix = capital(r.subresource);
        if let Some((_, _, options)) =
            CONNECTED.iter().find(|(plural, sub, _)| (*plural, *sub) == (r.plural, r.subresource))
        {
            self.connect(&path, &suffix, options, routes);
            return;
        }
        if r.subresource == "log" {
            let mut read = self.by_name(&suffix, " log of");
            for operation in &mut read {
                operation.responses = vec![(200, Content::Text)];
                operation.produces =
                    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
                operation.params.extend(of_options("PodLogOptions"));
            }
            routes.push(self.place(path, read));
            return;
        }
        let mut operations = self.by_name(&suffix, &format!(" {} of", r.subresource));
        if self.has("create") {
            let id = self.id("create", "", r.is_namespaced, &suffix);
            let about = format!("create {} of{}", r.subresource, with_article(self.parent_kind));
            operations.push(self.create(id, about));
        }
        routes.push(self.place(path, operations));
    }

    fn connect(&self, path: &str, suffix: &str, options: &'static str, routes: &mut Vec<Route>) {
        let r = self.resource;
        let is_proxy = r.subresource == "proxy";
        let methods = if is_proxy { CONNECT_METHODS } else { &CONNECT_METHODS[..2] };
        let operation = |method: &&'static str, suffix: &str| {
            let id = self.id("connect", &capital(method), r.is_namespaced, suffix);
            let about =
                format!("connect {} requests to {} of {}", method.to_uppercase(), r.subresource, self.parent_kind);
            let mut params = of_options(options);
            params.push(Param::name(options));
            if r.is_namespaced {
                params.push(Param::namespace());
            }
            Operation {
                gvk: Some(["", "v1", options].map(str::to_owned)),
                params,
                produces: ANY_TYPE,
                responses: vec![(200, Content::Text)],
                ..self.operation(method, "connect", id, about)
            }
        };
        let operations = methods.iter().map(|method| operation(method, suffix)).collect();
        routes.push(Route { path: path.to_owned(), operations });
        if is_proxy {
            let mut operations: Vec<Operation> =
                methods.iter().map(|method| operation(method, &format!("{suffix}WithPath"))).collect();
            for operation in &mut operations {
                operation.params.push(Param::path("path", "The path behind the proxy.".to_owned()));
            }
            routes.push(Route { path: format!("{path}/{{path}}"), operations });
        }
    }
}
