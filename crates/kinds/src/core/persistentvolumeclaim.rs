//! PersistentVolumeClaims and their status.

use super::quantities::round_up_to_millis;
use crate::prepare::{StatusMetadata, StatusSubresource, anything_goes, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{Value, json};

/// The strategy of PersistentVolumeClaims.
#[derive(Debug)]
pub struct PersistentVolumeClaim;

static STATUS: StatusSubresource =
    StatusSubresource { metadata: StatusMetadata::Changes, rounds: MetadataRounds::UPDATE, validate: anything_goes };

impl UpdateStrategy for PersistentVolumeClaim {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        prepare_data_sources(object, Some(old));
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for PersistentVolumeClaim {
    fn set_defaults(&self, object: &mut Value) {
        object["status"].set_default("phase", "Pending");
        object["spec"].set_default("volumeMode", "Filesystem");
        for amounts in
            ["spec.resources.limits", "spec.resources.requests", "status.capacity", "status.allocatedResources"]
        {
            round_up_to_millis(object.at_mut(amounts));
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        object.set("status", json!({"phase": "Pending"}));
        prepare_data_sources(object, None);
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn prepare_data_sources(object: &mut Value, old: Option<&Value>) {
    let old_spec = old.map_or(&Value::NULL, |old| &old["spec"]);
    let spec = object.make("spec");
    let is_across_namespaces = !spec.at("dataSourceRef.namespace").is_empty();
    if is_across_namespaces && old_spec["dataSourceRef"].is_null() {
        spec.remove("dataSourceRef");
    }
    drop_unknown_data_source(spec, old_spec);
    normalize_data_sources(spec);
}

/// Without `dataSourceRef`, a new `dataSource` other than a claim or a snapshot is dropped.
fn drop_unknown_data_source(spec: &mut Value, old_spec: &Value) {
    let is_in_use = !old_spec["dataSource"].is_null() || !old_spec["dataSourceRef"].is_null();
    if is_in_use || !spec["dataSourceRef"].is_null() {
        return;
    }
    let source = &spec["dataSource"];
    let is_known = match (source["apiGroup"].str_or_empty(), source["kind"].str_or_empty()) {
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot") => true,
        _ => source.is_null(),
    };
    if !is_known {
        spec.remove("dataSource");
    }
}

/// Of `dataSource` and `dataSourceRef` each follows from the other.
pub fn normalize_data_sources(spec: &mut Value) {
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    let (absent, given) = match (source.is_null(), reference.is_null()) {
        (false, true) => ("dataSourceRef", source),
        (true, false) if reference["namespace"].is_empty() => ("dataSource", reference),
        _ => return,
    };
    let mut copy = given.clone();
    copy.remove("namespace");
    spec.set(absent, copy);
}
