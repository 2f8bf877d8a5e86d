//! PATCH: the four kinds of patches as ways to make the new object of an update.

use crate::call::Call;
use crate::create::{Written, check_numeric_version};
use crate::options::{FieldValidation, WriteOptions};
use crate::resource::{Definition, Resource};
use crate::update::Updater;
use async_trait::async_trait;
use bytes::Bytes;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{FieldError, GroupKind, Path, Status, Value};
use pintle_schema::{Node, TypeId};

/// What a PATCH body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`.
    Strategic,
    /// `application/apply-patch+yaml`.
    Apply,
}

impl PatchType {
    /// The patch type of a media type.
    ///
    /// # Errors
    /// 415 when it is none, or none that the resource takes.
    pub fn of_media_type(media_type: &str, is_custom: bool) -> Result<PatchType> {
        match media_type {
            "application/json-patch+json" => Ok(PatchType::Json),
            "application/merge-patch+json" => Ok(PatchType::Merge),
            "application/apply-patch+yaml" => Ok(PatchType::Apply),
            "application/strategic-merge-patch+json" if !is_custom => Ok(PatchType::Strategic),
            _ if is_custom => Err(Box::new(Status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ))),
            _ => Err(Box::new(
                Status::unsupported_media_type("415: Unsupported Media Type")
                    .with_details(pintle_apimachinery::status::Details::default()),
            )),
        }
    }
}

/// A patch to be applied, read when its first use needs it.
#[derive(Debug)]
pub struct Patch {
    kind: PatchType,
    bytes: Bytes,
    validation: FieldValidation,
    options: WriteOptions,
}

impl Patch {
    /// The patch of a body.
    ///
    /// # Errors
    /// None now; the body's faults are told when it is applied, as upstream does.
    pub fn new(kind: PatchType, bytes: Bytes, options: &WriteOptions) -> Result<Patch> {
        Ok(Patch { kind, bytes, validation: options.field_validation, options: options.clone() })
    }

    /// What the patch is.
    pub(crate) fn kind(&self) -> PatchType {
        self.kind
    }

    /// The body.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Applies a JSON, merge or strategic patch to `existing` (served form).
    fn patched(&self, call: &Call<'_>, resource: &Resource, existing: &Value) -> Result<Value> {
        let reader = |patched: &Value, refuse: &Refuse<'_>| match &resource.definition {
            Definition::Builtin(id) => {
                check_kind(resource, patched, refuse)?;
                decode_patched(patched, *id, refuse)
            }
            Definition::Custom(custom) => custom.decode_patched(resource, patched.clone(), refuse),
        };
        let mut object = self.patched_along(call, resource.node(), existing, &reader)?;
        resource.set_kind(&mut object);
        resource.strategy.set_defaults(&mut object);
        Ok(object)
    }

    /// Applies a JSON, merge or strategic patch to `existing`, which `node` describes; `read` decodes what comes of it.
    pub(crate) fn patched_along(
        &self,
        call: &Call<'_>,
        node: Node<'_>,
        existing: &Value,
        read: &Reading<'_>,
    ) -> Result<Value> {
        let kind = match self.kind {
            PatchType::Json => pintle_patch::PatchType::Json,
            PatchType::Merge => pintle_patch::PatchType::Merge,
            PatchType::Strategic => pintle_patch::PatchType::Strategic,
            PatchType::Apply => return Err(Box::new(Status::internal("an apply is no patch of this kind"))),
        };
        let is_checked = self.validation != FieldValidation::Ignore;
        let decoded = pintle_patch::decode(kind, &self.bytes, is_checked)?;
        let patched = decoded.patch.apply(existing, node)?;
        let refuse = |why: &str| {
            let shown = decoded.patch.shown(existing, &patched, node);
            let error = FieldError::invalid(&Path::new("patch"), &shown, why);
            Box::new(Status::invalid(&GroupKind::default(), "", &vec![error]))
        };
        if let Some(why) = pintle_patch::conversion_fault(&patched, node).filter(|_| self.kind == PatchType::Strategic)
        {
            return Err(refuse(&why));
        }
        let (object, faults) = read(&patched, &refuse)?;
        let faults: Vec<String> = decoded.strict.iter().cloned().chain(faults).collect();
        match self.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => call.warnings.lock().extend(faults),
            FieldValidation::Strict if faults.is_empty() => {}
            FieldValidation::Strict => {
                return Err(refuse(&format!("strict decoding error: {}", faults.join(", "))));
            }
        }
        Ok(object)
    }
}

