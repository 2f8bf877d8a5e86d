//! Server-side apply of a configuration.

use super::compare::{Changes, compare};
use super::fields::field_set;
use super::last_applied::{self, KUBECTL};
use super::managed::{Entry, Operation, Trust, decode, encode};
use super::merge::merge;
use super::place::is_same;
use super::prune::pruned;
use super::update::{Applier, Refused, Transition, manager_name, ownable, reconciled, record};
use super::validate::validate;
use super::{Scope, Writer, described};
use pintle_apimachinery::meta::Meta;
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
    let owners = first_owners(scope, before, writer)?;
    if config.metadata()["managedFields"].as_array().is_some() {
        return Err(Box::new(Status::bad_request("metadata.managedFields must be nil")));
    }
    validate(scope.place(), config, false)
        .map_err(|why| plain(format!("failed to create typed patch object ({}): {why}", described(config))))?;
    let attempt = Attempt { scope, before, config, writer };
    let mut done = attempt.with_last_applied(owners, is_forced)?;
    if let Some(object) = &mut done.object {
        set_owners(object, done.owners);
        return Ok(Applied::Object(done.object.unwrap_or_default()));
    }
    if live.is_none() {
        let mut object = before.clone();
        set_owners(&mut object, Value::Null);
        return Ok(Applied::Object(object));
    }
    if done.owners == *before.metadata().get("managedFields") {
        return Ok(Applied::Nothing);
    }
    let mut object = before.clone();
    set_owners(&mut object, done.owners);
    Ok(Applied::Owners(object))
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

/// The owners before the apply. What is in an object without any belongs to a manager invented for it.
fn first_owners(scope: &Scope<'_>, before: &Value, writer: &Writer<'_>) -> Result<Vec<Entry>> {
    let mut owners = decode(before.metadata().get("managedFields"), Trust::Stored)
        .map_err(|why| plain(format!("failed to decode managed fields: {why}")))?;
    if owners.is_empty() {
        let changes = compare(scope.place(), &scope.empty(), before)
            .map_err(|why| plain(format!("failed to create manager for existing fields: {why}")))?
            .without(scope.reset_fields);
        let writer = Writer { manager: BEFORE_FIRST_APPLY, ..*writer };
        record(scope, &changes, &mut owners, &writer);
    }
    Ok(owners)
}

struct Attempt<'a> {
    scope: &'a Scope<'a>,
    before: &'a Value,
    config: &'a Value,
    writer: &'a Writer<'a>,
}

/// What an attempt came to.
struct Done {
    /// The merged object, if it differs from the live one.
    object: Option<Value>,
    /// The managedFields.
    owners: Value,
}

impl Attempt<'_> {
    /// Runs; `kubectl` may override what its annotation says it applied and that has not changed since.
    fn with_last_applied(&self, owners: Vec<Entry>, is_forced: bool) -> Result<Done> {
        let is_kubectl = self.writer.manager == KUBECTL;
        let saved = if is_kubectl { owners.clone() } else { Vec::new() };
        let mut done = match self.run(owners, is_forced) {
            Err(Refused::Conflicts(conflicts)) if is_kubectl => {
                let Some(allowed) = last_applied::unchanged_fields(self.scope, self.before) else {
                    return Err(conflicts.status());
                };
                let rest = conflicts.without(&allowed);
                if !rest.is_empty() {
                    return Err(rest.status());
                }
                self.run(saved, true)
            }
            result => result,
        }
        .map_err(|refused| match refused {
            Refused::Conflicts(conflicts) => conflicts.status(),
            Refused::Failed(why) => plain(why),
        })?;
        if is_kubectl {
            let mut object = done.object.take().unwrap_or_else(|| self.before.clone());
            last_applied::refresh(&mut object, self.config);
            done.object = (object != *self.before).then_some(object);
        }
        Ok(done)
    }

    fn run(&self, owners: Vec<Entry>, is_forced: bool) -> Result<Done, Refused> {
        let (scope, place) = (self.scope, self.scope.place());
        let mut owners = if scope.is_custom { reconciled(scope, self.before, owners)? } else { owners };
        let mut merged =
            merge(place, self.before, self.config).map_err(|why| format!("failed to merge config: {why}"))?;
        let applier = self.applier();
        let last = owners.iter().position(|owner| owner.is_same_owner(&applier)).map(|idx| owners.swap_remove(idx));
        let applier = Entry { time: last.as_ref().map(|last| last.time.clone()).unwrap_or_default(), ..applier };
        owners.push(applier.clone());
        if let Some(last) = last.filter(|last| drops_fields(last, &applier)) {
            let object = merged.as_ref().unwrap_or(self.before);
            let less = pruned(scope, object, &owners, &last).map_err(|why| format!("failed to prune fields: {why}"))?;
            merged = less.or(merged);
        }
        let merged = merged.filter(|merged| !is_same(merged, self.before));
        let changes = match &merged {
            Some(after) => compare(place, self.before, after)
                .map_err(|why| format!("failed to compare objects: {why}"))?
                .without(scope.reset_fields),
            None => Changes::default(),
        };
        let after = merged.as_ref().unwrap_or(self.before);
        let transition = Transition { scope, before: self.before, after, changes: &changes };
        transition.take_over(&mut owners, Some(Applier { entry: &applier, is_forced }))?;
        if let Some(owner) = owners.iter_mut().find(|owner| owner.is_same_owner(&applier)) {
            owner.fields = ownable(&owner.fields);
            if merged.is_some() {
                owner.time = format_time(self.writer.now);
            }
        }
        owners.retain(|owner| !owner.fields.is_empty());
        Ok(Done { object: merged, owners: encode(owners) })
    }

    /// The applier's new entry, without a time.
    fn applier(&self) -> Entry {
        let named = field_set(self.scope.place(), self.config);
        Entry {
            manager: manager_name(self.writer.manager),
            operation: Operation::Apply,
            api_version: Str::from(self.scope.kind.api_version()),
            subresource: Str::new(self.scope.subresource),
            time: Str::default(),
            fields: match self.scope.reset_fields {
                Some(reset) => named.recursive_difference(reset),
                None => named,
            },
        }
    }
}

/// Whether an applier owned something that it names no more.
fn drops_fields(last: &Entry, now: &Entry) -> bool {
    !last.fields.is_empty() && (last.api_version != now.api_version || !now.fields.contains(&last.fields))
}
