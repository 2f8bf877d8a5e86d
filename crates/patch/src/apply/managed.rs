//! The entries of `metadata.managedFields`: reading, writing, their order and identity.

use super::set::FieldSet;
use pintle_apimachinery::time::parse_time;
use pintle_apimachinery::{Object, Str, Value};
use std::cmp::Ordering;

/// Entries of Update that an object keeps; the oldest beyond are merged per apiVersion.
pub const UPDATE_ENTRIES_MAX: usize = 10;

/// The manager of entries that were merged because there were too many.
const ANCIENT: &str = "ancient-changes";

/// How an entry came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// One entry: who owns what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) manager: Str,
    pub(super) operation: Operation,
    pub(super) api_version: Str,
    pub(super) subresource: Str,
    /// As on the wire; empty for none.
    pub(super) time: Str,
    pub(super) fields: FieldSet,
}

impl Entry {
    /// Whether two entries are of the same owner: the version counts for updates only.
    pub(super) fn is_same_owner(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn seconds(&self) -> i64 {
        parse_time(&self.time).map_or(0, |at| at.as_second())
    }

    /// The text by which upstream knows and sorts owners.
    pub(super) fn identifier(&self) -> String {
        let mut object = Object::new();
        let version = if self.operation == Operation::Update { self.api_version.as_str() } else { "" };
        // the members in the order of the Go struct
        let members = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.text()),
            ("apiVersion", version),
            ("subresource", &self.subresource),
        ];
        let mut text = "{".to_owned();
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_empty()) {
            object.insert(name, Value::from(value));
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&format!("\"{name}\":{}", pintle_apimachinery::value::html_escaped(&Value::from(value))));
        }
        text.push('}');
        text
    }

    fn compare(&self, other: &Entry) -> Ordering {
        self.operation
            .cmp(&other.operation)
            .then_with(|| if self.time == other.time { Ordering::Equal } else { self.seconds().cmp(&other.seconds()) })
            .then_with(|| self.manager.cmp(&other.manager))
            .then_with(|| self.api_version.cmp(&other.api_version))
            .then_with(|| self.subresource.cmp(&other.subresource))
    }

    fn into_value(self) -> Value {
        let operation = Str::const_new(self.operation.text());
        let members = [
            ("apiVersion", Value::String(self.api_version)),
            ("fieldsType", Value::String(Str::const_new("FieldsV1"))),
            ("fieldsV1", self.fields.into_value()),
            ("manager", Value::String(self.manager)),
            ("operation", Value::String(operation)),
            ("subresource", Value::String(self.subresource)),
            ("time", Value::String(self.time)),
        ];
        let is_written = |name: &str, value: &Value| name == "fieldsV1" || !value.is_empty();
        let members = members.into_iter().filter(|(name, value)| is_written(name, value));
        Value::Object(Object::from_unsorted(members.map(|(name, value)| (Str::const_new(name), value)).collect()))
    }
}

/// Whether fields are taken as they are, because this code or upstream's wrote them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Trust {
    Stored,
    FromClient,
}

/// Reads a list of entries; of entries of the same owner the last one counts.
///
/// # Errors
/// Upstream's words for the first entry that is none.
pub(super) fn decode(list: Value, trust: Trust) -> Result<Vec<Entry>, String> {
    let Value::Array(list) = list else { return Ok(Vec::new()) };
    let mut entries: Vec<Entry> = Vec::with_capacity(list.len() + 1);
    for (idx, entry) in list.into_iter().enumerate() {
        let entry = decode_entry(idx, entry, trust)?;
        match entries.iter_mut().find(|e| e.is_same_owner(&entry)) {
            Some(earlier) => *earlier = entry,
            None => entries.push(entry),
        }
    }
    Ok(entries)
}

