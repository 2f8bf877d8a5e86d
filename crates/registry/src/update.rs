//! Update: read, change, check, write under the version read; again when somebody was quicker. PUT, PATCH and apply
//! are the same operation with another way to make the new object.

use crate::admit::{Attributes, Operation};
use crate::call::Call;
use crate::create::{Answer, Written, check_numeric_version, dedup_owner_references, wire_options};
use crate::errors::storage_status;
use crate::options::WriteOptions;
use crate::ownership;
use crate::resource::{Resource, set_revision};
use async_trait::async_trait;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{FieldError, Path, Status, Str, Value};
use pintle_kinds::UpdateStrategy;
use pintle_patch::apply::keep_times;
use pintle_storage::{At, NewValue, Record, StorageError};
use std::sync::Arc;

/// How often a write that gave no version of its own is tried again after somebody else wrote.
const CONFLICT_TRIES_MAX: usize = 64;

/// Makes the new object from the present one.
#[async_trait]
pub trait Updater: Send + Sync {
    /// The new object in the served form, from the present one; `None` when there is none. Its fields' owners are up to
    /// date when [`Updater::owns_fields`] says so.
    ///
    /// # Errors
    /// The refusal.
    async fn updated(&self, call: &Call<'_>, resource: &Resource, existing: Option<&Value>) -> Result<Value>;

    /// Whether the updater maintains managedFields itself (server-side apply).
    fn owns_fields(&self) -> bool {
        false
    }

    /// The uid that the present object must have.
    fn expected_uid(&self) -> Option<&str> {
        None
    }

    /// Whether an absent object may be created although the kind does not allow it on update.
    fn may_create(&self) -> bool {
        false
    }

    /// The options object's kind, for admission.
    fn options_kind(&self) -> &'static str {
        "UpdateOptions"
    }
}

/// PUT: the object as it was sent.
#[derive(Debug)]
pub struct Replace {
    object: Value,
    uid: Option<Str>,
}

impl Replace {
    /// The update to this object, decoded and defaulted.
    pub fn new(object: Value) -> Replace {
        let uid = Some(Str::new(object.uid())).filter(|uid| !uid.is_empty());
        Replace { object, uid }
    }
}

#[async_trait]
impl Updater for Replace {
    async fn updated(&self, _call: &Call<'_>, _resource: &Resource, _existing: Option<&Value>) -> Result<Value> {
        Ok(self.object.clone())
    }

    fn expected_uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }
}

/// One try to write.
enum Try {
    Done(Written),
    /// Somebody else wrote meanwhile.
    Again,
}

impl Resource {
    /// Replaces an object by what was sent. The caller has checked nothing yet but the body's form.
    ///
    /// # Errors
    /// Whatever refuses it.
    pub async fn replace(&self, call: &Call<'_>, mut object: Value, options: &WriteOptions) -> Result<Written> {
        self.check_namespace(call.namespace, &mut object)?;
        self.check_name(call, &object)?;
        dedup_owner_references(call, &mut object, false);
        self.update_with(call, &Replace::new(object), options).await
    }

    /// The body's name must be the path's.
    pub(crate) fn check_name(&self, call: &Call<'_>, object: &Value) -> Result<()> {
        check_name(call, object)
    }

    /// The strategy that updates through the call's subresource follow.
    ///
    /// # Errors
    /// 500 when the resource has no such strategy.
    pub(crate) fn update_strategy<'s>(&'s self, call: &Call<'_>) -> Result<UpdateRules<'s>> {
        if call.subresource.is_empty() || call.subresource == "scale" {
            return Ok(UpdateRules::Main(self));
        }
        self.strategy.subresource(call.subresource).map(UpdateRules::Sub).ok_or_else(|| {
            Box::new(Status::internal(format!("{} has no rules for its subresource {}", self.gvr, call.subresource)))
        })
    }

    /// Reads, updates, checks and writes.
    ///
    /// # Errors
    /// Whatever refuses it.
    pub async fn update_with(&self, call: &Call<'_>, updater: &dyn Updater, options: &WriteOptions) -> Result<Written> {
        let key = self.store.key(call.namespace, call.name);
        for _ in 0..CONFLICT_TRIES_MAX {
            let found = self.store.storage.get(&key, At::Latest).await;
            let found = found.map_err(|e| storage_status(&e, self.group_resource(), call.name))?;
            match self.try_update(call, found.record, updater, options).await? {
                Try::Done(written) => return Ok(written),
                Try::Again => {}
            }
        }
        Err(Box::new(Status::stale(self.group_resource(), call.name)))
    }

