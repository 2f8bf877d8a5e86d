//! Field ownership around a write: the adapter between the registry's objects and `pintle_patch::apply`.

use crate::call::Call;
use crate::options::{FieldValidation, WriteOptions};
use crate::resource::{Definition, Resource};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value};
use pintle_patch::apply::{Applied, FieldSet, Scope, Versions, Writer, apply as apply_config, update};
use pintle_schema::Node;

/// The other versions of a resource's kind, as ownership needs to see them.
#[derive(Debug)]
struct Kin<'r>(&'r Resource);

impl Versions for Kin<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> std::result::Result<Option<Value>, String> {
        self.0.convert_for_owners(object, api_version)
    }

    fn node(&self, api_version: &str) -> Option<Node<'_>> {
        self.0.node_of_version(api_version)
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// Brings managedFields of `object` (served form) up to date after a create, update or patch by the caller.
pub(crate) fn on_write(
    resource: &Resource,
    call: &Call<'_>,
    options: &WriteOptions,
    live: Option<&Value>,
    object: &mut Value,
) {
    let kin = Kin(resource);
    let scope = scope(resource, call, &kin);
    let writer = Writer { manager: call.manager(&options.field_manager), now: call.now };
    update(&scope, live, object, &writer);
}

/// The same after a write of a status by the server itself.
pub(crate) fn on_server_write(resource: &Resource, now: jiff::Timestamp, live: &Value, object: &mut Value) {
    let scope = Scope {
        kind: &resource.kind,
        node: resource.node(),
        subresource: "status",
        reset_fields: resource.reset_fields("status"),
        is_custom: resource.is_custom(),
        versions: &Kin(resource),
    };
    update(&scope, Some(live), object, &Writer { manager: SERVER, now });
}

/// The name under which the server itself owns fields: readers of managedFields know it by this name.
pub(crate) const SERVER: &str = "kube-apiserver";

fn scope<'s>(resource: &'s Resource, call: &Call<'s>, kin: &'s Kin<'_>) -> Scope<'s> {
    Scope {
        kind: &resource.kind,
        node: resource.node(),
        subresource: call.subresource,
        reset_fields: resource.reset_fields(call.subresource),
        is_custom: resource.is_custom(),
        versions: kin,
    }
}

/// Applies a configuration to the live object (server-side apply); the answer is in the served form, defaulted, its
/// managedFields up to date.
pub(crate) fn apply(
    resource: &Resource,
    call: &Call<'_>,
    options: &WriteOptions,
    body: &[u8],
    live: Option<&Value>,
) -> Result<Value> {
    let bad = |why: String| Box::new(Status::bad_request(format!("error decoding YAML: {why}")));
    let document =
        pintle_codec::yaml::parse(body).map_err(|why| bad(format!("error converting YAML to JSON: {why}")))?;
    let config = match document.value {
        config @ Value::Object(_) => config,
        Value::Null => Value::object(),
        other => {
            let what = match other {
                Value::Array(_) => "array",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            let why = format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            );
            return Err(bad(why));
        }
    };
    let kin = Kin(resource);
    let scope = scope(resource, call, &kin);
    let writer = Writer { manager: &options.field_manager, now: call.now };
    let applied = apply_config(&scope, live, &config, &writer, options.force)?;
    if let Some(why) = yaml_strict_error(&document.duplicates) {
        match options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => call.warn(why),
            FieldValidation::Strict => {
                return Err(Box::new(Status::bad_request(format!("error strict decoding YAML: {why}"))));
            }
        }
    }
    match applied {
        Applied::Nothing => Ok(live.cloned().unwrap_or_default()),
        Applied::Owners(object) => Ok(object),
        Applied::Object(object) => decoded(resource, &scope, &config, object),
    }
}

fn yaml_strict_error(duplicates: &[String]) -> Option<String> {
    if duplicates.is_empty() {
        return None;
    }
    Some(format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {}", duplicates.join("\n  ")))
}

/// The result of an apply, read along the schema and defaulted.
fn decoded(resource: &Resource, scope: &Scope<'_>, config: &Value, object: Value) -> Result<Value> {
    match &resource.definition {
        Definition::Builtin(id) => {
            let failed = |why: &str| {
                let kind = &resource.kind;
                scope.conversion_failed(config, format!("unable to convert unstructured object to {kind}: {why}"))
            };
            if let Some(why) = pintle_patch::conversion_fault(&object, resource.node()) {
                return Err(failed(&why));
            }
            let parsed = pintle_schema::decode_value(&object, *id).map_err(|why| failed(&why.message))?;
            if let Some(why) = &parsed.issues.wrong_type {
                let is_base64 = why.starts_with("illegal base64 data");
                return Err(failed(&if is_base64 { format!("error decoding from json: {why}") } else { why.clone() }));
            }
            let mut object = parsed.value;
            resource.set_kind(&mut object);
            resource.complete(&mut object);
            Ok(object)
        }
        Definition::Custom(custom) => {
            let (mut object, _) =
                custom.decode_patched(resource, object, &|why| scope.conversion_failed(config, why))?;
            resource.complete(&mut object);
            Ok(object)
        }
    }
}
