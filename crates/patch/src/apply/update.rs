//! What a write does to the owners of fields.

use super::compare::{Changes, compare};
use super::conflict::Conflicts;
use super::element;
use super::managed::{Entry, Operation, Trust, cap, decode, encode, is_reset};
use super::place::Place;
use super::reconcile::reconcile;
use super::set::FieldSet;
use super::{Scope, Writer};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::format_time;
use pintle_apimachinery::{Str, Value};
use std::sync::LazyLock;

/// Fields that nobody owns.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let top: [&[&str]; 3] = [&["apiVersion"], &["kind"], &["metadata"]];
    let names = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    names.iter().fold(FieldSet::of_paths(&top), |set, name| set.union(&FieldSet::of_paths(&[&["metadata", name]])))
});

/// Sets the managedFields of `object`, which is about to be written over `live` (`None`: it is created) by anything but
/// apply. Both are in the version of the endpoint and canonical, as decoding along the schema makes them; `object`
/// still holds what the client sent as managedFields.
///
/// The writer takes over what it changes. Managers of versions that are no more vanish. If an object does not conform
/// to its schema, all owners are forgotten.
pub fn update(scope: &Scope<'_>, live: Option<&Value>, object: &mut Value, writer: &Writer<'_>) {
    let live_entries = live.map_or(&Value::NULL, |live| live.metadata().get("managedFields"));
    let sent = object.at_mut("metadata").map(|metadata| metadata.remove("managedFields")).unwrap_or_default();
    let start = starting_owners(scope, live_entries, sent);
    let is_untracked = match &start {
        Start::Stored(list) => list.items().is_empty(),
        Start::Sent(owners) => owners.is_empty(),
    };
    if is_untracked && live.is_some_and(|live| !live.uid().is_empty()) {
        // tracking begins with the first apply
        return;
    }
    let empty;
    let before = match live {
        Some(live) => live,
        None => {
            empty = scope.empty();
            &empty
        }
    };
    let Ok(changes) = compare(scope.place(), before, object) else { return };
    let changes = changes.without(scope.reset_fields);
    let list = match start {
        // nothing changed, and nobody touched the owners
        Start::Stored(list) if changes.is_empty() && !scope.is_custom => list,
        start => match owners_after(scope, start, before, object, changes, writer) {
            Ok(owners) => encode(owners),
            Err(_) => return,
        },
    };
    if !list.is_null() {
        object.make("metadata").set("managedFields", list);
    }
}

/// Whether a list of managedFields (as admission left it, say) is sound.
///
/// # Errors
/// What is wrong with it, in upstream's words.
pub fn validate(managed_fields: &Value) -> Result<(), String> {
    decode(managed_fields.clone(), Trust::FromClient).map(drop)
}

/// Whose fields a write starts from.
enum Start {
    /// The live object's managedFields.
    Stored(Value),
    /// Those that the client sent.
    Sent(Vec<Entry>),
}

fn starting_owners(scope: &Scope<'_>, live: &Value, sent: Value) -> Start {
    if sent == *live {
        return Start::Stored(sent);
    }
    if !scope.subresource.is_empty() || sent.is_null() {
        return Start::Stored(live.clone());
    }
    if is_reset(&sent) {
        return Start::Sent(Vec::new());
    }
    match decode(sent, Trust::FromClient) {
        Ok(owners) if !owners.is_empty() => Start::Sent(owners),
        Ok(_) | Err(_) => Start::Stored(live.clone()),
    }
}

/// The owners after a write other than apply.
fn owners_after(
    scope: &Scope<'_>,
    start: Start,
    before: &Value,
    after: &Value,
    changes: Changes,
    writer: &Writer<'_>,
) -> Result<Vec<Entry>, Refused> {
    let (mut owners, is_stored) = match start {
        Start::Stored(list) => (decode(list, Trust::Stored)?, true),
        Start::Sent(owners) => (owners, false),
    };
    if !is_stored || scope.is_custom {
        owners = reconciled(scope, before, owners)?;
    }
    Transition { scope, before, after, changes: &changes }.take_over(&mut owners, None)?;
    record(scope, changes.changed, &mut owners, writer);
    cap(&mut owners);
    Ok(owners)
}

/// Adds the fields that the writer changed to its entry.
pub(super) fn record(scope: &Scope<'_>, changed: FieldSet, owners: &mut Vec<Entry>, writer: &Writer<'_>) {
    let mut fields = changed;
    fields.remove(&UNOWNED);
    if fields.is_empty() {
        return;
    }
    let entry = Entry {
        manager: manager_name(writer.manager),
        operation: Operation::Update,
        api_version: Str::from(scope.kind.api_version()),
        subresource: Str::new(scope.subresource),
        time: format_time(writer.now),
        fields,
    };
    match owners.iter_mut().find(|owner| owner.is_same_owner(&entry)) {
        Some(owner) => *owner = Entry { fields: entry.fields.union(&owner.fields), ..entry },
        None => owners.push(entry),
    }
}

