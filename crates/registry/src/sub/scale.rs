//! `scale`: how many replicas a resource asks for, as an `autoscaling/v1` Scale.

use crate::call::Call;
use crate::options::WriteOptions;
use crate::patch::{Patch, PatchType, decode_patched};
use crate::resource::{Definition, Resource};
use crate::update::{PartUpdater, check_name};
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{ErrorList, FieldError, GroupKind, GroupVersionKind, Path, Status, Value, json};
use pintle_patch::apply::{Applied, OneVersion, Scope, Writer, apply, to_parent, to_scale, update};
use pintle_schema::{Node, TypeId};
use pintle_storage::Record;

/// A change of a scale.
#[derive(Debug)]
pub enum ScaleWrite {
    /// PUT, with the decoded body.
    Replace(Value),
    /// PATCH.
    Patch(Patch),
}

/// The Scale of a stored object.
///
/// # Errors
/// 500 when the object says nothing of replicas.
pub async fn read_scale(resource: &Resource, record: &Record) -> Result<Value> {
    scale_of(resource, &resource.object(record).await?)
}

/// Changes the scale of an object; the Scale afterwards.
///
/// # Errors
/// Whatever refuses it.
pub async fn write_scale(
    resource: &Resource,
    call: &Call<'_>,
    write: ScaleWrite,
    options: &WriteOptions,
) -> Result<Value> {
    let kind = GroupVersionKind::new("autoscaling", "v1", "Scale");
    let id = pintle_schema::kind("autoscaling", "v1", "Scale").map_or(TypeId(0), |k| k.id);
    let view = ScaleUpdater { write, options, kind, id };
    let record = resource.update_through(call, &view, options).await?;
    read_scale(resource, &record).await
}

/// The Scale that shows an object (served form).
fn scale_of(resource: &Resource, object: &Value) -> Result<Value> {
    if let Definition::Custom(custom) = &resource.definition {
        return custom.scale_of(object);
    }
    let selector = object.at("spec.selector");
    let is_plain = resource.kind.kind == "ReplicationController";
    let selector = if is_plain { Ok(Selector::of_set(selector)) } else { Selector::from_object(selector) };
    let selector = selector.map_err(|why| Box::new(Status::plain_error(why)))?;
    let metadata = object.metadata();
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"].clone(), "namespace": metadata["namespace"].clone(), "uid": metadata["uid"].clone(),
            "resourceVersion": metadata["resourceVersion"].clone(),
            "creationTimestamp": metadata["creationTimestamp"].clone(),
        },
        "spec": {}, "status": {"replicas": object.at("status.replicas").as_i64().unwrap_or_default()},
    });
    let replicas = object.at("spec.replicas").as_i64().unwrap_or_default();
    if replicas != 0 {
        *scale.make("spec.replicas") = Value::Int(replicas);
    }
    let selector = selector.to_string();
    if !selector.is_empty() {
        *scale.make("status.selector") = Value::from(selector);
    }
    Ok(scale)
}

struct ScaleUpdater<'o> {
    write: ScaleWrite,
    options: &'o WriteOptions,
    kind: GroupVersionKind,
    id: TypeId,
}

impl ScaleUpdater<'_> {
    fn node(&self) -> Node<'static> {
        pintle_schema::builtin().root(self.id)
    }

    fn scope<'s>(&'s self, call: &Call<'s>) -> Scope<'s> {
        Scope {
            kind: &self.kind,
            node: self.node(),
            subresource: call.subresource,
            reset_fields: None,
            is_custom: false,
            versions: &OneVersion,
        }
    }
}

