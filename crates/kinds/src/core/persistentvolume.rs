//! PersistentVolumes and their status.

use super::quantities::round_up_to_millis;
use crate::prepare::keep;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{Value, json};

/// The strategy of PersistentVolumes.
#[derive(Debug)]
pub struct PersistentVolume;

impl UpdateStrategy for PersistentVolume {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for PersistentVolume {
    fn set_defaults(&self, object: &mut Value) {
        object["status"].set_default("phase", "Pending");
        let spec = object.make("spec");
        spec.set_default("persistentVolumeReclaimPolicy", "Retain");
        spec.set_default("volumeMode", "Filesystem");
        set_spec_defaults(spec);
    }

    fn prepare_for_create(&self, request: RequestInfo<'_>, object: &mut Value) {
        object.set("status", json!({"phase": "Pending", "lastPhaseTransitionTime": time_value(request.now)}));
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Defaults that the spec has wherever it stands (in VolumeAttachments, too).
pub fn set_spec_defaults(spec: &mut Value) {
    /// Source, field, default.
    const TEXTS: [(&str, &str, &str); 10] = [
        ("hostPath", "type", ""),
        ("rbd", "pool", "rbd"),
        ("rbd", "user", "admin"),
        ("rbd", "keyring", "/etc/ceph/keyring"),
        ("iscsi", "iscsiInterface", "default"),
        ("azureDisk", "cachingMode", "ReadWrite"),
        ("azureDisk", "fsType", "ext4"),
        ("azureDisk", "kind", "Shared"),
        ("scaleIO", "storageMode", "ThinProvisioned"),
        ("scaleIO", "fsType", "xfs"),
    ];
    round_up_to_millis(spec.get_mut("capacity"));
    for (source, field, default) in TEXTS {
        if let Some(source) = spec.get_mut(source).filter(|source| !source.is_null()) {
            source.set_default(field, default);
        }
    }
    if let Some(disk) = spec.get_mut("azureDisk").filter(|disk| !disk.is_null()) {
        disk.set_default("readOnly", false);
    }
}

/// `persistentvolumes/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        let (status, old_status) = (object.make("status"), &old["status"]);
        let time = &status["lastPhaseTransitionTime"];
        let is_same_phase = status["phase"] == old_status["phase"];
        if is_same_phase && time.is_null() {
            status.set("lastPhaseTransitionTime", old_status["lastPhaseTransitionTime"].clone());
            if status["lastPhaseTransitionTime"].is_null() {
                status.remove("lastPhaseTransitionTime");
            }
        } else if !is_same_phase && (time.is_null() || *time == old_status["lastPhaseTransitionTime"]) {
            status.set("lastPhaseTransitionTime", time_value(request.now));
        }
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}