/// The name of a manager in its entry.
pub(super) fn manager_name(name: &str) -> Str {
    Str::new(if name.is_empty() { "unknown" } else { name })
}

/// Takes the fields that nobody owns out of a set; answers them.
pub(super) fn remove_unowned(fields: &mut FieldSet) -> FieldSet {
    let unowned = fields.intersection(&UNOWNED);
    fields.remove(&UNOWNED);
    unowned
}

/// Brings the owners' sets to the schemas of today; owners of versions that are no more are left out.
///
/// # Errors
/// Why the live object cannot be converted.
pub(super) fn reconciled(scope: &Scope<'_>, live: &Value, owners: Vec<Entry>) -> Result<Vec<Entry>, String> {
    let own_version = scope.kind.api_version();
    let mut kept = Vec::with_capacity(owners.len() + 1);
    for mut owner in owners {
        let place = if owner.api_version == own_version.as_str() {
            scope.place()
        } else {
            let is_convertible = scope.versions.convert(live, &owner.api_version)?.is_some();
            match scope.versions.node(&owner.api_version) {
                Some(node) if is_convertible => Place::root(node),
                _ => continue,
            }
        };
        reconcile(place, &mut owner.fields);
        kept.push(owner);
    }
    Ok(kept)
}

/// A change of an object, for its owners.
pub(super) struct Transition<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) before: &'a Value,
    pub(super) after: &'a Value,
    /// What changes, in the version of the endpoint.
    pub(super) changes: &'a Changes,
}

/// Why owners do not accept a change.
pub(super) enum Refused {
    Conflicts(Conflicts),
    /// A conversion failed.
    Failed(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Failed(why)
    }
}

impl Transition<'_> {
    /// Takes changed and removed fields from their owners; owners of nothing vanish. `is_forced` is `None` for what is
    /// no apply, whose changes no owner can refuse; a change of what others own is a conflict where it is `Some(false)`,
    /// and nothing is taken.
    pub(super) fn take_over(&self, owners: &mut Vec<Entry>, is_forced: Option<bool>) -> Result<(), Refused> {
        let mut versions: Vec<(Str, Option<Changes>)> = Vec::new();
        let own_version = self.scope.kind.api_version();
        let mut conflicts = Conflicts::default();
        for owner in owners.iter() {
            let changes = self.changes_in(&own_version, &owner.api_version, &mut versions)?;
            let lost = changes.filter(|changes| owner.fields.intersects(&changes.changed));
            if let Some(changes) = lost.filter(|_| is_forced == Some(false)) {
                conflicts.add(owner, &owner.fields.intersection(&changes.changed));
            }
        }
        if !conflicts.is_empty() {
            return Err(Refused::Conflicts(conflicts));
        }
        let mut kept = Vec::with_capacity(owners.len() + 1);
        for mut owner in owners.drain(..) {
            // owners in versions that are no more go, too
            let Some(changes) = self.changes_in(&own_version, &owner.api_version, &mut versions)? else { continue };
            for lost in [&changes.changed, &changes.removed] {
                if owner.fields.intersects(lost) {
                    owner.fields.remove(lost);
                }
            }
            if !owner.fields.is_empty() {
                kept.push(owner);
            }
        }
        *owners = kept;
        Ok(())
    }

    /// What changes in the version of an owner; `None` when there is no such version.
    fn changes_in<'c>(
        &'c self,
        own_version: &str,
        version: &str,
        known: &'c mut Vec<(Str, Option<Changes>)>,
    ) -> Result<Option<&'c Changes>, String> {
        if version == own_version {
            return Ok(Some(self.changes));
        }
        let idx = match known.iter().position(|(v, _)| v == version) {
            Some(idx) => idx,
            None => {
                known.push((Str::new(version), self.compared_in(version)?));
                known.len() - 1
            }
        };
        Ok(known[idx].1.as_ref())
    }

    fn compared_in(&self, version: &str) -> Result<Option<Changes>, String> {
        let versions = self.scope.versions;
        let converted = |what: &str, object: &Value| {
            versions.convert(object, version).map_err(|why| format!("failed to convert {what} object: {why}"))
        };
        let (before, after) = (converted("old", self.before)?, converted("new", self.after)?);
        let (Some(before), Some(after), Some(node)) = (before, after, versions.node(version)) else { return Ok(None) };
        let changes =
            compare(Place::root(node), &before, &after).map_err(|why| format!("failed to compare objects: {why}"))?;
        Ok(Some(changes.without(versions.reset_fields(version))))
    }
}

/// The element of a member, for paths that code names.
pub(super) fn path_of(names: &[&str]) -> Vec<Str> {
    names.iter().map(|name| element::field(name)).collect()
}
