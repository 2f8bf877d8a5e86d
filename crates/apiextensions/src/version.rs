//! A definition compiled: everything the registry needs to serve its resources, one [`CompiledVersion`] per version.

use crate::columns::Columns;
use crate::conversion::Conversion;
use crate::jsonpath::JsonPath;
use crate::rules::Rules;
use crate::scale::Scale;
use crate::structural::default::{default, drop_nulls};
use crate::structural::objectmeta::{self, Misfit};
use crate::structural::prune::prune;
use crate::structural::{Structural, typed};
use pintle_apimachinery::gvk::compare_versions;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::value::go_v;
use pintle_apimachinery::{GroupVersion, GroupVersionKind, Str, Value};
use pintle_schema::{Node, Schema, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A CustomResourceDefinition, compiled.
#[derive(Clone, Debug)]
pub struct CompiledDefinition {
    /// Name of the definition.
    pub name: Str,
    /// Its uid.
    pub uid: Str,
    /// API group.
    pub group: Str,
    /// Accepted plural name.
    pub plural: Str,
    /// Accepted singular name.
    pub singular: Str,
    /// Accepted kind.
    pub kind: Str,
    /// Accepted kind of lists.
    pub list_kind: Str,
    /// Accepted short names.
    pub short_names: Vec<Str>,
    /// Accepted categories.
    pub categories: Vec<Str>,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// The version that is stored.
    pub storage_version: Str,
    /// How objects are converted between versions.
    pub conversion: Conversion,
    /// The versions by name.
    pub versions: BTreeMap<Str, Arc<CompiledVersion>>,
}

/// One version of a definition, compiled.
#[derive(Clone, Debug)]
pub struct CompiledVersion {
    /// Group, version and kind.
    pub gvk: GroupVersionKind,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// Whether clients may use it.
    pub is_served: bool,
    /// Whether it is the stored one.
    pub is_storage: bool,
    /// The text of the Warning that requests to a deprecated version get.
    pub deprecation_warning: Option<String>,
    /// The schema, defaults pruned.
    pub structural: Arc<Structural>,
    /// The rules of the schema, if it has any.
    pub rules: Option<Arc<Rules>>,
    /// The schema as patches and server-side apply read it.
    pub schema: Arc<Schema>,
    /// The type of whole objects in `schema`.
    pub type_id: TypeId,
    /// The columns of tables.
    pub columns: Columns,
    /// Whether there is a status subresource.
    pub has_status: bool,
    /// The scale subresource, if there is one.
    pub scale: Option<Scale>,
    /// The fields that field selectors may name.
    pub selectable: Vec<SelectableField>,
}

/// A field that field selectors may name.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectableField {
    /// Its name in selectors, such as `spec.colour`.
    pub name: Str,
    path: Option<JsonPath>,
}

impl SelectableField {
    /// Reads an entry of `selectableFields`.
    pub fn compile(field: &Value) -> SelectableField {
        let path = field["jsonPath"].str_or_empty();
        SelectableField { name: Str::new(path.strip_prefix('.').unwrap_or(path)), path: JsonPath::parse(path).ok() }
    }

    /// The value in an object as selectors compare it; empty where it is absent.
    pub fn value_of(&self, object: &Value) -> Str {
        let found = self.path.as_ref().and_then(|path| path.find(object).ok()?.first().copied());
        found.filter(|value| !value.is_null()).map(|value| Str::from(go_v(value))).unwrap_or_default()
    }
}

/// The schema of a version in `spec.versions`; `Null` where it has none.
pub fn schema_of(version: &Value) -> &Value {
    version.at("schema.openAPIV3Schema")
}