fn decode_entry(idx: usize, mut entry: Value, trust: Trust) -> Result<Entry, String> {
    let fields = entry.get_mut("fieldsV1").map(Value::take).unwrap_or_default();
    let text = |name: &str| Str::new(entry.get(name).str_or_empty());
    let operation = match entry["operation"].str_or_empty() {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match entry["fieldsType"].str_or_empty() {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {idx}")),
        other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {idx}")),
    }
    let fields = match trust {
        Trust::Stored => FieldSet::trusted(fields),
        Trust::FromClient => FieldSet::parse(&fields)
            .map_err(|_| format!("error decoding versioned set from managed fields entry {idx}"))?,
    };
    let (manager, subresource, time) = (text("manager"), text("subresource"), text("time"));
    Ok(Entry { manager, operation, api_version, subresource, time, fields })
}

/// Writes a list of entries in its order; `null` for none.
pub(super) fn encode(mut entries: Vec<Entry>) -> Value {
    if entries.is_empty() {
        return Value::Null;
    }
    entries.sort_by(Entry::compare);
    entries.into_iter().map(Entry::into_value).collect()
}

/// Whether a list asks to forget all owners: a list that is there but empty, or holds one empty entry.
pub(super) fn is_reset(list: &Value) -> bool {
    match list {
        Value::Array(entries) => match &entries[..] {
            [] => true,
            [only] => only.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// Merges the oldest entries of Update until few enough are left.
pub(super) fn cap(entries: &mut Vec<Entry>) {
    let is_update = |entry: &&Entry| entry.operation == Operation::Update;
    let mut n_updates = entries.iter().filter(is_update).count();
    if n_updates <= UPDATE_ENTRIES_MAX {
        return;
    }
    let (mut updates, mut rest): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(entries).into_iter().partition(|e| e.operation == Operation::Update);
    updates.sort_by_cached_key(|entry| (entry.seconds(), entry.identifier()));
    let mut kept: Vec<Entry> = Vec::with_capacity(updates.len());
    for entry in updates {
        let first = kept.iter_mut().find(|e| e.api_version == entry.api_version);
        match first {
            Some(bucket) if n_updates > UPDATE_ENTRIES_MAX => {
                bucket.fields = entry.fields.union(&bucket.fields);
                bucket.manager = Str::const_new(ANCIENT);
                bucket.subresource = Str::default();
                bucket.time = entry.time;
                n_updates -= 1;
            }
            _ => kept.push(entry),
        }
    }
    rest.append(&mut kept);
    *entries = rest;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    fn entry(manager: &str, time: &str, version: &str) -> Entry {
        Entry {
            manager: Str::new(manager),
            operation: Operation::Update,
            api_version: Str::new(version),
            subresource: Str::default(),
            time: Str::new(time),
            fields: FieldSet::of_paths(&[&[manager]]),
        }
    }

    #[test]
    fn old_updates_are_merged_per_version() {
        let mut entries: Vec<Entry> = (0..12)
            .map(|n| entry(&format!("m{n:02}"), &format!("2026-01-01T00:00:{n:02}Z"), if n == 1 { "v2" } else { "v1" }))
            .collect();
        entries.reverse();
        cap(&mut entries);
        let told: Vec<String> = entries
            .iter()
            .map(|e| format!("{} {} {} {}", e.manager, e.api_version, e.time, e.fields.clone().into_value()))
            .collect();
        assert_eq!(told.len(), UPDATE_ENTRIES_MAX);
        assert_eq!(told[0], r#"ancient-changes v1 2026-01-01T00:00:03Z {"f:m00":{},"f:m02":{},"f:m03":{}}"#);
        assert_eq!(told[1], r#"m01 v2 2026-01-01T00:00:01Z {"f:m01":{}}"#);
        assert_eq!(entries[0].identifier(), r#"{"manager":"ancient-changes","operation":"Update","apiVersion":"v1"}"#);
    }

    #[test]
    fn entries_that_are_none() {
        let told = |list: Value| decode(list, Trust::FromClient).map(|entries| entries.len());
        let good = json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}});
        let with = |name: &str, value: Value| {
            let mut entry = good.clone();
            entry.set(name, value);
            Value::Array(vec![entry])
        };
        assert_eq!(told(Value::Array(vec![good.clone(), good.clone()])), Ok(1));
        assert_eq!(told(with("operation", json!("Odd"))), Err("operation must be `Apply` or `Update`".to_owned()));
        assert_eq!(told(with("apiVersion", json!(""))), Err("apiVersion must not be empty".to_owned()));
        assert_eq!(told(with("fieldsType", json!(""))), Err("missing fieldsType in managed fields entry 0".to_owned()));
        assert_eq!(
            told(with("fieldsType", json!("V2"))),
            Err("invalid fieldsType \"V2\" in managed fields entry 0".to_owned())
        );
        assert!(told(with("fieldsV1", json!({"odd": {}}))).is_err());
        assert_eq!(told(with("fieldsV1", Value::Null)), Ok(1));
    }

    #[test]
    fn resets() {
        for (list, want) in [
            (json!([]), true),
            (json!([{}]), true),
            (Value::Null, false),
            (json!([{"manager": "m"}]), false),
            (json!([{}, {}]), false),
        ] {
            assert_eq!(is_reset(&list), want, "{list}");
        }
    }
}
