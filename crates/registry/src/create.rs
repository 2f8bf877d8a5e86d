//! Create: from a decoded object to a record.

use crate::admit::{Attributes, Operation};
use crate::call::Call;
use crate::errors::storage_status;
use crate::options::WriteOptions;
use crate::ownership;
use crate::resource::Resource;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupKind, Status, Str, Value, time};
use pintle_storage::{At, NewValue, Record, StorageError};
use std::sync::Arc;

/// Longest prefix that a generated name keeps: a label's 63 bytes less the random characters.
const GENERATED_PREFIX_BYTES_MAX: usize = 58;
/// Random characters behind a generateName.
const GENERATED_SUFFIX_BYTES: usize = 5;
/// How often a taken generated name is drawn again; then the client gets 409.
const GENERATE_NAME_TRIES_MAX: usize = 8;

/// What a write answers.
#[derive(Clone, Debug)]
pub enum Answer {
    /// An object at rest.
    Record(Arc<Record>),
    /// An object that lies nowhere (dry runs, reviews, scale), in the served form.
    Object(Value),
    /// A Status.
    Status(Box<Status>),
}

/// The answer to a write.
#[derive(Clone, Debug)]
pub struct Written {
    /// What to show.
    pub answer: Answer,
    /// Whether an object was created (201).
    pub is_created: bool,
}

impl Resource {
    /// Creates an object from its decoded and defaulted served form.
    ///
    /// # Errors
    /// Whatever refuses it: admission, validation (422), 409 when the name is taken.
    pub async fn create(&self, call: &Call<'_>, mut object: Value, options: &WriteOptions) -> Result<Written> {
        wipe_system_fields(&mut object);
        self.check_namespace(call.namespace, &mut object)?;
        dedup_owner_references(call, &mut object, false);
        if object.resource_version().parse::<u64>().is_ok_and(|version| version != 0) {
            return Err(Box::new(Status::plain_error("resourceVersion should not be set on objects to be created")));
        }
        if let crate::resource::Definition::Custom(custom) = &self.definition
            && custom.is_terminating()
        {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Box::new(Status::forbidden(self.group_resource(), object.name(), why)));
        }
        let name = if call.name.is_empty() { object.name().to_owned() } else { call.name.to_owned() };
        ownership::on_write(self, call, options, None, &mut object).await;
        let wire_options = create_options(options);
        let attributes = Attributes {
            operation: Operation::Create,
            resource: &self.gvr,
            subresource: call.subresource,
            kind: &self.kind,
            namespace: call.namespace,
            name: &name,
            old: None,
            options: &wire_options,
            dry_run: options.dry_run,
            user: &call.caller.user,
            warnings: call.warnings,
        };
        call.world.admission.mutate(&attributes, &mut object).await?;
        dedup_owner_references(call, &mut object, true);
        let object = self.convert(object, &self.kind, &self.strategy_kind).await?;
        let record = self.create_named(call, object, &attributes).await?;
        Ok(Written { answer: record, is_created: true })
    }

    /// The tries with generated names.
    async fn create_named(&self, call: &Call<'_>, object: Value, attributes: &Attributes<'_>) -> Result<Answer> {
        let is_generated = object.name().is_empty() && !object.metadata()["generateName"].str_or_empty().is_empty();
        if !is_generated {
            return self.create_once(call, object, attributes).await;
        }
        let mut tries = 1;
        loop {
            match self.create_once(call, object.clone(), attributes).await {
                Err(status) if status.is("AlreadyExists") => {
                    if tries >= GENERATE_NAME_TRIES_MAX {
                        let name = status.details.map(|d| d.name).unwrap_or_default();
                        return Err(Box::new(Status::generate_name_conflict(self.group_resource(), &name, 1)));
                    }
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    async fn create_once(&self, call: &Call<'_>, mut object: Value, attributes: &Attributes<'_>) -> Result<Answer> {
        self.fill_system_fields(call, &mut object);
        let allocated = self.allocate_on_create(call, &mut object, attributes.dry_run).await?;
        self.before_create(call, &mut object)?;
        if self.is_served_as_handled() {
            self.set_kind(&mut object);
            call.world.admission.validate(attributes, Some(&object)).await?;
        } else {
            let served = self.served(&object).await?;
            call.world.admission.validate(attributes, Some(&served)).await?;
        }
        let name = object.name().to_owned();
        let namespace = object.namespace().to_owned();
        let stored = self.convert(object, &self.strategy_kind, &self.stored_kind).await?;
        let key = self.store.key(&namespace, &name);
        if attributes.dry_run {
            let found = self.store.storage.get(&key, At::Latest).await;
            if let Some(existing) = found.map_err(|e| storage_status(&e, self.group_resource(), &name))?.record {
                return Err(self.already_exists(&existing, &name));
            }
            let mut served = self.convert(stored, &self.stored_kind, &self.kind).await?;
            self.set_kind(&mut served);
            return Ok(Answer::Object(served));
        }
        let head = self.at_rest(&stored);
        let value = NewValue { bytes: head.bytes().clone(), note: head.into_note(), ttl: self.store.ttl };
        match self.store.storage.create(key.clone(), value).await {
            Ok(record) => {
                allocated.keep();
                Ok(Answer::Record(record))
            }
            Err(StorageError::AlreadyExists { .. }) => {
                let existing = self.store.storage.get(&key, At::Latest).await.ok().and_then(|found| found.record);
                Err(match existing {
                    Some(existing) => self.already_exists(&existing, &name),
                    None => Box::new(Status::already_exists(self.group_resource(), &name)),
                })
            }
            Err(error) => Err(storage_status(&error, self.group_resource(), &name)),
        }
    }

    fn already_exists(&self, existing: &Record, name: &str) -> Box<Status> {
        let mut status = Status::already_exists(self.group_resource(), name);
        if self.store.head(existing).is_terminating {
            status.message = format!("object is being deleted: {}", status.message);
        }
        Box::new(status)
    }

    /// The object in the served form, for those who look but do not change.
    pub(crate) async fn served(&self, object: &Value) -> Result<Value> {
        let mut served = self.convert(object.clone(), &self.strategy_kind, &self.kind).await?;
        self.set_kind(&mut served);
        Ok(served)
    }

    /// Gives a new object its uid, its time and, where it asks for one, its name.
    pub(crate) fn fill_system_fields(&self, call: &Call<'_>, object: &mut Value) {
        let metadata = object.make("metadata");
        metadata.set("creationTimestamp", time::time_value(call.now));
        metadata.set("uid", call.world.env.ids.uid());
        let prefix = metadata["generateName"].str_or_empty();
        if metadata["name"].str_or_empty().is_empty() && !prefix.is_empty() {
            let mut end = prefix.len().min(GENERATED_PREFIX_BYTES_MAX);
            while !prefix.is_char_boundary(end) {
                end -= 1;
            }
            let mut name = Str::new(&prefix[..end]);
            name.push_str(&call.world.env.ids.name_suffix(GENERATED_SUFFIX_BYTES));
            metadata.set("name", name);
        }
    }

    /// The strategy's part of a create.
    pub(crate) fn before_create(&self, call: &Call<'_>, object: &mut Value) -> Result<()> {
        let info = call.info();
        call.warnings.lock().extend(self.strategy.early_warnings(info, object));
        object.remove_at("metadata.selfLink");
        self.strategy.prepare_for_create(info, object);
        let mut errors = pintle_kinds::meta::validate_for_create(object, self.is_namespaced, &*self.strategy);
        errors.extend(self.strategy.validate(info, object));
        if !errors.is_empty() {
            return Err(Box::new(Status::invalid(&self.error_kind(object), object.name(), &errors)));
        }
        call.warnings.lock().extend(self.strategy.warnings_on_create(info, object));
        self.canonicalize(object);
        Ok(())
    }

    /// The kind that validation errors name: of custom resources what the object says, which may be wrong.
    pub(crate) fn error_kind(&self, object: &Value) -> GroupKind {
        let own = if self.is_custom() { object.gvk() } else { None };
        own.as_ref().unwrap_or(&self.strategy_kind).group_kind()
    }

    /// Fills in the namespace of the path, and refuses another one.
    pub(crate) fn check_namespace(&self, namespace: &str, object: &mut Value) -> Result<()> {
        let own = object.namespace();
        if !self.is_namespaced {
            if !own.is_empty() {
                object.remove_at("metadata.namespace");
            }
            return Ok(());
        }
        if own.is_empty() {
            object.make("metadata").set("namespace", namespace);
            return Ok(());
        }
        if own == namespace {
            return Ok(());
        }
        Err(Box::new(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )))
    }
}

/// Clears what a client cannot set on a new object.
pub(crate) fn wipe_system_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(field);
        }
    }
}

