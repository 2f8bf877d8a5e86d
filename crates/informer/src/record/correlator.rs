//! Keeping events few: the spam filter, the aggregator, and the memory of what was already sent.

use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::time::floor_second;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// When events are held back or put together.
#[derive(Clone, Debug)]
pub struct CorrelatorOptions {
    /// Objects and sources remembered; beyond it the longest unused are forgotten.
    pub cache_entries_max: usize,
    /// Events about one object from one source that pass at once.
    pub burst: u32,
    /// Seconds until one more may pass.
    pub seconds_per_event: f64,
    /// Different messages with one reason that pass before they are put together.
    pub similar_events_max: usize,
    /// Seconds without a similar event after which counting starts over.
    pub interval_seconds: i64,
}

impl Default for CorrelatorOptions {
    fn default() -> CorrelatorOptions {
        CorrelatorOptions {
            cache_entries_max: 4096,
            burst: 25,
            seconds_per_event: 300.0,
            similar_events_max: 10,
            interval_seconds: 600,
        }
    }
}

/// What to do with an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Correlated {
    /// Hold it back.
    Skip,
    /// Send it as a new one.
    Create(Box<Event>),
    /// The server has it: this strategic merge patch counts it once more. If it is gone there, send it as new.
    Patch(Box<Event>, Value),
}

/// Decides what becomes of each event.
#[derive(Debug)]
pub struct EventCorrelator {
    options: CorrelatorOptions,
    env: Env,
    buckets: Lru<Bucket>,
    similar: Lru<Similar>,
    sent: Lru<Sent>,
}

/// A token bucket of one source and object.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

#[derive(Clone, Debug)]
struct Similar {
    messages: BTreeSet<String>,
    last_at: Timestamp,
}

#[derive(Clone, Debug)]
struct Sent {
    count: i32,
    first_timestamp: Option<Time>,
    name: Option<String>,
    resource_version: Option<String>,
}

/// A map that forgets what was not used for the longest.
#[derive(Debug)]
struct Lru<V> {
    entries: IndexMap<String, V>,
    max: usize,
}

impl<V: Clone> Lru<V> {
    fn new(max: usize) -> Lru<V> {
        Lru { entries: IndexMap::new(), max: max.max(1) }
    }

    fn get(&mut self, key: &str) -> Option<V> {
        let idx = self.entries.get_index_of(key)?;
        self.entries.move_index(idx, self.entries.len() - 1);
        self.entries.get(key).cloned()
    }

    fn put(&mut self, key: String, value: V) {
        self.entries.shift_remove(&key);
        if self.entries.len() >= self.max {
            self.entries.shift_remove_index(0);
        }
        self.entries.insert(key, value);
    }
}

impl EventCorrelator {
    /// A correlator that has seen nothing.
    pub fn new(options: CorrelatorOptions, env: Env) -> EventCorrelator {
        let max = options.cache_entries_max;
        EventCorrelator { options, env, buckets: Lru::new(max), similar: Lru::new(max), sent: Lru::new(max) }
    }

    /// What to do with `event`.
    pub fn correlate(&mut self, event: &Event) -> Correlated {
        let (event, key) = self.aggregate(event);
        let (event, patch) = self.observe(event, &key);
        if self.is_spam(&event) {
            return Correlated::Skip;
        }
        match patch {
            Some(patch) => Correlated::Patch(Box::new(event), patch),
            None => Correlated::Create(Box::new(event)),
        }
    }

    /// The server has this event now.
    pub fn update_state(&mut self, event: &Event) {
        self.remember(event_key(event), event);
    }

