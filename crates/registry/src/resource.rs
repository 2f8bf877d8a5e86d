//! A served resource as data: names, forms, schema, strategy, store. Built-in kinds and custom resources are the same
//! thing here.

use crate::fields::Fields;
use crate::head::{Head, stored_bytes};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::parse;
use pintle_apimachinery::{GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource, Status, Str, Value};
use pintle_kinds::Strategy;
use pintle_patch::apply::FieldSet;
use pintle_schema::{Node, Schema, TypeId};
use pintle_storage::{Key, Record, Revision, Storage};
use std::borrow::Cow;
use std::sync::Arc;

/// A strategy, whoever owns it.
#[derive(Clone, Debug)]
pub enum StrategyRef {
    /// Of a built-in kind.
    Static(&'static dyn Strategy),
    /// Of a custom resource.
    Shared(Arc<dyn Strategy>),
}

impl std::ops::Deref for StrategyRef {
    type Target = dyn Strategy + 'static;
    fn deref(&self) -> &(dyn Strategy + 'static) {
        match self {
            StrategyRef::Static(strategy) => *strategy,
            StrategyRef::Shared(strategy) => &**strategy,
        }
    }
}

/// What is known of a resource's objects.
#[derive(Clone, Debug)]
pub enum Definition {
    /// A type of the catalogue.
    Builtin(TypeId),
    /// A version of a CustomResourceDefinition.
    Custom(Arc<crate::custom::CustomVersion>),
}

/// Where the objects of a resource lie, shared by its versions.
#[derive(Debug)]
pub struct Store {
    /// Group and resource, for errors.
    pub group_resource: GroupResource,
    /// The storage of this resource: its watch cache, or the back end itself.
    pub storage: Arc<dyn Storage>,
    /// What all keys begin with, slash at the end: `/registry/pods/`.
    pub root: Key,
    /// The fields that selectors may name.
    pub fields: Fields,
    /// Objects vanish this long after their last write (events).
    pub ttl: Option<std::time::Duration>,
    /// The pools from which objects get addresses and ports (services).
    pub service_pools: std::sync::OnceLock<Arc<crate::allocate::ServicePools>>,
}

impl Store {
    /// The key of an object; `namespace` is empty for cluster-scoped ones.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        if namespace.is_empty() {
            Key::new(format!("{}{name}", self.root))
        } else {
            Key::new(format!("{}{namespace}/{name}", self.root))
        }
    }

    /// What the keys of a namespace begin with; of all when `namespace` is empty.
    pub fn prefix(&self, namespace: &str) -> Key {
        if namespace.is_empty() { self.root.clone() } else { Key::new(format!("{}{namespace}/", self.root)) }
    }

    /// Namespace (empty for cluster-scoped) and name of a key.
    pub fn names<'k>(&self, key: &'k Key) -> (&'k str, &'k str) {
        let rest = key.as_str().get(self.root.len()..).unwrap_or_default();
        rest.split_once('/').unwrap_or(("", rest))
    }

    /// The head of a record.
    pub fn head(&self, record: &Record) -> Arc<Head> {
        Head::of(record, &self.fields)
    }
}

/// One version of a resource, as it is served.
#[derive(Debug)]
pub struct Resource {
    /// Group, version and plural.
    pub gvr: GroupVersionResource,
    /// Group and plural, for errors.
    pub group_resource: GroupResource,
    /// Kind of its objects.
    pub kind: GroupVersionKind,
    /// Kind of its lists.
    pub list_kind: Str,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// The form on which the strategy works.
    pub strategy_kind: GroupVersionKind,
    /// The form that is stored.
    pub stored_kind: GroupVersionKind,
    /// Its rules.
    pub strategy: StrategyRef,
    /// Its schema.
    pub definition: Definition,
    /// Where its objects lie.
    pub store: Arc<Store>,
    /// Verbs, sorted.
    pub verbs: Vec<Str>,
    /// Subresources that are served.
    pub subresources: Vec<Str>,
    /// What discovery tells besides.
    pub discovery: Discovery,
    /// Fields that nobody owns through the resource or a subresource of it.
    pub reset_fields: Vec<(Str, FieldSet)>,
}

/// What discovery tells of a resource.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// Singular name.
    pub singular: Str,
    /// Short names.
    pub short_names: Vec<Str>,
    /// Categories.
    pub categories: Vec<Str>,
    /// Hash of the storage version.
    pub storage_version_hash: Str,
}