/// Drops owner references that stand there twice, and warns.
pub(crate) fn dedup_owner_references(call: &Call<'_>, object: &mut Value, is_after_admission: bool) {
    let Some(owners) = object.at_mut("metadata.ownerReferences").and_then(Value::as_array_mut) else { return };
    let mut duplicates: Vec<String> = Vec::new();
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            duplicates.push(owner["uid"].str_or_empty().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    if !duplicates.is_empty() {
        duplicates.sort();
        duplicates.dedup();
        let when = if is_after_admission { " after mutating admission happens" } else { "" };
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            duplicates.join(",")
        ));
    }
}

/// 500, as upstream, for a resourceVersion in a body that is no number.
pub(crate) fn check_numeric_version(version: &str) -> Result<u64> {
    if version.is_empty() {
        return Ok(0);
    }
    version.parse::<u64>().map_err(|_| {
        Box::new(Status::plain_error(format!(
            "strconv.ParseUint: parsing {}: invalid syntax",
            pintle_apimachinery::field::go_quote(version)
        )))
    })
}

/// CreateOptions on the wire, for admission.
pub(crate) fn create_options(options: &WriteOptions) -> Value {
    wire_options("CreateOptions", options)
}

/// UpdateOptions or PatchOptions on the wire, for admission.
pub(crate) fn wire_options(kind: &str, options: &WriteOptions) -> Value {
    let mut wire = pintle_apimachinery::json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
    if options.dry_run {
        wire.set("dryRun", vec!["All"]);
    }
    if !options.field_manager.is_empty() {
        wire.set("fieldManager", options.field_manager.clone());
    }
    match options.field_validation {
        crate::options::FieldValidation::Ignore => wire.set("fieldValidation", "Ignore"),
        crate::options::FieldValidation::Strict => wire.set("fieldValidation", "Strict"),
        crate::options::FieldValidation::Warn => {}
    }
    wire
}