impl CompiledDefinition {
    /// Compiles a definition whose names are accepted.
    ///
    /// # Errors
    /// What makes it one that cannot be served, for the log: the validation of definitions lets no such one in.
    pub fn compile(definition: &Value) -> Result<CompiledDefinition, String> {
        let (spec, names) = (&definition["spec"], definition.at("status.acceptedNames"));
        let name_of = |field: &str| match names[field].str_or_empty() {
            "" => Err(format!("{} has an empty status.acceptedNames.{field}", definition.name())),
            name => Ok(Str::new(name)),
        };
        let list_of = |field: &str| names[field].items().iter().map(|n| Str::new(n.str_or_empty())).collect();
        let versions = spec["versions"].items();
        let storage = versions.iter().find(|v| v["storage"].is_true()).ok_or("no version is the storage version")?;
        let mut compiled = CompiledDefinition {
            name: Str::new(definition.name()),
            uid: Str::new(definition.uid()),
            group: Str::new(spec["group"].str_or_empty()),
            plural: name_of("plural")?,
            singular: name_of("singular")?,
            kind: name_of("kind")?,
            list_kind: name_of("listKind")?,
            short_names: list_of("shortNames"),
            categories: list_of("categories"),
            is_namespaced: spec["scope"].as_str() == Some("Namespaced"),
            storage_version: Str::new(storage["name"].str_or_empty()),
            conversion: Conversion::compile(&spec["conversion"]),
            versions: BTreeMap::new(),
        };
        for version in versions {
            let one = CompiledVersion::compile(&compiled, version, versions)?;
            compiled.versions.insert(one.gvk.version.clone(), Arc::new(one));
        }
        Ok(compiled)
    }

    /// A version by name.
    pub fn version(&self, name: &str) -> Option<&Arc<CompiledVersion>> {
        self.versions.get(name)
    }

    /// The version that is stored.
    pub fn storage(&self) -> Option<&Arc<CompiledVersion>> {
        self.version(&self.storage_version)
    }

    /// Brings a stored object to what the schema of its own version makes of it today.
    pub fn on_read(&self, object: &mut Value) {
        let version = GroupVersion::parse(object.api_version()).map(|gv| gv.version).unwrap_or_default();
        if let Some(version) = self.version(&version) {
            version.on_read(object);
        }
    }
}

impl CompiledVersion {
    fn compile(definition: &CompiledDefinition, version: &Value, all: &[Value]) -> Result<CompiledVersion, String> {
        let name = version["name"].str_or_empty();
        let mut structural = Structural::compile(schema_of(version))?;
        prune_defaults(&mut structural);
        let (schema, type_id) = typed::to_schema(&structural);
        let subresources = &version["subresources"];
        let deprecation_warning =
            version["deprecated"].is_true().then(|| match version["deprecationWarning"].as_str() {
                Some(text) => text.to_owned(),
                None => default_deprecation_warning(definition, name, all),
            });
        Ok(CompiledVersion {
            gvk: GroupVersionKind::new(&definition.group, name, &definition.kind),
            is_namespaced: definition.is_namespaced,
            is_served: version["served"].is_true(),
            is_storage: version["storage"].is_true(),
            deprecation_warning,
            rules: Rules::compile(&structural, true).map(Arc::new),
            structural: Arc::new(structural),
            schema: Arc::new(schema),
            type_id,
            columns: Columns::compile(&version["additionalPrinterColumns"]),
            has_status: subresources.has("status") && !subresources["status"].is_null(),
            scale: subresources["scale"].as_object().map(|_| Scale::compile(&subresources["scale"])),
            selectable: version["selectableFields"].items().iter().map(SelectableField::compile).collect(),
        })
    }

