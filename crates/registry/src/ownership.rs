//! Field ownership around a write: the adapter between the registry's objects and `pintle_patch::apply`.

use crate::call::Call;
use crate::custom::CustomVersion;
use crate::options::{FieldValidation, WriteOptions};
use crate::resource::{Definition, Resource};
use parking_lot::Mutex;
use pintle_apimachinery::meta::{Meta, set_meta};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersion, Status, Value};
use pintle_patch::apply::{Applied, FieldSet, Scope, Versions, Writer, apply as apply_config, update};
use pintle_schema::Node;

/// The other versions of a resource's kind, as ownership needs to see them.
///
/// Ownership is worked out in one go, and webhooks cannot be asked meanwhile: what it would need to know of one is
/// noted as a question, and it begins again with the answer.
#[derive(Debug)]
struct Kin<'r> {
    resource: &'r Resource,
    /// Objects, versions, and what webhooks made of one for the other.
    answers: Vec<(Value, String, Result<Option<Value>, String>)>,
    question: Mutex<Option<(Value, String)>>,
}

/// Conversions that one write may ask of a webhook for the owners of fields; more managers than that are in versions
/// of their own nowhere.
const QUESTIONS_MAX: usize = 32;

impl<'r> Kin<'r> {
    fn new(resource: &'r Resource) -> Kin<'r> {
        Kin { resource, answers: Vec::new(), question: Mutex::default() }
    }

    /// The definition, where its webhook converts.
    fn asking(&self) -> Option<&'r CustomVersion> {
        match &self.resource.definition {
            Definition::Custom(custom) if custom.asks_webhook() => Some(custom),
            Definition::Custom(_) | Definition::Builtin(_) => None,
        }
    }

    /// Puts what is open to the webhook; whether there was anything.
    async fn ask(&mut self) -> bool {
        let question = self.question.lock().take();
        let (Some(custom), Some((object, api_version))) = (self.asking(), question) else { return false };
        if self.answers.len() >= QUESTIONS_MAX {
            return false;
        }
        let answer = match GroupVersion::parse(&api_version) {
            Some(to) => custom.convert_for_owners(&object, &to).await,
            None => Ok(None),
        };
        self.answers.push((object, api_version, answer));
        true
    }
}

impl Versions for Kin<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, String> {
        if self.asking().is_none() || object.api_version() == api_version {
            return self.resource.convert_for_owners(object, api_version);
        }
        if let Some((_, _, answer)) = self.answers.iter().find(|(of, to, _)| to == api_version && of == object) {
            return answer.clone();
        }
        *self.question.lock() = Some((object.clone(), api_version.to_owned()));
        Err("the webhook has not been asked yet".to_owned())
    }

    fn node(&self, api_version: &str) -> Option<Node<'_>> {
        self.resource.node_of_version(api_version)
    }

    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// Brings managedFields of `object` (served form) up to date after a create, update or patch by the caller.
pub(crate) async fn on_write(
    resource: &Resource,
    call: &Call<'_>,
    options: &WriteOptions,
    live: Option<&Value>,
    object: &mut Value,
) {
    let writer = Writer { manager: call.manager(&options.field_manager), now: call.now };
    let mut kin = Kin::new(resource);
    if let Some(mut shown) = resource.detoured(object) {
        update(&scope(resource, call, &kin), live, &mut shown, &writer);
        let owners = shown.make("metadata").remove("managedFields");
        return set_meta(object, "managedFields", owners);
    }
    if kin.asking().is_none() {
        return update(&scope(resource, call, &kin), live, object, &writer);
    }
    loop {
        let mut next = object.clone();
        update(&scope(resource, call, &kin), live, &mut next, &writer);
        if !kin.ask().await {
            *object = next;
            return;
        }
    }
}

/// The same after a write of a status by the server itself.
pub(crate) fn on_server_write(resource: &Resource, now: jiff::Timestamp, live: &Value, object: &mut Value) {
    let scope = Scope {
        kind: &resource.kind,
        node: resource.node(),
        subresource: "status",
        reset_fields: resource.reset_fields("status"),
        is_custom: resource.is_custom(),
        versions: &Kin::new(resource),
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
pub(crate) async fn apply(
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
    let writer = Writer { manager: &options.field_manager, now: call.now };
    let mut kin = Kin::new(resource);
    let applied = loop {
        let applied = apply_config(&scope(resource, call, &kin), live, &config, &writer, options.force);
        if !kin.ask().await {
            break applied?;
        }
    };
    let scope = scope(resource, call, &kin);
    match options.field_validation {
        FieldValidation::Warn => document.duplicates.into_iter().for_each(|fault| call.warn(fault)),
        FieldValidation::Strict if !document.duplicates.is_empty() => {
            let faults = document.duplicates.join("\n  ");
            return Err(Box::new(Status::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {faults}"
            ))));
        }
        FieldValidation::Ignore | FieldValidation::Strict => {}
    }
    match applied {
        Applied::Nothing => Ok(live.cloned().unwrap_or_default()),
        Applied::Owners(object) => Ok(object),
        Applied::Object(object) => decoded(resource, &scope, &config, object),
    }
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
            resource.strategy.set_defaults(&mut object);
            Ok(object)
        }
        Definition::Custom(custom) => {
            let mut object = object;
            custom.version().fill_defaults(&mut object);
            Ok(object)
        }
    }
}