    async fn try_update(
        &self,
        call: &Call<'_>,
        record: Option<Arc<Record>>,
        updater: &dyn Updater,
        options: &WriteOptions,
    ) -> Result<Try> {
        let Some(record) = record else { return self.create_on_update(call, updater, options).await };
        let existing = self.object(&record).await?;
        if let Some(uid) = updater.expected_uid().filter(|uid| *uid != existing.uid()) {
            return Err(self.uid_mismatch(call, uid, existing.uid()));
        }
        let mut object = updater.updated(call, self, Some(&existing)).await?;
        let sent_version = Str::new(object.resource_version());
        if !updater.owns_fields() {
            ownership::on_write(self, call, options, Some(&existing), &mut object).await;
        }
        let wire = wire_options(updater.options_kind(), options);
        let attributes = self.attributes(call, Operation::Update, Some(&existing), &wire, options);
        call.world.admission.mutate(&attributes, &mut object).await?;
        dedup_owner_references(call, &mut object, true);

        let version = check_numeric_version(&sent_version)?;
        let is_unconditional = version == 0 && self.strategy.allows_unconditional_update();
        if version == 0 && !is_unconditional {
            let error = FieldError::invalid(
                &Path::new("metadata").child("resourceVersion"),
                0i64,
                "must be specified for an update",
            );
            return Err(Box::new(Status::invalid(&self.kind_for_missing_version(), call.name, &vec![error])));
        }
        if version != 0 && version != record.revision.get() {
            return Err(Box::new(Status::stale(self.group_resource(), call.name)));
        }
        set_revision(&mut object, record.revision);

        let object = self.convert(object, &self.kind, &self.strategy_kind).await?;
        let converted;
        let old = if self.is_served_as_handled() {
            &existing
        } else {
            converted = self.convert(existing.clone(), &self.kind, &self.strategy_kind).await?;
            &converted
        };
        let admitted = Admitted { attributes: &attributes, shown: None };
        self.commit_update(call, &record, object, old, options, admitted).await
    }

    /// The second half of an update: strategy, validating admission, write. `object` and `old` are in the strategy's
    /// form.
    async fn commit_update(
        &self,
        call: &Call<'_>,
        record: &Arc<Record>,
        mut object: Value,
        old: &Value,
        options: &WriteOptions,
        admitted: Admitted<'_>,
    ) -> Result<Try> {
        let allocated = self.allocate_on_update(call, &mut object, old, options.dry_run).await?;
        self.before_update(call, &mut object, old)?;
        match admitted.shown {
            Some(shown) => call.world.admission.validate(admitted.attributes, Some(shown)).await?,
            None if self.is_served_as_handled() => {
                self.set_kind(&mut object);
                call.world.admission.validate(admitted.attributes, Some(&object)).await?;
            }
            None => {
                let served = self.served(&object).await?;
                call.world.admission.validate(admitted.attributes, Some(&served)).await?;
            }
        }
        if is_deleted_by_update(&object, old) && !self.strategy.holds_deletion(&object) {
            return self.delete_by_update(call, record, object, options).await;
        }
        let mut stored = self.convert(object, &self.strategy_kind, &self.stored_kind).await?;
        if self.is_stored_form() && self.is_served_as_handled() {
            keep_times(old, &mut stored);
        } else if let Ok(live) = self.stored_object(record) {
            keep_times(&live, &mut stored);
        }
        let head = self.at_rest(&stored);
        if head.bytes() == self.store.head(record).bytes() {
            return Ok(Try::Done(Written { answer: Answer::Record(record.clone()), is_created: false }));
        }
        if options.dry_run {
            let mut served = self.convert(stored, &self.stored_kind, &self.kind).await?;
            self.set_kind(&mut served);
            return Ok(Try::Done(Written { answer: Answer::Object(served), is_created: false }));
        }
        let value = NewValue { bytes: head.bytes().clone(), note: head.into_note(), ttl: self.store.ttl };
        match self.store.storage.update(record.key.clone(), value, record.revision).await {
            Ok(record) => {
                allocated.keep();
                Ok(Try::Done(Written { answer: Answer::Record(record), is_created: false }))
            }
            // a patch is made again of what is there now; who sent a version is refused when that is looked at again
            Err(StorageError::Conflict { .. } | StorageError::NotFound { .. }) => Ok(Try::Again),
            Err(error) => Err(storage_status(&error, self.group_resource(), call.name)),
        }
    }

