//! PersistentVolumes and their status.

mod sources;
pub mod validation;

use self::validation::{SpecOptions, validate_spec};
use super::quantities::round_up_to_millis;
use crate::common::diff::unified;
use crate::common::node_labels::warn_of_node_selector_term;
use crate::common::{At, equality, goform, immutable};
use crate::meta::IMMUTABLE;
use crate::prepare::keep;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json, names};

/// Named the class before `spec.storageClassName`.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// Held mount options before `spec.mountOptions`.
const MOUNT_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";
/// The sources that take mount options from the annotation.
const MOUNTABLE: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];
/// Node labels that may be replaced by their newer names.
const RENAMED_LABELS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];
/// Sources that do nothing any more: member, what warnings call it, since when.
const GONE: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The strategy of PersistentVolumes.
#[derive(Debug)]
pub struct PersistentVolume;

impl UpdateStrategy for PersistentVolume {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let terms = old.at("spec.nodeAffinity.required.nodeSelectorTerms").items();
        let options = SpecOptions {
            name: object.name(),
            any_label_value: terms.iter().any(has_invalid_value),
            ..SpecOptions::default()
        };
        let spec = At::top(object, "spec");
        validate_spec(&spec, options, &mut errors);
        validate_mount_options(object, &mut errors);
        // upstream looks twice
        validate_spec(&spec, options, &mut errors);
        validate_change(&spec, &old["spec"], &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds { as_new: 2, as_update: 0, checks_finalizers: true }
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

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let options = SpecOptions { name: object.name(), ..SpecOptions::default() };
        validate_spec(&At::top(object, "spec"), options, &mut errors);
        validate_mount_options(object, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn validate_mount_options(object: &Value, errors: &mut ErrorList) {
    let is_mountable = MOUNTABLE.iter().any(|source| !object["spec"][*source].is_null());
    if !is_mountable && object.annotation(MOUNT_ANNOTATION).is_some() {
        let metadata = Path::new("metadata");
        let annotations = metadata.child("annotations");
        let rule = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(&annotations.child(MOUNT_ANNOTATION), rule));
    }
}

/// Whether a term of a node selector has a value that is no label value.
fn has_invalid_value(term: &Value) -> bool {
    let expressions = term["matchExpressions"].items();
    let mut values = expressions.iter().flat_map(|expression| expression["values"].items());
    values.any(|value| !names::label_value(value.str_or_empty()).is_empty())
}

/// What may not change.
fn validate_change(spec: &At<'_>, old: &Value, errors: &mut ErrorList) {
    const SOURCE: &str = "core/v1.PersistentVolumeSource";
    let mut source = Value::clone(spec);
    if !source["csi"].is_null() && !old["csi"].is_null() && old["csi"]["controllerExpandSecretRef"].is_null() {
        // a volume may learn this later
        source["csi"].remove("controllerExpandSecretRef");
    }
    if !equality::semantic(&source, old, SOURCE) {
        let changes = unified(&goform::pretty(old, SOURCE), &goform::pretty(&source, SOURCE));
        let rule = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        errors.push(spec.child("persistentvolumesource").forbidden(rule));
    }
    // upstream leaves `spec` out of these two
    immutable(&At::new(&spec.value()["volumeMode"], Path::new("volumeMode")), &old["volumeMode"], "", errors);
    let affinity = At::new(&spec.value()["nodeAffinity"], Path::new("nodeAffinity"));
    if !old["nodeAffinity"].is_null() && !is_same_affinity(&affinity, &old["nodeAffinity"]) {
        let shown = goform::compact(&affinity, "*core/v1.VolumeNodeAffinity");
        let error = affinity.invalid(format!("{IMMUTABLE}, except for updating from beta label to GA"));
        errors.push(FieldError { shown: Some(shown), ..error });
    }
    let class = spec.child("volumeAttributesClassName");
    if !class.is_set() && !old["volumeAttributesClassName"].is_null() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// Whether the affinity stayed the same but for labels that got their newer names.
fn is_same_affinity(new: &Value, old: &Value) -> bool {
    let mut old = old.clone();
    let new_terms = new.at("required.nodeSelectorTerms").items();
    let terms = old.at_mut("required.nodeSelectorTerms").map_or(&mut [][..], Value::items_mut);
    for (new_term, term) in new_terms.iter().zip(terms) {
        for list in ["matchExpressions", "matchFields"] {
            let requirements = term.get_mut(list).map_or(&mut [][..], Value::items_mut);
            for (new_requirement, requirement) in new_term[list].items().iter().zip(requirements) {
                let names = (requirement["key"].str_or_empty(), new_requirement["key"].str_or_empty());
                if RENAMED_LABELS.contains(&names) {
                    requirement.set("key", new_requirement["key"].clone());
                }
            }
        }
    }
    equality::semantic(new, &old, "core/v1.VolumeNodeAffinity")
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (annotation, message) in [
        (CLASS_ANNOTATION, r#"deprecated since v1.8; use "storageClassName" attribute instead"#),
        (MOUNT_ANNOTATION, r#"deprecated since v1.31; use "mountOptions" attribute instead"#),
    ] {
        if object.annotation(annotation).is_some() {
            warnings.push(format!("metadata.annotations[{annotation}]: {message}"));
        }
    }
    let spec = At::top(object, "spec");
    if spec["persistentVolumeReclaimPolicy"].as_str() == Some("Recycle") {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = spec.descend("nodeAffinity.required.nodeSelectorTerms");
    terms.each().for_each(|term| warn_of_node_selector_term(&term, false, &mut warnings));
    for (source, told, message) in GONE {
        if !spec[source].is_null() {
            warnings.push(format!("spec.{told}: {message}"));
        }
    }
    warnings
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

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    fn base() -> Value {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        })
    }

    fn spec(change: Value) -> Value {
        let mut spec = json!({"hostPath": {"path": "/x"}});
        change.entries().for_each(|(key, member)| spec.set(key, member.clone()));
        json!({"spec": spec})
    }

    #[test]
    fn creating() {
        let out = creates(
            "v1/persistentvolumes",
            &base(),
            &[
                json!({}),
                spec(json!({})),
                spec(json!({"accessModes": [], "capacity": {}})),
                spec(json!({"accessModes": ["x", "ReadWriteOncePod", "ReadOnlyMany"],
                    "capacity": {"storage": "0", "cpu": "-1"}, "persistentVolumeReclaimPolicy": "x"})),
                spec(json!({"nodeAffinity": {}, "storageClassName": "A", "volumeMode": "x",
                    "volumeAttributesClassName": ""})),
                spec(json!({"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle",
                    "volumeAttributesClassName": "A"})),
                spec(json!({"gcePersistentDisk": {"pdName": ""}, "cephfs": {}, "flexVolume": {}, "csi": {}})),
                json!({"spec": {"gcePersistentDisk": {}}}),
                json!({"spec": {"local": {"path": "../x"}}}),
                json!({"spec": {"csi": {"driver": "_", "volumeHandle": "", "nodePublishSecretRef": {},
                    "nodeExpandSecretRef": {"name": "A", "namespace": "a.b"}}}}),
                json!({"spec": {"iscsi": {"targetPortal": ("1".repeat(64)), "iqn": "x", "lun": 256,
                    "chapAuthSession": true, "initiatorName": "iqn."}}}),
                json!({"spec": {"cinder": {"volumeID": "", "secretRef": {}}}}),
                json!({"spec": {"glusterfs": {"endpoints": "e", "path": "p", "endpointsNamespace": ""}}}),
                json!({"spec": {"azureFile": {"secretName": "", "shareName": "", "secretNamespace": ""}}}),
                json!({"spec": {"storageos": {"volumeName": "A", "volumeNamespace": "A", "secretRef": {}}}}),
                json!({"metadata": {"annotations": {(super::MOUNT_ANNOTATION): "x"}}, "spec": {"hostPath": {}}}),
                json!({"metadata": {"annotations": {(super::MOUNT_ANNOTATION): "x", (super::CLASS_ANNOTATION): "x"}},
                    "spec": {"rbd": {"monitors": ["m"], "image": "i"}, "nodeAffinity": {"required": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "beta.kubernetes.io/os",
                            "operator": "Exists"}]}]}}}}),
            ],
        );
        expect![[r#"
            {}
                spec: Required value: must specify a volume type
            {"spec":{"hostPath":{"path":"/x"}}}
            {"spec":{"accessModes":[],"capacity":{},"hostPath":{"path":"/x"}}}
                spec.accessModes: Required value
            {"spec":{"accessModes":["x","ReadWriteOncePod","ReadOnlyMany"],"capacity":{"cpu":"-1","storage":"0"},"hostPath":{"path":"/x"},"persistentVolumeReclaimPolicy":"x"}}
                spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
                spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
                spec.capacity: Unsupported value: {"cpu":"-1","storage":"0"}: supported values: "storage"
                spec.capacity[cpu]: Invalid value: -1: must be a valid resource quantity
                spec.capacity[cpu]: Invalid value: "-1": must be greater than zero
                spec.capacity[storage]: Invalid value: "0": must be greater than zero
                spec.persistentVolumeReclaimPolicy: Unsupported value: "x": supported values: "Delete", "Recycle", "Retain"
            {"spec":{"hostPath":{"path":"/x"},"nodeAffinity":{},"storageClassName":"A","volumeAttributesClassName":"","volumeMode":"x"}}
                spec.nodeAffinity.required: Required value: must specify required node constraints
                spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.volumeMode: Unsupported value: "x": supported values: "Block", "Filesystem"
                spec.volumeAttributesClassName: Required value: an empty string is disallowed
                spec.csi: Required value: has to be specified when using volumeAttributesClassName
            {"spec":{"hostPath":{"path":"/"},"persistentVolumeReclaimPolicy":"Recycle","volumeAttributesClassName":"A"}}
                spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'
                spec.volumeAttributesClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.csi: Required value: has to be specified when using volumeAttributesClassName
            {"spec":{"cephfs":{},"csi":{},"flexVolume":{},"gcePersistentDisk":{"pdName":""},"hostPath":{"path":"/x"}}}
                spec.gcePersistentDisk: Forbidden: may not specify more than 1 volume type
                spec.cephFS: Forbidden: may not specify more than 1 volume type
                spec.flexVolume.driver: Required value
                spec.csi: Forbidden: may not specify more than 1 volume type
            {"spec":{"gcePersistentDisk":{}}}
                spec.persistentDisk.pdName: Required value
            {"spec":{"local":{"path":"../x"}}}
                spec.local.path: Invalid value: "../x": must not contain '..'
                spec.nodeAffinity: Required value: Local volume requires node affinity
            {"spec":{"csi":{"driver":"_","nodeExpandSecretRef":{"name":"A","namespace":"a.b"},"nodePublishSecretRef":{},"volumeHandle":""}}}
                spec.csi.driver: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.csi.volumeHandle: Required value
                spec.csi.nodePublishSecretRef.name: Required value
                spec.csi.nodePublishSecretRef.namespace: Required value
                spec.csi.nodeExpandSecretRef.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.csi.nodeExpandSecretRef.namespace: Invalid value: "a.b": must not contain dots
            {"spec":{"iscsi":{"chapAuthSession":true,"initiatorName":"iqn.","iqn":"x","lun":256,"targetPortal":"1111111111111111111111111111111111111111111111111111111111111111"}}}
                spec.iscsi.targetportal: Invalid value: "1111111111111111111111111111111111111111111111111111111111111111": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.
                spec.iscsi.iqn: Invalid value: "x": must be valid format
                spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive
                spec.iscsi.secretRef: Required value
                spec.iscsi.initiatorname: Invalid value: "iqn.": must be valid format
            {"spec":{"cinder":{"secretRef":{},"volumeID":""}}}
                spec.cinder.volumeID: Required value
                spec.cinder.secretRef.name: Required value
                spec.cinder.secretRef.namespace: Required value
            {"spec":{"glusterfs":{"endpoints":"e","endpointsNamespace":"","path":"p"}}}
                spec.glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace is set, it must be a valid namespace name
            {"spec":{"azureFile":{"secretName":"","secretNamespace":"","shareName":""}}}
                spec.azureFile.secretName: Required value
                spec.azureFile.shareName: Required value
                spec.azureFile.secretNamespace: Required value
            {"spec":{"storageos":{"secretRef":{},"volumeName":"A","volumeNamespace":"A"}}}
                spec.storageos.volumeName: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.storageos.volumeNamespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                spec.storageos.secretRef.name: Required value
                spec.storageos.secretRef.namespace: Required value
            {"metadata":{"annotations":{"volume.beta.kubernetes.io/mount-options":"x"}},"spec":{"hostPath":{}}}
                spec.hostPath.path: Required value
                metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this volume type
            {"metadata":{"annotations":{"volume.beta.kubernetes.io/mount-options":"x","volume.beta.kubernetes.io/storage-class":"x"}},"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"beta.kubernetes.io/os","operator":"Exists"}]}]}},"rbd":{"image":"i","monitors":["m"]}}}
                warning: metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead
                warning: metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead
                warning: spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead
                warning: spec.rbd: deprecated in v1.28, non-functional in v1.31+
        "#]].assert_eq(&out);
    }

    #[test]
    fn updating() {
        let affinity = |key: &str, value: &str| {
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": key, "operator": "In", "values": [value]}]}]}})
        };
        let mut base = base();
        base["spec"].set("csi", json!({"driver": "d", "volumeHandle": "h"}));
        base["spec"].set("volumeAttributesClassName", "c");
        base["spec"].set("nodeAffinity", affinity("beta.kubernetes.io/os", "a"));
        let out = updates(
            "v1/persistentvolumes",
            "",
            &base,
            &[
                json!({"spec": {"csi": {"controllerExpandSecretRef": {"name": "a", "namespace": "b"}}}}),
                json!({"spec": {"csi": {"volumeHandle": "", "readOnly": true}}}),
                json!({"spec": {"volumeMode": "Block", "volumeAttributesClassName": null}}),
                json!({"spec": {"nodeAffinity": affinity("kubernetes.io/os", "a")}}),
                json!({"spec": {"nodeAffinity": affinity("kubernetes.io/os", "b")}}),
                json!({"spec": {"nodeAffinity": null}}),
            ],
        );
        expect![[r#"
            {"spec":{"csi":{"controllerExpandSecretRef":{"name":"a","namespace":"b"}}}}
                warning: spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead
            {"spec":{"csi":{"readOnly":true,"volumeHandle":""}}}
                spec.csi.volumeHandle: Required value
                spec.csi.volumeHandle: Required value
                spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation
            @@ -22,8 +22,8 @@
              "StorageOS": null,
              "CSI": {
               "Driver": "d",
            -  "VolumeHandle": "h",
            -  "ReadOnly": false,
            +  "VolumeHandle": "",
            +  "ReadOnly": true,
               "FSType": "",
               "VolumeAttributes": null,
               "ControllerPublishSecretRef": null,

            {"spec":{"volumeAttributesClassName":null,"volumeMode":"Block"}}
                volumeMode: Invalid value: "Block": field is immutable
                spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden
            {"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["a"]}]}]}}}}
            {"spec":{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["b"]}]}]}}}}
                nodeAffinity: Invalid value: {"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"kubernetes.io/os","Operator":"In","Values":["b"]}],"MatchFields":null}]}}: field is immutable, except for updating from beta label to GA
            {"spec":{"nodeAffinity":null}}
                nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA
        "#]].assert_eq(&out);
    }
}