impl Resource {
    /// Group and resource, for errors.
    pub fn group_resource(&self) -> &GroupResource {
        &self.group_resource
    }

    /// Where the values of a selectable field of this version stand in heads; `None` for other fields.
    pub(crate) fn field_position(&self, name: &str) -> Option<usize> {
        if self.is_custom() {
            return self.store.fields.position(name);
        }
        let renamed = self.strategy.renamed_fields().iter().find(|(own, _)| *own == name);
        let stored = renamed.map_or(name, |(_, stored)| *stored);
        let own = self.strategy.selectable_fields();
        own.iter().any(|(field, _)| *field == name).then(|| self.store.fields.position(stored)).flatten()
    }

    /// The text that every answer of a deprecated version of a custom resource warns with.
    pub fn deprecation_warning(&self) -> Option<&str> {
        match &self.definition {
            Definition::Builtin(_) => None,
            Definition::Custom(custom) => custom.version().deprecation_warning.as_deref(),
        }
    }

    /// Whether this is a custom resource.
    pub fn is_custom(&self) -> bool {
        matches!(self.definition, Definition::Custom(_))
    }

    /// The place in a schema where an object of the served form begins.
    pub fn node(&self) -> Node<'_> {
        match &self.definition {
            Definition::Builtin(id) => pintle_schema::builtin().root(*id),
            Definition::Custom(custom) => custom.node(),
        }
    }

    /// The schema of the served form.
    pub fn schema(&self) -> &Schema {
        self.node().schema
    }

    /// Whether the stored form is the served one.
    pub fn is_stored_form(&self) -> bool {
        self.kind == self.stored_kind
    }

    /// Whether the form on which the strategy works is the served one, so that nothing has to be copied to be shown.
    pub(crate) fn is_served_as_handled(&self) -> bool {
        self.kind == self.strategy_kind
    }

    /// The object of a record in the served form, with its resourceVersion.
    ///
    /// # Errors
    /// 500 when what is stored cannot be read or converted.
    pub async fn object(&self, record: &Record) -> Result<Value> {
        let object = self.stored_object(record)?;
        match &self.definition {
            Definition::Builtin(_) => self.convert(object, &self.stored_kind, &self.kind).await,
            // it may have been stored when another version was the one to store
            Definition::Custom(custom) => custom.convert(object, &self.kind.group_version()).await,
        }
    }

    /// The object of a record in the stored form, with its resourceVersion.
    ///
    /// # Errors
    /// 500 when what is stored cannot be read.
    pub fn stored_object(&self, record: &Record) -> Result<Value> {
        let head = self.store.head(record);
        let mut object = parse(head.bytes()).map_err(|why| {
            Box::new(Status::internal(format!("the stored object at {} cannot be read: {why}", record.key)))
        })?;
        if let Definition::Custom(custom) = &self.definition {
            custom.on_read(&mut object);
        }
        set_revision(&mut object, record.revision);
        Ok(object)
    }

    /// The object in another of the resource's forms.
    ///
    /// # Errors
    /// 500 when it cannot be converted.
    pub async fn convert(&self, object: Value, from: &GroupVersionKind, to: &GroupVersionKind) -> Result<Value> {
        if from == to {
            return Ok(object);
        }
        match &self.definition {
            Definition::Builtin(_) => {
                pintle_kinds::convert::convert(object, &from.group_version(), &to.group_version(), &to.kind)
                    .map_err(|why| Box::new(Status::internal(why)))
            }
            Definition::Custom(custom) => custom.convert(object, &to.group_version()).await,
        }
    }

    /// The bytes and head of an object in the stored form.
    pub fn at_rest(&self, object: &Value) -> Head {
        Head::new(stored_bytes(object), object, &self.store.fields)
    }

    /// Gives an object the apiVersion and kind of the served form where it says none.
    pub fn set_kind(&self, object: &mut Value) {
        object.set("apiVersion", self.kind.api_version());
        object.set("kind", self.kind.kind.clone());
    }

    /// The object (served form) as the detour over the strategy's form leaves it, which is what field owners see;
    /// `None` when there is no detour.
    pub(crate) fn detoured(&self, object: &Value) -> Option<Value> {
        if self.is_custom() || self.kind == self.strategy_kind {
            return None;
        }
        let (own, detour) = (self.kind.group_version(), self.strategy_kind.group_version());
        let there = pintle_kinds::convert::convert(object.clone(), &own, &detour, &self.kind.kind).ok()?;
        pintle_kinds::convert::convert(there, &detour, &own, &self.kind.kind).ok()
    }

    /// The last touch before an object (the strategy's form) is stored.
    pub(crate) fn canonicalize(&self, object: &mut Value) {
        self.strategy.canonicalize(object);
        let kind = &self.strategy_kind;
        if !self.is_custom()
            && let Some(found) = pintle_schema::kind(&kind.group, &kind.version, &kind.kind)
        {
            pintle_schema::forget_empty(object, pintle_schema::builtin().root(found.id));
        }
    }

    /// The object (served or stored form) as tables and partial metadata show it: in the strategy's form, without what
    /// its conversion puts into annotations.
    pub(crate) fn internal_form<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        if self.is_custom() {
            return Cow::Borrowed(object);
        }
        let mut shown = Cow::Borrowed(object);
        let (own, to) = (self.kind.group_version(), self.strategy_kind.group_version());
        if own != to
            && object.api_version() == own.to_string()
            && let Ok(converted) = pintle_kinds::convert::convert(object.clone(), &own, &to, &self.kind.kind)
        {
            shown = Cow::Owned(converted);
        }
        for key in self.strategy.annotations_of_conversion() {
            if shown.annotation(key).is_some() {
                pintle_apimachinery::meta::remove_annotation(shown.to_mut(), key);
            }
        }
        shown
    }

    /// Whether `group_version` is one of the forms that a body may have.
    pub fn accepts(&self, group_version: &GroupVersion) -> bool {
        *group_version == self.gvr.group_version()
    }
}

