//! What the cells of several kinds share: ages, containers, labels, lists that are cut short.

use jiff::Timestamp;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::{human_duration, parse_time};
use pintle_apimachinery::{Str, Value};

/// The object of a row, and the moment at which it is shown.
pub(super) struct Subject<'o> {
    pub(super) object: &'o Value,
    pub(super) now: Timestamp,
}

impl<'o> Subject<'o> {
    /// `metadata.name`.
    pub(super) fn name(&self) -> Value {
        Value::from(self.object.name())
    }

    /// How long ago the object was created.
    pub(super) fn age(&self) -> Value {
        self.ago("metadata.creationTimestamp")
    }

    /// When the object was created.
    pub(super) fn created(&self) -> Value {
        match self.object.at("metadata.creationTimestamp") {
            Value::String(at) => Value::from(at),
            _ => Value::from("0001-01-01T00:00:00Z"),
        }
    }

    /// How long ago the time at `path` was.
    pub(super) fn ago(&self, path: &str) -> Value {
        Value::from(self.since(self.object.at(path)))
    }

    /// How long ago a time was.
    pub(super) fn since(&self, at: &Value) -> String {
        match at.as_str().and_then(parse_time) {
            Some(at) => span(at, self.now),
            None => "<unknown>".to_owned(),
        }
    }

    pub(super) fn at(&self, path: &str) -> &'o Value {
        self.object.at(path)
    }

    /// The integer at `path`, or 0.
    pub(super) fn int(&self, path: &str) -> Value {
        Value::Int(self.number(path))
    }

    /// The integer at `path`, or 0.
    pub(super) fn number(&self, path: &str) -> i64 {
        self.at(path).as_i64().unwrap_or_default()
    }

    /// The string at `path`, or `""`.
    pub(super) fn text(&self, path: &str) -> Value {
        Value::from(self.str(path))
    }

    /// The string at `path`, or `""`.
    pub(super) fn str(&self, path: &str) -> &'o str {
        self.at(path).str_or_empty()
    }

    /// The string at `path`, or `absent` where there is none.
    pub(super) fn text_or(&self, path: &str, absent: &str) -> Value {
        Value::from(self.at(path).as_str().unwrap_or(absent))
    }

    /// The string at `path`, or `empty` where it is empty.
    pub(super) fn nonempty_or(&self, path: &str, empty: &str) -> Value {
        Value::from(or(self.str(path), empty))
    }

    /// The boolean at `path`, or `absent` where there is none.
    pub(super) fn bool_or(&self, path: &str, absent: bool) -> Value {
        Value::Bool(self.at(path).as_bool().unwrap_or(absent))
    }

    /// How many items or members stand at `path`.
    pub(super) fn count(&self, path: &str) -> i64 {
        let value = self.at(path);
        count(value)
    }

    /// The names and the images of the containers at `path`.
    pub(super) fn containers(&self, path: &str) -> [Value; 2] {
        ["name", "image"].map(|field| {
            let parts = self.at(path).items().iter().map(|c| c[field].str_or_empty());
            Value::from(join(parts, ","))
        })
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.object.is_terminating()
    }
}

pub(super) fn count(value: &Value) -> i64 {
    i64::try_from(value.items().len() + value.entries().len()).unwrap_or(i64::MAX)
}

/// The time between two moments as people read it; fractions of a second are cut off.
pub(super) fn span(from: Timestamp, to: Timestamp) -> String {
    let nanos = to.as_nanosecond() - from.as_nanosecond();
    human_duration(i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX))
}

/// `text`, or `empty` in its place.
pub(super) fn or<'t>(text: &'t str, empty: &'t str) -> &'t str {
    if text.is_empty() { empty } else { text }
}

pub(super) fn join<'t>(parts: impl Iterator<Item = &'t str>, separator: &str) -> String {
    parts.collect::<Vec<_>>().join(separator)
}

/// The strings of a list, separated by commas.
pub(super) fn join_strings(list: &Value) -> String {
    join(list.items().iter().map(Value::str_or_empty), ",")
}

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(labels: &Value) -> Value {
    let text = join_labels(labels);
    Value::from(or(&text, "<none>"))
}

fn join_labels(labels: &Value) -> String {
    let parts: Vec<String> = labels.entries().map(|(k, v)| format!("{k}={}", v.str_or_empty())).collect();
    parts.join(",")
}

/// The text of a selector object; `<none>` when it is empty, `<error>` when it is none.
pub(super) fn selector(object: &Value) -> Value {
    match Selector::from_object(object) {
        Ok(selector) => {
            let text = selector.to_string();
            Value::from(or(&text, "<none>"))
        }
        Err(_) => Value::from("<error>"),
    }
}

/// The status of the condition of this type; empty when there is none.
pub(super) fn condition<'v>(conditions: &'v Value, condition_type: &str) -> &'v str {
    let found = conditions.items().iter().find(|c| c["type"].str_or_empty() == condition_type);
    found.map_or("", |c| c["status"].str_or_empty())
}

/// Collects what is shown of a list: the first entries, and how many more there are.
pub(super) struct Short {
    shown: Vec<Str>,
    n_max: usize,
    n_seen: usize,
}

impl Short {
    pub(super) fn new(n_max: usize) -> Short {
        Short { shown: Vec::new(), n_max, n_seen: 0 }
    }

    pub(super) fn push(&mut self, entry: impl Into<Str>) {
        self.n_seen += 1;
        if self.shown.len() < self.n_max {
            self.shown.push(entry.into());
        }
    }

    /// The text; `empty` when there is nothing to show.
    pub(super) fn finish(self, separator: &str, empty: &str) -> String {
        let text = join(self.shown.iter().map(Str::as_str), separator);
        if self.n_seen > self.n_max {
            return format!("{text} + {} more...", self.n_seen - self.n_max);
        }
        or(&text, empty).to_owned()
    }
}