/// Where each version of the resource keeps its replicas.
fn with_paths<T>(resource: &Resource, act: impl FnOnce(&pintle_patch::apply::ReplicasPaths<'_>) -> T) -> T {
    let version = resource.kind.api_version();
    let path = match &resource.definition {
        Definition::Builtin(_) => vec!["spec".to_owned(), "replicas".to_owned()],
        Definition::Custom(custom) => custom.replicas_path(),
    };
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    act(&[(version.as_str(), Some(path.as_slice()))])
}

impl PartUpdater for ScaleUpdater<'_> {
    fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }

    fn part(&self, resource: &Resource, object: &Value) -> Result<Value> {
        let mut scale = match &resource.definition {
            Definition::Builtin(_) => scale_of(resource, object)?,
            Definition::Custom(custom) => custom.scale_for_update(object)?,
        };
        let owners =
            with_paths(resource, |paths| to_scale(object, paths)).map_err(|why| Box::new(Status::internal(why)))?;
        if !owners.items().is_empty() {
            scale.make("metadata").set("managedFields", owners);
        }
        Ok(scale)
    }

    fn updated(&self, call: &Call<'_>, resource: &Resource, _object: &Value, part: &Value) -> Result<Value> {
        let scope = self.scope(call);
        let mut scale = match &self.write {
            ScaleWrite::Replace(body) => {
                let mut scale = body.clone();
                let uid = scale.uid();
                if !uid.is_empty() && uid != part.uid() {
                    return Err(resource.uid_mismatch(call, uid, part.uid()));
                }
                let writer = Writer { manager: call.manager(&self.options.field_manager), now: call.now };
                update(&scope, Some(part), &mut scale, &writer);
                scale
            }
            ScaleWrite::Patch(patch) if patch.kind() == PatchType::Apply => {
                let document = pintle_codec::yaml::parse(patch.bytes())
                    .map_err(|why| Box::new(Status::bad_request(format!("error decoding YAML: {why}"))))?;
                let writer = Writer { manager: &self.options.field_manager, now: call.now };
                match apply(&scope, Some(part), &document.value, &writer, self.options.force)? {
                    Applied::Nothing => part.clone(),
                    Applied::Owners(scale) => scale,
                    Applied::Object(_) if resource.is_custom() => {
                        let why = "request to convert CR to an invalid group/version: autoscaling/v1";
                        return Err(scope.conversion_failed(&document.value, why));
                    }
                    Applied::Object(scale) => scale,
                }
            }
            ScaleWrite::Patch(patch) => {
                let read =
                    |patched: &Value, refuse: &crate::patch::Refuse<'_>| decode_patched(patched, self.id, refuse);
                let mut scale = patch.patched_along(call, self.node(), part, &read)?;
                let writer = Writer { manager: call.manager(&self.options.field_manager), now: call.now };
                update(&scope, Some(part), &mut scale, &writer);
                scale
            }
        };
        if scale.namespace().is_empty() && resource.is_namespaced {
            scale.make("metadata").set("namespace", call.namespace);
        }
        check_name(call, &scale)?;
        // custom resources are judged as a whole
        let errors = if resource.is_custom() { ErrorList::new() } else { validate(&scale) };
        if !errors.is_empty() {
            return Err(Box::new(Status::invalid(&GroupKind::new("autoscaling", "Scale"), scale.name(), &errors)));
        }
        Ok(scale)
    }

    fn put(&self, resource: &Resource, part: &Value, object: &mut Value) -> Result<()> {
        let version = resource.kind.api_version();
        let owners = with_paths(resource, |paths| to_parent(object, part, &version, paths));
        let owners = owners.map_err(|why| Box::new(Status::internal(why)))?;
        match &resource.definition {
            Definition::Builtin(_) => {
                *object.make("spec.replicas") = Value::Int(part.at("spec.replicas").as_i64().unwrap_or_default());
            }
            Definition::Custom(custom) => custom.set_scale(part, object)?,
        }
        pintle_apimachinery::meta::set_meta(object, "managedFields", owners);
        Ok(())
    }

    fn options_kind(&self) -> &'static str {
        match self.write {
            ScaleWrite::Replace(_) => "UpdateOptions",
            ScaleWrite::Patch(_) => "PatchOptions",
        }
    }
}

fn validate(scale: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let replicas = scale.at("spec.replicas").as_i64().unwrap_or_default();
    if replicas < 0 {
        let path = Path::new("spec.replicas");
        errors.push(FieldError::invalid(&path, replicas, "must be greater than or equal to 0"));
    }
    errors
}