/// Sets `metadata.resourceVersion`.
pub fn set_revision(object: &mut Value, revision: Revision) {
    object.make("metadata").set("resourceVersion", revision.to_string());
}

impl Resource {
    /// The type of a built-in kind.
    pub fn type_id(&self) -> Option<TypeId> {
        match &self.definition {
            Definition::Builtin(id) => Some(*id),
            Definition::Custom(_) => None,
        }
    }
}

/// What ownership of fields asks.
impl Resource {
    /// The fields that nobody owns through an endpoint of this resource.
    pub(crate) fn reset_fields(&self, subresource: &str) -> Option<&FieldSet> {
        self.reset_fields.iter().find(|(name, _)| name == subresource).map(|(_, set)| set)
    }

    /// The object in the version in which a manager wrote; `None` when there is no such version.
    pub(crate) fn convert_for_owners(&self, object: &Value, api_version: &str) -> Result<Option<Value>, String> {
        let Some(to) = GroupVersion::parse(api_version) else { return Ok(None) };
        match &self.definition {
            Definition::Builtin(_) => {
                let own = object["apiVersion"].str_or_empty();
                if own == api_version {
                    return Ok(Some(object.clone()));
                }
                let Some(from) = GroupVersion::parse(own) else { return Ok(None) };
                if pintle_schema::kind(&to.group, &to.version, &self.kind.kind).is_none() {
                    return Ok(None);
                }
                pintle_kinds::convert::convert(object.clone(), &from, &to, &self.kind.kind).map(Some)
            }
            Definition::Custom(custom) => Ok(custom.convert_for_owners_now(object, &to)),
        }
    }

    /// The schema of another version of the kind.
    pub(crate) fn node_of_version(&self, api_version: &str) -> Option<Node<'_>> {
        let gv = GroupVersion::parse(api_version)?;
        match &self.definition {
            Definition::Builtin(_) => {
                let kind = pintle_schema::kind(&gv.group, &gv.version, &self.kind.kind)?;
                Some(pintle_schema::builtin().root(kind.id))
            }
            Definition::Custom(custom) => custom.node_of_version(&gv),
        }
    }
}

/// The sets of fields that the endpoints of a resource reset, by subresource.
pub(crate) fn reset_sets(strategy: &dyn Strategy, subresources: &[Str]) -> Vec<(Str, FieldSet)> {
    let set = |paths: &[&'static str]| {
        let split: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
        let borrowed: Vec<&[&str]> = split.iter().map(Vec::as_slice).collect();
        FieldSet::of_paths(&borrowed)
    };
    let main = strategy.reset_fields();
    let mut sets = Vec::new();
    if !main.is_empty() {
        sets.push((Str::default(), set(main)));
    }
    for name in subresources {
        if let Some(rules) = strategy.subresource(name).filter(|rules| !rules.reset_fields().is_empty()) {
            sets.push((name.clone(), set(rules.reset_fields())));
        }
    }
    sets
}
