//! Server-side apply of a configuration.

use super::compare::compare;
use super::fields::checked_field_set;
use super::last_applied::{self, KUBECTL};
use super::managed::{Entry, Operation, Trust, decode, encode};
use super::merge::merge;
use super::place::is_same;
use super::prune::pruned;
use super::update::{Refused, Transition, manager_name, reconciled, record, remove_unowned};
use super::{FieldSet, Scope, Writer, described};
use pintle_apimachinery::meta::{Meta, well_known::LAST_APPLIED};
use pintle_apimachinery::status::{Result, Status};
use pintle_apimachinery::time::format_time;
use pintle_apimachinery::{Str, Value};

/// The manager that owns what was there before the first apply to an object without managedFields.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What an apply leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// Nothing: the live object already is so, owners included.
    Nothing,
    /// The live object with other managedFields.
    Owners(Value),
    /// An object that is yet to be decoded along the schema and defaulted, with its managedFields.
    Object(Value),
}

/// Applies `config` to `live` (`None`: there is no such object), both in the version of the endpoint.
///
/// # Errors
/// 400 for a configuration of another kind or version, or with managedFields. 409 with a cause per field when it would
/// change what others own, unless `is_forced`. 500 without a reason when the configuration does not conform to the
/// schema, or a conversion fails.
pub fn apply(
    scope: &Scope<'_>,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer<'_>,
    is_forced: bool,
) -> Result<Applied> {
    let kind = config.gvk().unwrap_or_default();
    if kind != *scope.kind {
        return Err(Box::new(Status::bad_request(format!("invalid object type: {kind}"))));
    }
    let empty;
    let before = match live {
        Some(live) => live,
        None => {
            empty = scope.empty();
            &empty
        }
    };
    let list = before.metadata().get("managedFields");
    let invented = if list.items().is_empty() { Some(first_owners(scope, before, writer)?) } else { None };
    if config.metadata()["managedFields"].as_array().is_some() {
        return Err(Box::new(Status::bad_request("metadata.managedFields must be nil")));
    }
    let attempt = Attempt::new(scope, before, config, writer)?;
    if live.is_some() && attempt.changes_nothing(list) {
        return Ok(Applied::Nothing);
    }
    let owners = match invented {
        Some(owners) => owners,
        None => decode(list.clone(), Trust::Stored)
            .map_err(|why| plain(format!("failed to decode managed fields: {why}")))?,
    };
    let done = attempt.with_last_applied(owners, is_forced)?;
    match done.object {
        Some(mut object) => {
            set_owners(&mut object, done.owners);
            Ok(Applied::Object(object))
        }
        None if live.is_some() && done.owners == *list => Ok(Applied::Nothing),
        None => {
            let mut object = before.clone();
            set_owners(&mut object, if live.is_some() { done.owners } else { Value::Null });
            Ok(if live.is_some() { Applied::Owners(object) } else { Applied::Object(object) })
        }
    }
}

fn plain(text: String) -> Box<Status> {
    Box::new(Status::plain_error(text))
}

fn set_owners(object: &mut Value, owners: Value) {
    if owners.is_null() {
        object.remove_at("metadata.managedFields");
    } else {
        *object.make("metadata.managedFields") = owners;
    }
}

/// The owners of an object without any: what is in it belongs to a manager invented for it.
fn first_owners(scope: &Scope<'_>, before: &Value, writer: &Writer<'_>) -> Result<Vec<Entry>> {
    let changes = compare(scope.place(), &scope.empty(), before).map_err(|why| {
        let why = checked_field_set(scope.place(), before, true).err().unwrap_or(why);
        let object = described(before);
        plain(format!(
            "failed to create manager for existing fields: failed to convert new object ({object}) to smd typed: {why}"
        ))
    })?;
    let mut owners = Vec::new();
    let writer = Writer { manager: BEFORE_FIRST_APPLY, ..*writer };
    record(scope, changes.without(scope.reset_fields).changed, &mut owners, &writer);
    Ok(owners)
}

struct Attempt<'a> {
    scope: &'a Scope<'a>,
    before: &'a Value,
    config: &'a Value,
    writer: &'a Writer<'a>,
    /// The live object with the configuration in it, if that makes a difference.
    merged: Option<Value>,
    /// The applier's new entry, without a time.
    applier: Entry,
    /// The fields that the configuration names and nobody owns.
    unowned: FieldSet,
}

/// What an attempt came to.
struct Done {
    /// The merged object, if it differs from the live one.
    object: Option<Value>,
    /// The managedFields.
    owners: Value,
}

