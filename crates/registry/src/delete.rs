//! Delete: at once, gracefully, or by finalizers; one object or a collection.

use crate::admit::{Attributes, Operation};
use crate::call::Call;
use crate::create::{Answer, Written, check_numeric_version};
use crate::errors::storage_status;
use crate::options::{DeleteOptions, ListOptions, Propagation};
use crate::read::Listed;
use crate::resource::{Resource, set_revision};
use pintle_apimachinery::meta::{Meta, well_known};
use pintle_apimachinery::status::{Details, Result};
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{GroupResource, Status, Str, Value, json};
use pintle_storage::{At, NewValue, Record, Revision, StorageError};
use std::sync::Arc;

/// How often a delete is tried again after somebody else wrote.
const CONFLICT_TRIES_MAX: usize = 64;

/// The answer to a delete.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// What to show.
    pub answer: Answer,
    /// Whether the object is gone (else its deletion has only begun).
    pub is_gone: bool,
}

/// What becomes of an object that is to be deleted.
enum Plan {
    /// It is removed.
    Remove,
    /// It stays for now, changed.
    Mark(Value),
    /// Its deletion has begun already and nothing changes.
    Pending,
    /// The same, and the answer is the object itself.
    Held,
}

impl Resource {
    /// Deletes an object, or begins its deletion.
    ///
    /// # Errors
    /// 404, 409 for failed preconditions, whatever admission refuses.
    pub async fn delete(&self, call: &Call<'_>, options: &DeleteOptions) -> Result<Deleted> {
        self.warn_of_default_policy(call, options);
        if let Some(why) = self.strategy.delete_refusal(call.name) {
            return Err(Box::new(Status::forbidden(self.group_resource(), call.name, why)));
        }
        let key = self.store.key(call.namespace, call.name);
        for _ in 0..CONFLICT_TRIES_MAX {
            let found = self.store.storage.get(&key, At::Latest).await;
            let found = found.map_err(|e| storage_status(&e, self.group_resource(), call.name))?;
            let Some(record) = found.record else {
                return Err(Box::new(Status::not_found(self.group_resource(), call.name)));
            };
            if let Some(deleted) = self.try_delete(call, &record, options).await? {
                return Ok(deleted);
            }
        }
        Err(Box::new(Status::stale(self.group_resource(), call.name)))
    }

    fn warn_of_default_policy(&self, call: &Call<'_>, options: &DeleteOptions) {
        if options.propagation.is_none() && options.orphan_dependents.is_none() {
            self.strategy.default_deletion_warning().into_iter().for_each(|text| call.warn(text));
        }
    }

