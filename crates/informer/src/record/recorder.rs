//! Making events.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::{Metadata, Resource};
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::time::floor_second;
use pintle_client::{DynamicObject, Object, watch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The two types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Nothing to worry about.
    Normal,
    /// Something to look at.
    Warning,
}

impl EventType {
    /// The type as it stands in an event.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// What an event is about.
pub fn reference<K: Object + Resource + Metadata<Ty = ObjectMeta>>(object: &K) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::API_VERSION.to_owned()),
        kind: Some(K::KIND.to_owned()),
        ..reference_by_meta(object.meta())
    }
}

fn reference_by_meta(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// What an event about an object of any kind is about.
pub(super) fn dynamic_reference(object: &DynamicObject) -> ObjectReference {
    ObjectReference {
        api_version: Some(object.api_version.clone()),
        kind: Some(object.kind.clone()),
        ..reference_by_meta(&object.metadata)
    }
}

/// Records events. A controller takes one of these, so that its tests can give it a [`FakeRecorder`].
pub trait Recorder: Send + Sync {
    /// Records that something happened to what `about` refers to. `reason` is one word in CamelCase for machines,
    /// `message` is for people. Never waits and never fails; an event that cannot be recorded is lost.
    fn event(&self, about: &ObjectReference, event_type: EventType, reason: &str, message: &str);
}

/// Makes events in the name of one component and gives them to a broadcaster. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    component: String,
    host: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
    events: watch::Broadcaster<Arc<Event>>,
    env: Env,
}

impl EventRecorder {
    pub(super) fn new(component: &str, events: watch::Broadcaster<Arc<Event>>, env: Env) -> EventRecorder {
        EventRecorder { component: component.to_owned(), host: None, annotations: None, events, env }
    }

    /// On this host.
    #[must_use]
    pub fn on_host(mut self, host: &str) -> EventRecorder {
        self.host = Some(host.to_owned());
        self
    }

    /// With these annotations on every event.
    #[must_use]
    pub fn with_annotations(mut self, annotations: BTreeMap<String, String>) -> EventRecorder {
        self.annotations = Some(annotations);
        self
    }

    /// Records that something happened to an object.
    pub fn record<K>(&self, object: &K, event_type: EventType, reason: &str, message: &str)
    where
        K: Object + Resource + Metadata<Ty = ObjectMeta>,
    {
        self.event(&reference(object), event_type, reason, message);
    }

    /// Records that something happened to an object of a kind known at run time.
    pub fn record_dynamic(&self, object: &DynamicObject, event_type: EventType, reason: &str, message: &str) {
        self.event(&dynamic_reference(object), event_type, reason, message);
    }

    fn make(&self, about: &ObjectReference, event_type: EventType, reason: &str, message: &str) -> Event {
        let now = self.env.clock.now();
        let time = Time(floor_second(now));
        let namespace = about.namespace.clone().filter(|namespace| !namespace.is_empty());
        let name = about.name.as_deref().unwrap_or_default();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                annotations: self.annotations.clone(),
                ..ObjectMeta::default()
            },
            involved_object: about.clone(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            first_timestamp: Some(time.clone()),
            last_timestamp: Some(time),
            count: Some(1),
            type_: Some(event_type.as_str().to_owned()),
            source: Some(EventSource { component: Some(self.component.clone()), host: self.host.clone() }),
            reporting_component: Some(self.component.clone()),
            reporting_instance: Some(self.host.clone().unwrap_or_default()),
            ..Event::default()
        }
    }
}

impl Recorder for EventRecorder {
    fn event(&self, about: &ObjectReference, event_type: EventType, reason: &str, message: &str) {
        let event = Arc::new(self.make(about, event_type, reason, message));
        match self.events.action_or_drop(watch::Event::Added(event)) {
            Ok(true) => {}
            Ok(false) => tracing::warn!(reason, message, "too many queued events, one is dropped"),
            Err(error) => tracing::debug!(reason, message, %error, "an event is not recorded"),
        }
    }
}

/// Keeps events as lines `Normal Reason message`, for tests.
#[derive(Clone, Debug, Default)]
pub struct FakeRecorder {
    lines: Arc<Mutex<Vec<String>>>,
}

impl FakeRecorder {
    /// A recorder without events.
    pub fn new() -> FakeRecorder {
        FakeRecorder::default()
    }

    /// Takes the events out.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock())
    }
}

impl Recorder for FakeRecorder {
    fn event(&self, _about: &ObjectReference, event_type: EventType, reason: &str, message: &str) {
        self.lines.lock().push(format!("{} {reason} {message}", event_type.as_str()));
    }
}