    /// Updates an object through another kind that shows a part of it (`scale`).
    ///
    /// # Errors
    /// Whatever refuses it.
    pub(crate) async fn update_through(
        &self,
        call: &Call<'_>,
        view: &dyn PartUpdater,
        options: &WriteOptions,
    ) -> Result<Arc<Record>> {
        let key = self.store.key(call.namespace, call.name);
        for _ in 0..CONFLICT_TRIES_MAX {
            let found = self.store.storage.get(&key, At::Latest).await;
            let found = found.map_err(|e| storage_status(&e, self.group_resource(), call.name))?;
            let Some(record) = found.record else {
                return Err(Box::new(Status::not_found(self.group_resource(), call.name)));
            };
            let existing = self.object(&record).await?;
            let wire = wire_options(view.options_kind(), options);
            let old_part = view.part(self, &existing)?;
            let mut part = view.updated(call, self, &existing, &old_part)?;
            let attributes = Attributes {
                kind: view.kind(),
                ..self.attributes(call, Operation::Update, Some(&old_part), &wire, options)
            };
            call.world.admission.mutate(&attributes, &mut part).await?;
            let mut object = existing.clone();
            view.put(self, &part, &mut object)?;
            let version = check_numeric_version(part.resource_version())?;
            if version != 0 && version != record.revision.get() {
                return Err(Box::new(Status::stale(self.group_resource(), call.name)));
            }
            let object = self.convert(object, &self.kind, &self.strategy_kind).await?;
            let old = self.convert(existing, &self.kind, &self.strategy_kind).await?;
            let admitted = Admitted { attributes: &attributes, shown: Some(&part) };
            match self.commit_update(call, &record, object, &old, options, admitted).await? {
                Try::Done(Written { answer: Answer::Record(record), .. }) => return Ok(record),
                // a dry run: what would have been written shows in a record that is not stored
                Try::Done(Written { answer: Answer::Object(object), .. }) => {
                    let stored = self.convert(object, &self.kind, &self.stored_kind).await?;
                    let head = self.at_rest(&stored);
                    let (value, note) = (head.bytes().clone(), head.into_note());
                    return Ok(Arc::new(Record { key, revision: record.revision, value, note }));
                }
                Try::Done(Written { answer: Answer::Status(status), .. }) => return Err(status),
                Try::Again => {}
            }
        }
        Err(Box::new(Status::stale(self.group_resource(), call.name)))
    }

    fn attributes<'c>(
        &'c self,
        call: &'c Call<'_>,
        operation: Operation,
        old: Option<&'c Value>,
        options_object: &'c Value,
        options: &WriteOptions,
    ) -> Attributes<'c> {
        Attributes {
            operation,
            resource: &self.gvr,
            subresource: call.subresource,
            kind: &self.kind,
            namespace: call.namespace,
            name: call.name,
            old,
            options: options_object,
            dry_run: options.dry_run,
            user: &call.caller.user,
            warnings: call.warnings,
        }
    }

    /// The kind that upstream names when an update lacks its version.
    fn kind_for_missing_version(&self) -> pintle_apimachinery::GroupKind {
        pintle_apimachinery::GroupKind { group: self.gvr.group.clone(), kind: self.gvr.resource.clone() }
    }

    pub(crate) fn uid_mismatch(&self, call: &Call<'_>, expected: &str, actual: &str) -> Box<Status> {
        let key = self.store.key(call.namespace, call.name);
        Box::new(Status::conflict(
            self.group_resource(),
            call.name,
            format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"
            ),
        ))
    }

    /// What an update does when there is nothing to update.
    async fn create_on_update(&self, call: &Call<'_>, updater: &dyn Updater, options: &WriteOptions) -> Result<Try> {
        let may_create = updater.may_create() || self.strategy.allows_create_on_update();
        if !may_create || !call.subresource.is_empty() {
            return Err(Box::new(Status::not_found(self.group_resource(), call.name)));
        }
        if let Some(uid) = updater.expected_uid() {
            return Err(self.uid_mismatch(call, uid, ""));
        }
        let mut object = updater.updated(call, self, None).await?;
        if !updater.owns_fields() {
            ownership::on_write(self, call, options, None, &mut object).await;
        }
        let wire = wire_options("CreateOptions", options);
        let attributes = self.attributes(call, Operation::Create, None, &wire, options);
        call.world.admission.mutate(&attributes, &mut object).await?;
        dedup_owner_references(call, &mut object, true);
        check_numeric_version(object.resource_version())?;
        let mut object = self.convert(object, &self.kind, &self.strategy_kind).await?;
        self.fill_system_fields(call, &mut object);
        let allocated = self.allocate_on_create(call, &mut object, options.dry_run).await?;
        self.before_create(call, &mut object)?;
        call.may_create.check()?;
        let served = self.served(&object).await?;
        call.world.admission.validate(&attributes, Some(&served)).await?;
        let stored = self.convert(object, &self.strategy_kind, &self.stored_kind).await?;
        if options.dry_run {
            let mut served = self.convert(stored, &self.stored_kind, &self.kind).await?;
            self.set_kind(&mut served);
            return Ok(Try::Done(Written { answer: Answer::Object(served), is_created: true }));
        }
        let head = self.at_rest(&stored);
        let value = NewValue { bytes: head.bytes().clone(), note: head.into_note(), ttl: self.store.ttl };
        match self.store.storage.create(self.store.key(call.namespace, call.name), value).await {
            Ok(record) => {
                allocated.keep();
                Ok(Try::Done(Written { answer: Answer::Record(record), is_created: true }))
            }
            Err(StorageError::AlreadyExists { .. }) => Ok(Try::Again),
            Err(error) => Err(storage_status(&error, self.group_resource(), call.name)),
        }
    }

    /// The strategy's part of an update, and what is the same for all kinds.
    pub(crate) fn before_update(&self, call: &Call<'_>, object: &mut Value, old: &Value) -> Result<()> {
        let info = call.info();
        let rules = self.update_strategy(call)?;
        restore(object, old, "generation");
        object.remove_at("metadata.selfLink");
        rules.get().prepare_for_update(info, object, old);
        let metadata = object.make("metadata");
        let old_meta = old.metadata();
        if metadata["uid"].is_empty() {
            metadata.set("uid", old_meta["uid"].clone());
        }
        metadata.set("creationTimestamp", old_meta["creationTimestamp"].clone());
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            let is_kept = field == "deletionTimestamp" || metadata[field].is_null();
            if !old_meta[field].is_null() && is_kept {
                metadata.set(field, old_meta[field].clone());
            }
        }
        let rounds = rules.get().metadata_rounds();
        let mut errors = pintle_kinds::meta::validate_for_update(object, old, self.is_namespaced, rounds);
        errors.extend(rules.get().validate_update(info, object, old));
        if !errors.is_empty() {
            return Err(Box::new(Status::invalid(&self.error_kind(object), object.name(), &errors)));
        }
        call.warnings.lock().extend(rules.get().warnings_on_update(info, object, old));
        self.canonicalize(object);
        Ok(())
    }

    /// An update that took the last finalizer of an object whose deletion had begun deletes it.
    async fn delete_by_update(
        &self,
        call: &Call<'_>,
        record: &Arc<Record>,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Try> {
        let mut served = self.convert(object, &self.strategy_kind, &self.kind).await?;
        self.set_kind(&mut served);
        if !options.dry_run {
            match self.store.storage.delete(record.key.clone(), Some(record.revision)).await {
                Ok(_) | Err(StorageError::NotFound { .. }) => self.after_delete(&served).await,
                Err(StorageError::Conflict { .. }) => return Ok(Try::Again),
                Err(error) => return Err(storage_status(&error, self.group_resource(), call.name)),
            }
        }
        Ok(Try::Done(Written { answer: Answer::Object(served), is_created: false }))
    }
}