    /// Where an object begins in [`CompiledVersion::schema`].
    pub fn node(&self) -> Node<'_> {
        self.schema.root(self.type_id)
    }

    /// Whether `object` is of this version's kind: of others nothing is known here.
    fn is_own(&self, object: &Value) -> bool {
        let group = GroupVersion::parse(object.api_version()).map(|gv| gv.group).unwrap_or_default();
        group == self.gvk.group && object.kind() == self.gvk.kind
    }

    /// Brings a client's object (a body, or what a patch made) to what the schema makes of it: prunes, drops nulls, fills
    /// in defaults, checks metadata. Answers the paths of unknown fields in the order in which they are told.
    ///
    /// # Errors
    /// The text behind `... cannot be handled as a ...: ` of the 400.
    pub fn on_body(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = self.coerce(object, Misfit::Refuse)?;
        if self.is_own(object) {
            default(object, &self.structural);
        }
        Ok(unknown)
    }

    /// Fills in the defaults of an object and leaves the rest as it is, unknown fields and nulls included: what an apply
    /// makes is judged by the schema as it stands.
    pub fn fill_defaults(&self, object: &mut Value) {
        if self.is_own(object) {
            default(object, &self.structural);
        }
    }

    /// Brings a stored object of this version to what the schema makes of it today.
    pub fn on_read(&self, object: &mut Value) {
        // what is stored and does not fit any more is dropped, so nothing is refused here
        let _ = self.coerce(object, Misfit::Drop);
        if self.is_own(object) {
            if object.metadata()["generation"].is_empty() {
                object.make("metadata").set("generation", 1);
            }
            default(object, &self.structural);
        }
    }

    /// Brings an object that a conversion made to the schema of this version; nothing is defaulted.
    ///
    /// # Errors
    /// The fault of its metadata.
    pub fn on_convert(&self, object: &mut Value) -> Result<(), String> {
        self.coerce(object, Misfit::Refuse).map(|_| ())
    }

    fn coerce(&self, object: &mut Value, misfit: Misfit) -> Result<Vec<String>, String> {
        for field in ["kind", "apiVersion"] {
            let value = &object[field];
            if !value.is_null() && value.as_str().is_none() {
                let (shown, ty) = (go_v(value), objectmeta::go_type(value));
                return Err(format!(".{field} accessor error: {shown} is of the type {ty}, expected string"));
            }
        }
        let mut unknown = Vec::new();
        let metadata = if object.has("metadata") {
            let read = objectmeta::read(&object["metadata"], misfit)?;
            unknown.extend(read.unknown.into_iter().map(|field| format!("metadata.{field}")));
            Some(read.metadata)
        } else {
            None
        };
        if self.is_own(object) {
            unknown.extend(prune(object, &self.structural, true));
            drop_nulls(object, Some(&self.structural));
            let embedded = objectmeta::coerce(object, &self.structural, false, misfit).map_err(|e| e.to_string())?;
            unknown.extend(embedded);
        }
        if let Some(metadata) = metadata {
            object.set("metadata", metadata);
        }
        Ok(unknown)
    }
}

/// Takes out of every default what its schema does not know.
fn prune_defaults(schema: &mut Structural) {
    if let Some(mut value) = schema.default.take() {
        prune(&mut value, schema, schema.is_embedded);
        // misfits are dropped, so nothing is refused
        let _ = objectmeta::coerce(&mut value, schema, schema.is_embedded, Misfit::Drop);
        schema.default = Some(value);
    }
    for (_, property) in &mut schema.properties {
        prune_defaults(property);
    }
    if let Some(items) = schema.items.as_deref_mut() {
        prune_defaults(items);
    }
    if let crate::structural::Additional::Schema(additional) = &mut schema.additional {
        prune_defaults(additional);
    }
}

/// Whether a default says what its schema does not know.
pub(crate) fn has_unpruned_defaults(schema: &Structural) -> bool {
    let mut pruned = schema.clone();
    prune_defaults(&mut pruned);
    pruned != *schema
}

/// `G/v1beta1 K is deprecated; use G/v1 K`: the newest version that is served, not deprecated and at least as stable.
fn default_deprecation_warning(definition: &CompiledDefinition, version: &str, all: &[Value]) -> String {
    let (group, kind) = (&definition.group, &definition.kind);
    let message = format!("{group}/{version} {kind} is deprecated");
    let mut candidates: Vec<&str> = all
        .iter()
        .filter(|v| v["served"].is_true() && !v["deprecated"].is_true())
        .map(|v| v["name"].str_or_empty())
        .filter(|name| compare_versions(name, version).is_gt())
        .collect();
    candidates.sort_by(|a, b| compare_versions(b, a));
    match candidates.first() {
        Some(newest) => format!("{message}; use {group}/{newest} {kind}"),
        None => message,
    }
}

#[cfg(test)]
mod tests;
