//! Parameters of requests.

use pintle_apimachinery::{Str, Value, json};
use pintle_schema::{Shape, builtin, kind};

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Path,
    Query,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Param {
    pub(crate) name: Str,
    pub(crate) place: Place,
    /// `string`, `integer` or `boolean`.
    pub(crate) kind: &'static str,
    pub(crate) about: String,
}

type Row = (&'static str, &'static str, &'static str);

const PRETTY: Row = ("pretty", "string", "Whether the answer is laid out for people to read.");
const DRY_RUN: Row = ("dryRun", "string", "`All`: every stage of the request runs, and nothing is stored.");

const CONTINUE: Row = ("continue", "string", "Where the next page begins, as the answer before said.");
const FIELD_SELECTOR: Row =
    ("fieldSelector", "string", "Restricts the list of returned objects to those with these fields.");
const LABEL_SELECTOR: Row =
    ("labelSelector", "string", "Restricts the list of returned objects to those with these labels.");
const LIMIT: Row = ("limit", "integer", "How many objects a page holds at most.");
const RESOURCE_VERSION: Row = ("resourceVersion", "string", "The version from which, or at which, to read.");
const RESOURCE_VERSION_MATCH: Row =
    ("resourceVersionMatch", "string", "How resourceVersion applies to a list: Exact or NotOlderThan.");
const SEND_INITIAL_EVENTS: Row =
    ("sendInitialEvents", "boolean", "A watch begins with the present objects and a bookmark behind them.");
const TIMEOUT: Row = ("timeoutSeconds", "integer", "How long the request may take.");

const LIST: &[Row] = &[
    ("allowWatchBookmarks", "boolean", "The watch may send bookmarks."),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    TIMEOUT,
    ("watch", "boolean", "Watch for changes to the described resources as they happen, instead of listing them."),
];

const WRITE: &[Row] = &[
    DRY_RUN,
    ("fieldManager", "string", "Who changes the object; 128 printable characters at most."),
    (
        "fieldValidation",
        "string",
        "What happens to unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
    ),
];

const FORCE: Row = ("force", "boolean", "An apply takes over fields that others own.");

const DELETE: &[Row] = &[
    DRY_RUN,
    ("gracePeriodSeconds", "integer", "How long the object has to end; 0 is at once."),
    (
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "boolean",
        "Delete an object that cannot be read from the store. Finalizers and preconditions do not count.",
    ),
    ("orphanDependents", "boolean", "Older form of propagationPolicy."),
    ("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
];

const DELETE_COLLECTION: &[Row] = &[
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    TIMEOUT,
];

impl Param {
    fn query((name, kind, about): &Row) -> Param {
        Param { name: Str::const_new(name), place: Place::Query, kind, about: (*about).to_owned() }
    }

    /// The name in the path.
    pub(crate) fn name(kind: &str) -> Param {
        Param::path("name", format!("Name of the {kind}."))
    }

    /// The namespace in the path.
    pub(crate) fn namespace() -> Param {
        Param::path("namespace", "The namespace.".to_owned())
    }

    /// A parameter in the path.
    pub(crate) fn path(name: &'static str, about: String) -> Param {
        Param { name: Str::const_new(name), place: Place::Path, kind: "string", about }
    }

    /// As OpenAPI v3 has it.
    pub(crate) fn v3(&self) -> Value {
        let mut out = json!({
            "name": (&self.name),
            "in": (self.place()),
            "description": (self.about.as_str()),
            "schema": {"type": (self.kind), "uniqueItems": true},
        });
        if self.place == Place::Path {
            out.set("required", true);
        }
        out
    }

    /// As OpenAPI v2 has it.
    pub(crate) fn v2(&self) -> Value {
        let mut out = json!({
            "name": (&self.name),
            "in": (self.place()),
            "description": (self.about.as_str()),
            "type": (self.kind),
            "uniqueItems": true,
        });
        if self.place == Place::Path {
            out.set("required", true);
        }
        out
    }

    fn place(&self) -> &'static str {
        match self.place {
            Place::Query => "query",
            Place::Path => "path",
        }
    }
}

/// The query parameters of an action (`get`, `list`, `post` ...) on a built-in resource.
pub(crate) fn of_action(action: &str) -> Vec<Param> {
    let rows: Vec<&Row> = match action {
        "list" | "watch" | "watchlist" => LIST.iter().chain([&PRETTY]).collect(),
        "post" | "put" => WRITE.iter().chain([&PRETTY]).collect(),
        "patch" => WRITE.iter().chain([&FORCE, &PRETTY]).collect(),
        "delete" => DELETE.iter().chain([&PRETTY]).collect(),
        "deletecollection" => DELETE.iter().chain(DELETE_COLLECTION).chain([&PRETTY]).collect(),
        "get" => vec![&PRETTY],
        _ => Vec::new(),
    };
    rows.into_iter().map(Param::query).collect()
}

/// The query parameters of an action on a custom resource.
pub(crate) fn of_custom_action(action: &str) -> Vec<Param> {
    match action {
        "get" => vec![Param::query(&RESOURCE_VERSION), Param::query(&PRETTY)],
        "deletecollection" => of_action("list"),
        other => of_action(other),
    }
}

/// The query parameters that the fields of an options kind (`PodLogOptions`, say) are.
pub(crate) fn of_options(options_kind: &str) -> Vec<Param> {
    let Some(options) = kind("", "v1", options_kind) else { return Vec::new() };
    let schema = builtin();
    let fields =
        schema.fields(schema.ty(options.id)).iter().filter(|f| !matches!(f.name.as_str(), "apiVersion" | "kind"));
    let kind_of = |shape: &Shape| match shape {
        Shape::Bool => "boolean",
        Shape::Int32 | Shape::Int64 => "integer",
        Shape::List { item, .. } if matches!(schema.shape(*item), Shape::Int32 | Shape::Int64) => "integer",
        _ => "string",
    };
    let params = fields.map(|field| Param {
        name: field.name.clone(),
        place: Place::Query,
        kind: kind_of(schema.shape(field.shape)),
        about: format!("See {options_kind}."),
    });
    // a moment cannot be told in a query
    params.filter(|p| p.name != "sinceTime").collect()
}