/// What admission is shown of an update.
struct Admitted<'a> {
    attributes: &'a Attributes<'a>,
    /// The object of another kind that is written through; `None` for the object itself.
    shown: Option<&'a Value>,
}

/// An update through another kind that shows a part of the object.
pub(crate) trait PartUpdater: Send + Sync {
    /// The other kind.
    fn kind(&self) -> &pintle_apimachinery::GroupVersionKind;
    /// What it shows of an object (served form).
    fn part(&self, resource: &Resource, object: &Value) -> Result<Value>;
    /// The part as it is to be.
    fn updated(&self, call: &Call<'_>, resource: &Resource, object: &Value, part: &Value) -> Result<Value>;
    /// Puts the part into the object.
    fn put(&self, resource: &Resource, part: &Value, object: &mut Value) -> Result<()>;
    /// The options object's kind, for admission.
    fn options_kind(&self) -> &'static str;
}

/// The body's name must be the path's.
pub(crate) fn check_name(call: &Call<'_>, object: &Value) -> Result<()> {
    let own = object.name();
    if own.is_empty() {
        return Err(Box::new(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        ))));
    }
    if own != call.name {
        return Err(Box::new(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({})",
            call.name
        ))));
    }
    Ok(())
}

/// The rules of an update.
pub(crate) enum UpdateRules<'s> {
    /// The resource's own.
    Main(&'s Resource),
    /// A subresource's.
    Sub(&'s dyn UpdateStrategy),
}

impl UpdateRules<'_> {
    /// As a strategy.
    pub(crate) fn get(&self) -> &dyn UpdateStrategy {
        match self {
            UpdateRules::Main(resource) => &*resource.strategy as &dyn UpdateStrategy,
            UpdateRules::Sub(strategy) => *strategy,
        }
    }
}

/// Puts a member of metadata back to what it was.
fn restore(object: &mut Value, old: &Value, field: &str) {
    let was = &old.metadata()[field];
    let metadata = object.make("metadata");
    if was.is_null() {
        metadata.remove(field);
    } else {
        metadata.set(field, was.clone());
    }
}

/// Whether this update completes a deletion.
fn is_deleted_by_update(object: &Value, old: &Value) -> bool {
    object.finalizers().next().is_none()
        && old.is_terminating()
        && old.metadata()["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
}
