//! Object metadata: reading and changing `metadata` of an object that is a [`Value`].

use crate::time::parse_time;
use crate::{GroupVersionKind, Str, Value};
use jiff::Timestamp;

/// The four finalizer names and annotation keys of the field that code here knows.
pub mod well_known {
    /// Finalizer: dependents are to be orphaned.
    pub const FINALIZER_ORPHAN: &str = "orphan";
    /// Finalizer: dependents go first.
    pub const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
    /// Marks the bookmark that ends the initial events of a watch.
    pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
    /// Where `kubectl apply` keeps the last applied configuration.
    pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
}

/// Read access to an object's type and metadata.
pub trait Meta {
    /// The object as a value.
    fn as_value(&self) -> &Value;

    /// `metadata`.
    fn metadata(&self) -> &Value {
        self.as_value().get("metadata")
    }
    /// `metadata.name`, or `""`.
    fn name(&self) -> &str {
        self.metadata()["name"].str_or_empty()
    }
    /// `metadata.namespace`, or `""`.
    fn namespace(&self) -> &str {
        self.metadata()["namespace"].str_or_empty()
    }
    /// `metadata.uid`, or `""`.
    fn uid(&self) -> &str {
        self.metadata()["uid"].str_or_empty()
    }
    /// `metadata.resourceVersion`, or `""`.
    fn resource_version(&self) -> &str {
        self.metadata()["resourceVersion"].str_or_empty()
    }
    /// `metadata.generation`, or 0.
    fn generation(&self) -> i64 {
        self.metadata()["generation"].as_i64().unwrap_or_default()
    }
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata()["labels"][key].as_str()
    }
    /// The value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()["annotations"][key].as_str()
    }
    /// `metadata.creationTimestamp`.
    fn creation_timestamp(&self) -> Option<Timestamp> {
        self.metadata()["creationTimestamp"].as_str().and_then(parse_time)
    }
    /// `metadata.deletionTimestamp`.
    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.metadata()["deletionTimestamp"].as_str().and_then(parse_time)
    }
    /// Whether deletion has begun.
    fn is_terminating(&self) -> bool {
        !self.metadata()["deletionTimestamp"].is_null()
    }
    /// The finalizers.
    fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.metadata()["finalizers"].items().iter().map(Value::str_or_empty)
    }
    /// Whether `finalizer` is among the finalizers.
    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers().any(|f| f == finalizer)
    }
    /// The owner reference with `controller: true`.
    fn controller_ref(&self) -> Option<&Value> {
        self.metadata()["ownerReferences"].items().iter().find(|owner| owner["controller"].is_true())
    }
    /// `apiVersion`, or `""`.
    fn api_version(&self) -> &str {
        self.as_value()["apiVersion"].str_or_empty()
    }
    /// `kind`, or `""`.
    fn kind(&self) -> &str {
        self.as_value()["kind"].str_or_empty()
    }
    /// Group, version and kind; `None` when `apiVersion` is malformed.
    fn gvk(&self) -> Option<GroupVersionKind> {
        Some(crate::GroupVersion::parse(self.api_version())?.with_kind(self.kind()))
    }
}

impl Meta for Value {
    fn as_value(&self) -> &Value {
        self
    }
}

/// Sets or clears a member of `metadata`: an empty value clears.
pub fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    let value = value.into();
    let metadata = object.make("metadata");
    if value.is_empty() {
        metadata.remove(field);
    } else {
        metadata.set(field, value);
    }
}

/// Takes a finalizer out; whether it was there. An empty list leaves the metadata.
pub fn remove_finalizer(object: &mut Value, finalizer: &str) -> bool {
    let Some(list) = object.at_mut("metadata.finalizers").and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|f| f.as_str() != Some(finalizer));
    let is_removed = list.len() < before;
    if list.is_empty() {
        object.remove_at("metadata.finalizers");
    }
    is_removed
}

/// Adds a finalizer at the end; whether it was missing.
pub fn add_finalizer(object: &mut Value, finalizer: &str) -> bool {
    if object.has_finalizer(finalizer) {
        return false;
    }
    object.make("metadata.finalizers").make_array().push(Value::from(finalizer));
    true
}

/// Sets an annotation.
pub fn set_annotation(object: &mut Value, key: &str, value: impl Into<Str>) {
    object.make("metadata.annotations").set(key, Value::String(value.into()));
}

/// Removes an annotation, and the map of annotations when it was the last.
pub fn remove_annotation(object: &mut Value, key: &str) {
    if let Some(annotations) = object.at_mut("metadata.annotations") {
        annotations.remove(key);
        if annotations.is_empty() {
            object.remove_at("metadata.annotations");
        }
    }
}

/// Sets a label.
pub fn set_label(object: &mut Value, key: &str, value: impl Into<Str>) {
    object.make("metadata.labels").set(key, Value::String(value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn reading_and_changing() {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": ["x"]}});
        assert_eq!(pod.gvk().unwrap().to_string(), "/v1, Kind=Pod");
        assert!(add_finalizer(&mut pod, "y") && !add_finalizer(&mut pod, "y"));
        assert!(remove_finalizer(&mut pod, "x") && remove_finalizer(&mut pod, "y") && !remove_finalizer(&mut pod, "y"));
        set_annotation(&mut pod, "k", "v");
        remove_annotation(&mut pod, "k");
        set_meta(&mut pod, "uid", "u");
        set_meta(&mut pod, "name", "");
        assert_eq!(pod.to_json_string(), r#"{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u"}}"#);
    }
}