impl<'a> Attempt<'a> {
    /// Checks the configuration and merges it.
    fn new(scope: &'a Scope<'a>, before: &'a Value, config: &'a Value, writer: &'a Writer<'a>) -> Result<Attempt<'a>> {
        let place = scope.place();
        let named = checked_field_set(place, config, false)
            .map_err(|why| plain(format!("failed to create typed patch object ({}): {why}", described(config))))?;
        let merged = merge(place, before, config).map_err(|why| plain(format!("failed to merge config: {why}")))?;
        let mut fields = match scope.reset_fields {
            Some(reset) => named.without_below(reset),
            None => named,
        };
        let unowned = remove_unowned(&mut fields);
        let applier = Entry {
            manager: manager_name(writer.manager),
            operation: Operation::Apply,
            api_version: Str::from(scope.kind.api_version()),
            subresource: Str::new(scope.subresource),
            time: Str::default(),
            fields,
        };
        Ok(Attempt { scope, before, config, writer, merged, applier, unowned })
    }

    /// The usual case, found without looking at other owners: the object is so already, and the applier is recorded
    /// with the same fields.
    fn changes_nothing(&self, list: &Value) -> bool {
        let applier = &self.applier;
        let is_ours = |entry: &&Value| {
            entry["operation"].as_str() == Some("Apply")
                && entry["manager"].str_or_empty() == applier.manager
                && entry["subresource"].str_or_empty() == applier.subresource
        };
        // owners of other versions may have to go, and custom resources may have another schema than before
        let is_plain = self.merged.is_none()
            && !self.scope.is_custom
            && !self.is_migrating()
            && list.items().iter().all(|entry| entry["apiVersion"].str_or_empty() == applier.api_version);
        if !is_plain {
            return false;
        }
        let ours = list.items().iter().rfind(is_ours);
        ours.is_some_and(|entry| entry["fieldsV1"].as_object() == Some(applier.fields.root()))
    }

    /// Whether `kubectl` applies and the object has, or comes to have, its annotation.
    fn is_migrating(&self) -> bool {
        let has_annotation = |object: &Value| object.annotation(LAST_APPLIED).is_some();
        self.writer.manager == KUBECTL && (has_annotation(self.before) || has_annotation(self.config))
    }

    /// Runs; `kubectl` may override what its annotation says it applied and that has not changed since.
    fn with_last_applied(mut self, owners: Vec<Entry>, is_forced: bool) -> Result<Done> {
        let merged = self.merged.take();
        let is_migrating = self.writer.manager == KUBECTL && self.before.annotation(LAST_APPLIED).is_some();
        let done =
            if is_migrating { self.migrate(owners, merged, is_forced) } else { self.run(owners, merged, is_forced) };
        done.map_err(|refused| match refused {
            Refused::Conflicts(conflicts) => conflicts.status(),
            Refused::Failed(why) => plain(why),
        })
    }

    fn migrate(&self, owners: Vec<Entry>, merged: Option<Value>, is_forced: bool) -> Result<Done, Refused> {
        let mut done = match self.run(owners.clone(), merged.clone(), is_forced) {
            Err(Refused::Conflicts(conflicts)) => {
                let allowed = last_applied::unchanged_fields(self.scope, self.before).unwrap_or_default();
                let rest = conflicts.without(&allowed);
                if !rest.is_empty() {
                    return Err(Refused::Conflicts(rest));
                }
                self.run(owners, merged, true)?
            }
            result => result?,
        };
        let mut object = done.object.take().unwrap_or_else(|| self.before.clone());
        last_applied::refresh(&mut object, self.config);
        done.object = (object != *self.before).then_some(object);
        Ok(done)
    }

    fn run(&self, owners: Vec<Entry>, merged: Option<Value>, is_forced: bool) -> Result<Done, Refused> {
        let scope = self.scope;
        let mut applier = self.applier.clone();
        // kept even if the version of the old entry is no more
        if let Some(last) = owners.iter().find(|owner| owner.is_same_owner(&applier)) {
            applier.time = last.time.clone();
        }
        let is_plain = !scope.is_custom && owners.iter().all(|owner| owner.api_version == applier.api_version);
        let mut owners = if is_plain { owners } else { reconciled(scope, self.before, owners)? };
        let last = owners.iter().position(|owner| owner.is_same_owner(&applier)).map(|idx| owners.swap_remove(idx));
        let merged = match last.filter(|last| drops_fields(last, &applier)) {
            Some(last) => self.prune(&last, &owners, merged)?,
            None => merged,
        };
        let merged = merged.filter(|merged| !is_same(merged, self.before));
        if let Some(after) = merged.as_ref().filter(|_| !owners.is_empty()) {
            let changes = compare(scope.place(), self.before, after)
                .map_err(|why| format!("failed to compare objects: {why}"))?
                .without(scope.reset_fields);
            Transition { scope, before: self.before, after, changes: &changes }
                .take_over(&mut owners, Some(is_forced))?;
        }
        if merged.is_some() {
            applier.time = format_time(self.writer.now);
        }
        owners.push(applier);
        owners.retain(|owner| !owner.fields.is_empty());
        Ok(Done { object: merged, owners: encode(owners) })
    }

    /// The merged object without what the applier owned and names no more.
    fn prune(&self, last: &Entry, owners: &[Entry], merged: Option<Value>) -> Result<Option<Value>, String> {
        // what nobody owns still counts as named here
        let applier = Entry { fields: self.applier.fields.union(&self.unowned), ..self.applier.clone() };
        let owners: Vec<Entry> = owners.iter().cloned().chain([applier]).collect();
        let object = merged.as_ref().unwrap_or(self.before);
        let less = pruned(self.scope, object, &owners, last).map_err(|why| format!("failed to prune fields: {why}"))?;
        Ok(less.or(merged))
    }
}

/// Whether an applier owned something that it names no more.
fn drops_fields(last: &Entry, now: &Entry) -> bool {
    !last.fields.is_empty() && (last.api_version != now.api_version || !now.fields.contains(&last.fields))
}
