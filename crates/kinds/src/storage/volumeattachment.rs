//! VolumeAttachments and their status.

use crate::common::checks::{csi_driver_name, dns1123_subdomain, required};
use crate::common::{At, equality, goform};
use crate::core::persistentvolume::set_spec_defaults;
use crate::core::persistentvolume::validation::{SpecOptions, validate_spec};
use crate::meta::IMMUTABLE;
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::names::range_fault;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// What an attacher tells of an attached volume may have this many bytes, keys and values together.
const METADATA_BYTES_MAX: usize = 256 * 1024;
/// The message of an error may have this many bytes; upstream tells the other limit.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The strategy of VolumeAttachments.
#[derive(Debug)]
pub struct VolumeAttachment;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Stays,
    rounds: MetadataRounds::NEW,
    validate: validate_status_update,
};

impl UpdateStrategy for VolumeAttachment {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn validate_update(&self, request: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        validate_status_update(request, object, old)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for VolumeAttachment {
    fn set_defaults(&self, object: &mut Value) {
        if let Some(spec) = object.at_mut("spec.source.inlineVolumeSpec").filter(|spec| !spec.is_null()) {
            set_spec_defaults(spec);
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "storage/v1.VolumeAttachmentStatus");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = checked(object);
        // upstream's paths of these are one name with dots, which reads the same
        let spec = object.get("spec");
        csi_driver_name(&At::new(&spec["attacher"], Path::new("spec.attacher")), &mut errors);
        let name = At::new(spec.at("source.persistentVolumeName"), Path::new("spec.source.persistentVolumeName"));
        if name.is_set() {
            dns1123_subdomain(&name, &mut errors);
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// Changes of the object and of its status are checked alike.
fn validate_status_update(_: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
    const TYPE: &str = "storage/v1.VolumeAttachmentSpec";
    let mut errors = checked(object);
    let spec = At::top(object, "spec");
    if !equality::semantic(&spec, &old["spec"], TYPE) {
        errors.push(FieldError { shown: Some(goform::compact(&spec, TYPE)), ..spec.invalid(IMMUTABLE) });
    }
    errors
}

fn checked(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    required(&spec.child("attacher"), &mut errors);
    validate_source(&spec.child("source"), &mut errors);
    dns1123_subdomain(&spec.child("nodeName"), &mut errors);
    let status = At::top(object, "status");
    let metadata = status.child("attachmentMetadata");
    let n_bytes: usize = metadata.entries().map(|(key, value)| key.len() + value.str_or_empty().len()).sum();
    if n_bytes > METADATA_BYTES_MAX {
        errors.push(metadata.too_long(METADATA_BYTES_MAX));
    }
    for field in ["attachError", "detachError"] {
        let error = status.child(field);
        let (message, code) = (error.child("message"), error.child("errorCode"));
        if message.text().len() > MESSAGE_BYTES_MAX {
            errors.push(message.too_long(METADATA_BYTES_MAX));
        }
        if code.int() < 0 {
            errors.push(code.invalid(range_fault(0, i32::MAX.into())));
        }
    }
    errors
}

fn validate_source(source: &At<'_>, errors: &mut ErrorList) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, name) = (source.child("inlineVolumeSpec"), source.child("persistentVolumeName"));
    match (inline.is_set(), name.is_set()) {
        (false, false) => errors.push(source.required(ONE)),
        (true, true) => errors.push(source.forbidden(ONE)),
        (false, true) if name.text().is_empty() => {
            errors.push(name.required("must specify non empty persistentVolumeName"));
        }
        (false, true) => {}
        (true, false) => {
            validate_spec(&inline, SpecOptions { is_inline: true, ..SpecOptions::default() }, errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    const RESOURCE: &str = "storage.k8s.io/v1/volumeattachments";

    fn base() -> Value {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}
        })
    }

    #[test]
    fn creating() {
        let out = creates(
            RESOURCE,
            &base(),
            &[
                json!({"spec": {"attacher": "", "nodeName": "", "source": {"persistentVolumeName": ""}}}),
                json!({"spec": {"attacher": "_", "source": {"persistentVolumeName": null}}}),
                json!({"spec": {"source": {"inlineVolumeSpec": {}}}}),
                json!({"spec": {"source": {"persistentVolumeName": null, "inlineVolumeSpec": {
                    "capacity": {"storage": "1"}, "claimRef": {}, "nodeAffinity": {}, "storageClassName": "c",
                    "persistentVolumeReclaimPolicy": "Delete", "volumeMode": "Block"}}}}),
                json!({"spec": {"source": {"persistentVolumeName": null, "inlineVolumeSpec": {
                    "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}}}}}),
            ],
        );
        expect![[r#"
            {"spec":{"attacher":"","nodeName":"","source":{"persistentVolumeName":""}}}
                spec.attacher: Required value
                spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName
                spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.attacher: Required value
                spec.source.persistentVolumeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            {"spec":{"attacher":"_","source":{"persistentVolumeName":null}}}
                spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName
                spec.attacher: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            {"spec":{"source":{"inlineVolumeSpec":{}}}}
                spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName
            {"spec":{"source":{"inlineVolumeSpec":{"capacity":{"storage":"1"},"claimRef":{},"nodeAffinity":{},"persistentVolumeReclaimPolicy":"Delete","storageClassName":"c","volumeMode":"Block"},"persistentVolumeName":null}}}
                spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline volumes
                spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes
                spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes
                spec.source.inlineVolumeSpec.accessModes: Required value
                spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes
                spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes
                spec.source.inlineVolumeSpec: Required value: must specify a volume type
                spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes
                spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes
            {"spec":{"source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}},"persistentVolumeName":null}}}
        "#]].assert_eq(&out);
    }

    #[test]
    fn updating() {
        let out = updates(RESOURCE, "", &base(), &[json!({"spec": {"nodeName": "x"}})]);
        expect![[r#"
            {"spec":{"nodeName":"x"}}
                spec: Invalid value: {"Attacher":"a","Source":{"PersistentVolumeName":"p","InlineVolumeSpec":null},"NodeName":"x"}: field is immutable
        "#]].assert_eq(&out);
        let status = json!({"status": {"attachError": {"errorCode": -1, "message": ("m".repeat(1025))},
            "attachmentMetadata": {"k": ("v".repeat(256 * 1024))}}});
        let out = updates(RESOURCE, "status", &base(), &[status]);
        let told: Vec<&str> = out.lines().skip(1).map(str::trim).collect();
        expect![[r#"
            status.attachmentMetadata: Too long: may not be more than 262144 bytes
            status.attachError.message: Too long: may not be more than 262144 bytes
            status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"#]]
        .assert_eq(&told.join("\n"));
    }
}