    /// One try; `None` when somebody else wrote meanwhile.
    async fn try_delete(
        &self,
        call: &Call<'_>,
        record: &Arc<Record>,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>> {
        let existing = self.object(record).await?;
        self.check_preconditions(call, &existing, options, record.revision)?;
        self.admit_delete(call, &existing, options).await?;
        let plan = self.plan(call, &existing, options)?;
        match plan {
            Plan::Pending => Ok(Some(Deleted { answer: self.finished(&existing), is_gone: false })),
            Plan::Held => Ok(Some(Deleted { answer: Answer::Record(record.clone()), is_gone: false })),
            Plan::Mark(object) => self.mark(record, object, options).await,
            Plan::Remove => self.remove(call, record, existing, options).await,
        }
    }

    async fn remove(
        &self,
        call: &Call<'_>,
        record: &Arc<Record>,
        existing: Value,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>> {
        if options.dry_run {
            return Ok(Some(Deleted { answer: self.finished(&existing), is_gone: true }));
        }
        match self.store.storage.delete(record.key.clone(), Some(record.revision)).await {
            Ok(event) => {
                let mut gone = existing;
                set_revision(&mut gone, event.revision);
                self.after_delete(&gone).await;
                Ok(Some(Deleted { answer: self.finished(&gone), is_gone: true }))
            }
            Err(StorageError::Conflict { .. }) => Ok(None),
            Err(error) => Err(storage_status(&error, self.group_resource(), call.name)),
        }
    }

    async fn mark(&self, record: &Arc<Record>, object: Value, options: &DeleteOptions) -> Result<Option<Deleted>> {
        if options.dry_run {
            let mut object = object;
            self.set_kind(&mut object);
            return Ok(Some(Deleted { answer: Answer::Object(object), is_gone: false }));
        }
        let name = object.name().to_owned();
        let stored = self.convert(object, &self.kind, &self.stored_kind).await?;
        let head = self.at_rest(&stored);
        if head.bytes() == self.store.head(record).bytes() {
            return Ok(Some(Deleted { answer: Answer::Record(record.clone()), is_gone: false }));
        }
        let value = NewValue { bytes: head.bytes().clone(), note: head.into_note(), ttl: self.store.ttl };
        match self.store.storage.update(record.key.clone(), value, record.revision).await {
            Ok(record) => {
                // a pod whose grace period is over is marked first, so that watchers see why it goes
                let is_over = stored.is_terminating()
                    && stored.metadata()["deletionGracePeriodSeconds"].as_i64() == Some(0)
                    && stored.finalizers().next().is_none()
                    && !self.strategy.holds_deletion(&stored);
                if is_over {
                    return match self.store.storage.delete(record.key.clone(), Some(record.revision)).await {
                        Ok(event) => {
                            let mut gone = self.object(&record).await?;
                            set_revision(&mut gone, event.revision);
                            self.after_delete(&gone).await;
                            Ok(Some(Deleted { answer: self.finished(&gone), is_gone: true }))
                        }
                        Err(StorageError::Conflict { .. }) => Ok(None),
                        Err(StorageError::NotFound { .. }) => {
                            let gone = self.object(&record).await?;
                            Ok(Some(Deleted { answer: self.finished(&gone), is_gone: true }))
                        }
                        Err(error) => Err(storage_status(&error, self.group_resource(), &name)),
                    };
                }
                Ok(Some(Deleted { answer: Answer::Record(record), is_gone: false }))
            }
            Err(StorageError::Conflict { .. } | StorageError::NotFound { .. }) => Ok(None),
            Err(error) => Err(storage_status(&error, self.group_resource(), &name)),
        }
    }

    fn check_preconditions(
        &self,
        call: &Call<'_>,
        existing: &Value,
        options: &DeleteOptions,
        revision: Revision,
    ) -> Result<()> {
        let uid = options.preconditions.uid.as_ref().filter(|uid| *uid != existing.uid());
        let version = options.preconditions.resource_version.as_ref();
        let version =
            version.filter(|version| !check_numeric_version(version).is_ok_and(|number| number == revision.get()));
        if uid.is_none() && version.is_none() {
            return Ok(());
        }
        if self.strategy.is_deleted_in_two_steps() {
            let (what, wanted, found) = match (uid, version) {
                (Some(uid), _) => ("UID", uid.clone(), Str::new(existing.uid())),
                (None, version) => {
                    ("ResourceVersion", version.cloned().unwrap_or_default(), Str::from(revision.to_string()))
                }
            };
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            return Err(Box::new(Status::conflict(self.group_resource(), call.name, why)));
        }
        let why = match (uid, version) {
            (Some(uid), _) => format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                existing.uid()
            ),
            (None, version) => format!(
                "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({revision}). The object might have been modified",
                version.map_or("", Str::as_str)
            ),
        };
        // upstream names the kind here, not the resource
        let kind = GroupResource::new(&self.kind.group, &self.kind.kind);
        Err(Box::new(Status::conflict(&kind, call.name, why)))
    }

    async fn admit_delete(&self, call: &Call<'_>, existing: &Value, options: &DeleteOptions) -> Result<()> {
        let wire = wire_delete_options(options);
        let attributes = Attributes {
            operation: Operation::Delete,
            resource: &self.gvr,
            subresource: call.subresource,
            kind: &self.kind,
            namespace: call.namespace,
            name: call.name,
            old: Some(existing),
            options: &wire,
            dry_run: options.dry_run,
            user: &call.caller.user,
            warnings: call.warnings,
        };
        let mut nothing = Value::Null;
        call.world.admission.mutate(&attributes, &mut nothing).await?;
        call.world.admission.validate(&attributes, None).await
    }

    /// What is to become of the object.
    fn plan(&self, call: &Call<'_>, existing: &Value, options: &DeleteOptions) -> Result<Plan> {
        let requested = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        let mut object = existing.clone();
        let grace = match self.strategy.grace_period_seconds(existing, requested) {
            None => Grace::None,
            Some(seconds) => grace_of(existing, requested, seconds, call.now),
        };
        let is_graceful = match grace {
            Grace::None => false,
            Grace::Pending => return Ok(Plan::Pending),
            Grace::Until(at, seconds) => {
                let is_new = !existing.is_terminating();
                let metadata = object.make("metadata");
                metadata.set("deletionTimestamp", time_value(at));
                metadata.set("deletionGracePeriodSeconds", seconds);
                let generation = metadata["generation"].as_i64().unwrap_or_default();
                if is_new && generation > 0 {
                    metadata.set("generation", generation + 1);
                }
                true
            }
        };
        let is_first = self.strategy.is_deleted_in_two_steps() && !existing.is_terminating();
        let holds = is_first || self.strategy.holds_deletion(existing);
        if holds && existing.is_terminating() {
            return Ok(Plan::Held);
        }
        let finalizers = self.deletion_finalizers(existing, options);
        if let Some(finalizers) = &finalizers {
            pintle_apimachinery::meta::set_meta(&mut object, "finalizers", finalizers.clone());
        }
        if is_graceful {
            return Ok(Plan::Mark(object));
        }
        if holds {
            object.make("metadata").set("deletionTimestamp", time_value(call.now));
            self.strategy.begin_deletion(&mut object, call.now);
            return Ok(Plan::Mark(object));
        }
        if object.finalizers().next().is_some() {
            mark_as_deleting(&mut object, call.now);
            return Ok(Plan::Mark(object));
        }
        Ok(Plan::Remove)
    }

    /// The finalizers that the propagation policy asks for; `None` when they stay as they are.
    fn deletion_finalizers(&self, existing: &Value, options: &DeleteOptions) -> Option<Value> {
        let present: Vec<&str> = existing.finalizers().collect();
        let has = |name: &str| present.contains(&name);
        let is_orphaning = match (options.orphan_dependents, options.propagation) {
            (Some(orphan), _) => orphan,
            (None, Some(Propagation::Orphan)) => true,
            (None, Some(Propagation::Background | Propagation::Foreground)) => false,
            (None, None) => match present
                .iter()
                .find(|f| matches!(**f, well_known::FINALIZER_ORPHAN | well_known::FINALIZER_FOREGROUND))
            {
                Some(first) => *first == well_known::FINALIZER_ORPHAN,
                None => self.strategy.orphans_by_default(),
            },
        };
        let is_foreground = match (options.orphan_dependents, options.propagation) {
            (Some(_), _) => false,
            (None, Some(policy)) => policy == Propagation::Foreground,
            (None, None) => {
                let first = present
                    .iter()
                    .find(|f| matches!(**f, well_known::FINALIZER_ORPHAN | well_known::FINALIZER_FOREGROUND));
                first == Some(&well_known::FINALIZER_FOREGROUND)
            }
        };
        if is_orphaning == has(well_known::FINALIZER_ORPHAN) && is_foreground == has(well_known::FINALIZER_FOREGROUND) {
            return None;
        }
        let mut wanted: Vec<&str> = present
            .iter()
            .copied()
            .filter(|f| !matches!(*f, well_known::FINALIZER_ORPHAN | well_known::FINALIZER_FOREGROUND))
            .collect();
        if is_orphaning {
            wanted.push(well_known::FINALIZER_ORPHAN);
        }
        if is_foreground {
            wanted.push(well_known::FINALIZER_FOREGROUND);
        }
        Some(Value::from(wanted))
    }

    /// What a finished delete shows: the object where the kind's clients expect it, else a Status.
    fn finished(&self, object: &Value) -> Answer {
        if self.returns_deleted_object() {
            let mut object = object.clone();
            self.set_kind(&mut object);
            return Answer::Object(object);
        }
        let resource = self.group_resource();
        Answer::Status(Box::new(Status::success(Some(Details {
            name: object.name().to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            uid: Str::new(object.uid()),
            ..Details::default()
        }))))
    }

    /// Deletes every object that the list options select, one after the other; the first refusal ends it.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn delete_collection(
        &self,
        call: &Call<'_>,
        options: &DeleteOptions,
        list: &ListOptions,
    ) -> Result<Listed> {
        self.warn_of_default_policy(call, options);
        let listed = self.list(call, list).await?;
        for record in &listed.records {
            let (namespace, name) = self.store.names(&record.key);
            let call = Call { namespace, name, ..Call { warnings: call.warnings, ..*call } };
            match self.delete(&call, options).await {
                Ok(_) => {}
                Err(status) if status.is("NotFound") => {}
                Err(status) => return Err(status),
            }
        }
        Ok(listed)
    }
}