/// Refuses a patch that makes another kind of an object; one that takes the kind away is forgiven.
fn check_kind(resource: &Resource, patched: &Value, refuse: &Refuse<'_>) -> Result<()> {
    let (version, kind) = (patched["apiVersion"].str_or_empty(), patched["kind"].str_or_empty());
    let wanted = (resource.kind.api_version(), resource.kind.kind.as_str());
    let is_same = (version.is_empty() || version == wanted.0) && (kind.is_empty() || kind == wanted.1);
    if is_same {
        return Ok(());
    }
    Err(refuse(&format!(
        "no kind \"{kind}\" is registered for version \"{version}\" here: a patch cannot change apiVersion or kind ({}, {})",
        wanted.0, wanted.1
    )))
}

/// Reads what a patch made of an object: the object, and what strict validation refuses.
pub(crate) type Reading<'a> = dyn Fn(&Value, &Refuse<'_>) -> Result<(Value, Vec<String>)> + 'a;

/// Makes the refusal of a patch whose result cannot be used, from the reason.
pub(crate) type Refuse<'a> = dyn Fn(&str) -> Box<Status> + 'a;

/// Reads what a patch made of an object of a built-in kind: the object, and what strict validation refuses.
pub(crate) fn decode_patched(patched: &Value, id: TypeId, refuse: &Refuse<'_>) -> Result<(Value, Vec<String>)> {
    let parsed = pintle_schema::decode_value(patched, id).map_err(|why| refuse(&why.message))?;
    if let Some(why) = &parsed.issues.wrong_type {
        return Err(refuse(why));
    }
    Ok((parsed.value, parsed.issues.strict.iter().map(ToString::to_string).collect()))
}

#[async_trait]
impl Updater for Patch {
    async fn updated(&self, call: &Call<'_>, resource: &Resource, existing: Option<&Value>) -> Result<Value> {
        let mut object = match (self.kind, existing) {
            (PatchType::Apply, existing) => {
                crate::ownership::apply(resource, call, &self.options, &self.bytes, existing).await?
            }
            (_, Some(existing)) => self.patched(call, resource, existing)?,
            (_, None) => return Err(Box::new(Status::not_found(resource.group_resource(), call.name))),
        };
        if existing.is_none() && !object.uid().is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                object.uid()
            );
            return Err(Box::new(Status::conflict(resource.group_resource(), call.name, why)));
        }
        check_patched(call, resource, &mut object)?;
        Ok(object)
    }

    fn owns_fields(&self) -> bool {
        self.kind == PatchType::Apply
    }

    fn may_create(&self) -> bool {
        self.kind == PatchType::Apply
    }

    fn options_kind(&self) -> &'static str {
        "PatchOptions"
    }
}

/// What a patch may not make of an object.
fn check_patched(call: &Call<'_>, resource: &Resource, object: &mut Value) -> Result<()> {
    check_numeric_version(object.resource_version())?;
    resource.check_namespace(call.namespace, object)?;
    resource.check_name(call, object)
}

impl Resource {
    /// Patches an object.
    ///
    /// # Errors
    /// Whatever refuses it.
    pub async fn patch(&self, call: &Call<'_>, patch: &Patch, options: &WriteOptions) -> Result<Written> {
        self.update_with(call, patch, options).await
    }
}