    /// Puts an event together with similar ones if there are many: gives what to send and under which key it counts.
    fn aggregate(&mut self, event: &Event) -> (Event, String) {
        let now = self.env.clock.now();
        let key = similar_key(event);
        let interval = SignedDuration::from_secs(self.options.interval_seconds);
        let known = self.similar.get(&key).filter(|known| now.duration_since(known.last_at) <= interval);
        let mut similar = known.unwrap_or_else(|| Similar { messages: BTreeSet::new(), last_at: now });
        similar.messages.insert(event.message.clone().unwrap_or_default());
        similar.last_at = now;
        let is_many = similar.messages.len() >= self.options.similar_events_max;
        if is_many {
            similar.messages.pop_first();
        }
        self.similar.put(key.clone(), similar);
        if !is_many {
            return (event.clone(), event_key(event));
        }
        let time = Time(floor_second(now));
        let name = event.involved_object.name.as_deref().unwrap_or_default();
        let combined = Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", now.as_nanosecond())),
                namespace: event.metadata.namespace.clone(),
                ..ObjectMeta::default()
            },
            count: Some(1),
            first_timestamp: Some(time.clone()),
            last_timestamp: Some(time),
            message: Some(format!("(combined from similar events): {}", event.message.as_deref().unwrap_or_default())),
            involved_object: event.involved_object.clone(),
            type_: event.type_.clone(),
            reason: event.reason.clone(),
            source: event.source.clone(),
            ..Event::default()
        };
        (combined, key)
    }

    /// Counts an event that was sent before; the patch says so to the server.
    fn observe(&mut self, mut event: Event, key: &str) -> (Event, Option<Value>) {
        let mut patch = None;
        if let Some(sent) = self.sent.get(key).filter(|sent| sent.count > 0) {
            event.metadata.name = sent.name;
            event.metadata.resource_version = sent.resource_version;
            event.first_timestamp = sent.first_timestamp;
            event.count = Some(sent.count.saturating_add(1));
            let mut changes = json!({ "count": event.count, "lastTimestamp": event.last_timestamp });
            if let Some(message) = event.message.as_ref().filter(|message| !message.is_empty()) {
                changes["message"] = json!(message);
            }
            patch = Some(changes);
        }
        self.remember(key.to_owned(), &event);
        (event, patch)
    }

    fn remember(&mut self, key: String, event: &Event) {
        let sent = Sent {
            count: event.count.unwrap_or_default(),
            first_timestamp: event.first_timestamp.clone(),
            name: event.metadata.name.clone(),
            resource_version: event.metadata.resource_version.clone(),
        };
        self.sent.put(key, sent);
    }

    fn is_spam(&mut self, event: &Event) -> bool {
        let now = self.env.clock.now();
        let key = spam_key(event);
        let burst = f64::from(self.options.burst);
        let mut bucket = self.buckets.get(&key).unwrap_or(Bucket { tokens: burst, at: now });
        let refill = now.duration_since(bucket.at).as_secs_f64().max(0.0) / self.options.seconds_per_event;
        bucket = Bucket { tokens: (bucket.tokens + refill).min(burst), at: now };
        let passes = bucket.tokens >= 1.0;
        if passes {
            bucket.tokens -= 1.0;
        }
        self.buckets.put(key, bucket);
        !passes
    }
}

/// Source, object and type: what the spam filter counts.
fn spam_key(event: &Event) -> String {
    let (source, about) = (event.source.clone().unwrap_or_default(), &event.involved_object);
    let parts = [
        &source.component,
        &source.host,
        &about.kind,
        &about.namespace,
        &about.name,
        &about.uid,
        &about.api_version,
        &event.type_,
    ];
    join(parts)
}

/// As the spam key, with the reason and who reports: what is put together.
fn similar_key(event: &Event) -> String {
    let reporting = [&event.reason, &event.reporting_component, &event.reporting_instance];
    format!("{}\u{1f}{}", spam_key(event), join(reporting))
}

/// Everything that makes two events the same.
fn event_key(event: &Event) -> String {
    format!("{}\u{1f}{}", spam_key(event), join([&event.involved_object.field_path, &event.reason, &event.message]))
}

fn join<const N: usize>(parts: [&Option<String>; N]) -> String {
    parts.map(|part| part.as_deref().unwrap_or_default()).join("\u{1f}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ObjectReference;
    use pintle_apimachinery::env::ManualClock;
    use std::sync::Arc;

    fn event(reason: &str, message: &str) -> Event {
        Event {
            involved_object: ObjectReference { name: Some("pod".into()), ..ObjectReference::default() },
            reason: Some(reason.into()),
            message: Some(message.into()),
            count: Some(1),
            type_: Some("Normal".into()),
            ..Event::default()
        }
    }

    fn told(correlated: &Correlated) -> String {
        match correlated {
            Correlated::Skip => "skip".to_owned(),
            Correlated::Create(event) => format!("create {}", event.message.as_deref().unwrap()),
            Correlated::Patch(event, patch) => {
                format!("patch to {} {}", patch["count"], event.message.as_deref().unwrap())
            }
        }
    }

    #[test]
    fn repeated_similar_and_too_many() {
        let clock = Arc::new(ManualClock::default());
        let env = Env { clock: Arc::<ManualClock>::clone(&clock), ids: Env::seeded(1).ids };
        let mut correlator = EventCorrelator::new(CorrelatorOptions::default(), env);
        let mut lines = Vec::new();
        for message in ["same", "same", "same"] {
            lines.push(told(&correlator.correlate(&event("Repeated", message))));
        }
        for n in 0..12 {
            lines.push(told(&correlator.correlate(&event("Similar", &format!("message {n}")))));
        }
        for n in 0..11 {
            lines.push(told(&correlator.correlate(&event(&format!("Reason{n}"), "x"))));
        }
        clock.advance(300);
        lines.push(told(&correlator.correlate(&event("Later", "one more after five minutes"))));
        lines.push(told(&correlator.correlate(&event("Later", "but not two"))));
        expect_test::expect![[r#"
            create same
            patch to 2 same
            patch to 3 same
            create message 0
            create message 1
            create message 2
            create message 3
            create message 4
            create message 5
            create message 6
            create message 7
            create message 8
            create (combined from similar events): message 9
            patch to 2 (combined from similar events): message 10
            patch to 3 (combined from similar events): message 11
            create x
            create x
            create x
            create x
            create x
            create x
            create x
            create x
            create x
            create x
            skip
            create one more after five minutes
            skip"#]]
        .assert_eq(&lines.join("\n"));
    }
}