/// What the grace period of a kind that has one means for an object.
enum Grace {
    /// Nothing: it is over, or the kind has none.
    None,
    /// It runs already, and the request does not shorten it.
    Pending,
    /// It runs until then; its length in seconds.
    Until(jiff::Timestamp, i64),
}

/// `asked` is what the request asks for, `seconds` what the kind makes of it.
fn grace_of(existing: &Value, asked: Option<i64>, seconds: i64, now: jiff::Timestamp) -> Grace {
    let after = |begun: i64, seconds: i64| jiff::Timestamp::from_second(begun.saturating_add(seconds)).unwrap_or(now);
    let Some(until) = existing.deletion_timestamp() else {
        return Grace::Until(after(now.as_second(), seconds), seconds);
    };
    let present = existing.metadata()["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if present == 0 {
        return Grace::None;
    }
    match asked {
        Some(asked) if asked < present => {
            let shortened = after(until.as_second() - present, asked);
            if shortened < now { Grace::Until(now, asked.min(1)) } else { Grace::Until(shortened, asked) }
        }
        _ => Grace::Pending,
    }
}

/// Marks an object whose finalizers keep it.
fn mark_as_deleting(object: &mut Value, now: jiff::Timestamp) {
    let is_new = !object.is_terminating();
    let is_later = object.deletion_timestamp().is_some_and(|at| at > now);
    let metadata = object.make("metadata");
    if is_new {
        let generation = metadata["generation"].as_i64().unwrap_or_default();
        if generation > 0 {
            metadata.set("generation", generation + 1);
        }
    }
    if is_new || is_later {
        metadata.set("deletionTimestamp", time_value(now));
    }
    metadata.set("deletionGracePeriodSeconds", 0);
}

/// DeleteOptions on the wire, for admission.
fn wire_delete_options(options: &DeleteOptions) -> Value {
    let mut wire = json!({"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"});
    if let Some(seconds) = options.grace_period_seconds {
        wire.set("gracePeriodSeconds", seconds);
    }
    if let Some(uid) = &options.preconditions.uid {
        *wire.make("preconditions.uid") = Value::from(uid);
    }
    if let Some(version) = &options.preconditions.resource_version {
        *wire.make("preconditions.resourceVersion") = Value::from(version);
    }
    if let Some(orphan) = options.orphan_dependents {
        wire.set("orphanDependents", orphan);
    }
    if let Some(policy) = options.propagation {
        let name = match policy {
            Propagation::Orphan => "Orphan",
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
        };
        wire.set("propagationPolicy", name);
    }
    if options.dry_run {
        wire.set("dryRun", vec!["All"]);
    }
    wire
}

impl From<Deleted> for Written {
    fn from(deleted: Deleted) -> Written {
        Written { answer: deleted.answer, is_created: false }
    }
}
