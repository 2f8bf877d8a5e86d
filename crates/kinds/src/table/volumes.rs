//! The cells of volumes, storage drivers and devices.

use super::format::{Subject, join_strings, or};
use pintle_apimachinery::Value;
use pintle_apimachinery::meta::Meta;

/// Access modes and their short names, in the order in which they show.
const ACCESS_MODES: &[(&str, &str)] =
    &[("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];

fn access_modes(modes: &Value) -> String {
    let has = |mode: &str| modes.items().iter().any(|m| m.str_or_empty() == mode);
    let short: Vec<&str> = ACCESS_MODES.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

/// The class, which an older annotation may give.
fn storage_class_name(s: &Subject<'_>) -> Value {
    let annotation = s.object.annotation("volume.beta.kubernetes.io/storage-class");
    Value::from(annotation.unwrap_or_else(|| s.str("spec.storageClassName")))
}

fn phase(s: &Subject<'_>) -> Value {
    if s.is_terminating() { Value::from("Terminating") } else { s.text("status.phase") }
}

fn storage(capacity: &Value) -> &str {
    capacity["storage"].as_str().unwrap_or("0")
}

pub(super) fn persistent_volume(s: &Subject<'_>) -> Vec<Value> {
    let claim = s.at("spec.claimRef");
    let claim = if claim.is_null() {
        String::new()
    } else {
        format!("{}/{}", claim["namespace"].str_or_empty(), claim["name"].str_or_empty())
    };
    vec![
        s.name(),
        Value::from(storage(s.at("spec.capacity"))),
        Value::from(access_modes(s.at("spec.accessModes"))),
        s.text("spec.persistentVolumeReclaimPolicy"),
        phase(s),
        Value::from(claim),
        storage_class_name(s),
        s.text_or("spec.volumeAttributesClassName", "<unset>"),
        s.text("status.reason"),
        s.age(),
        s.text_or("spec.volumeMode", "<unset>"),
    ]
}

pub(super) fn persistent_volume_claim(s: &Subject<'_>) -> Vec<Value> {
    let is_bound = !s.str("spec.volumeName").is_empty();
    let (capacity, modes) = if is_bound {
        (storage(s.at("status.capacity")), access_modes(s.at("status.accessModes")))
    } else {
        ("", String::new())
    };
    vec![
        s.name(),
        phase(s),
        s.text("spec.volumeName"),
        Value::from(capacity),
        Value::from(modes),
        storage_class_name(s),
        s.text_or("spec.volumeAttributesClassName", "<unset>"),
        s.age(),
        s.text_or("spec.volumeMode", "<unset>"),
    ]
}

pub(super) fn storage_class(s: &Subject<'_>) -> Vec<Value> {
    let is_default =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|key| s.object.annotation(key) == Some("true"));
    let mark = if is_default { " (default)" } else { "" };
    vec![
        Value::from(format!("{}{mark}", s.object.name())),
        s.text("provisioner"),
        s.text_or("reclaimPolicy", "Delete"),
        s.text_or("volumeBindingMode", "Immediate"),
        s.bool_or("allowVolumeExpansion", false),
        s.age(),
    ]
}

pub(super) fn volume_attachment(s: &Subject<'_>) -> Vec<Value> {
    vec![
        s.name(),
        s.text("spec.attacher"),
        s.text("spec.source.persistentVolumeName"),
        s.text("spec.nodeName"),
        s.bool_or("status.attached", false),
        s.age(),
    ]
}

pub(super) fn volume_attributes_class(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.text("driverName"), s.age()]
}

pub(super) fn csi_driver(s: &Subject<'_>) -> Vec<Value> {
    let requests = s.at("spec.tokenRequests");
    let audiences: Vec<&str> = requests.items().iter().map(|r| r["audience"].str_or_empty()).collect();
    let audiences = if requests.is_null() { "<unset>".to_owned() } else { audiences.join(",") };
    let modes = join_strings(s.at("spec.volumeLifecycleModes"));
    vec![
        s.name(),
        s.bool_or("spec.attachRequired", true),
        s.bool_or("spec.podInfoOnMount", false),
        s.bool_or("spec.storageCapacity", false),
        Value::from(audiences),
        s.bool_or("spec.requiresRepublish", false),
        Value::from(or(&modes, "<none>")),
        s.age(),
    ]
}

pub(super) fn csi_node(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), Value::Int(s.count("spec.drivers")), s.age()]
}

pub(super) fn resource_claim(s: &Subject<'_>) -> Vec<Value> {
    let is_allocated = !s.at("status.allocation").is_null();
    let mut states = Vec::new();
    if s.is_terminating() {
        states.push("deleted");
    }
    if is_allocated {
        states.push("allocated");
        if s.count("status.reservedFor") > 0 {
            states.push("reserved");
        }
    } else if !s.is_terminating() {
        states.push("pending");
    }
    vec![s.name(), Value::from(states.join(",")), s.age()]
}

pub(super) fn resource_slice(s: &Subject<'_>) -> Vec<Value> {
    vec![s.name(), s.text("spec.nodeName"), s.text("spec.driver"), s.text("spec.pool.name"), s.age()]
}
