//! The sources of volumes, one rule each. Persistent volumes have many of the same sources.
//!
//! Not here: projected volumes and the downward API, which are `projected`.

use super::container_parts::validate_pull_policy;
use super::options::PodOptions;
use super::projected::{validate_downward_api, validate_key_to_path, validate_projected};
use super::security::{optional_one_of, validate_descending_path, validate_no_backsteps};
use crate::common::checks::{csi_driver_name, required};
use crate::common::claim::{ClaimOptions, validate_claim_template};
use crate::common::goform::compact;
use crate::common::{At, dns1123_label, push_faults};
use pintle_apimachinery::names::{self, range_fault};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// What upstream says of a bad file mode.
pub const FILE_MODE_FAULT: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// A rule of one kind of source.
type SourceRule = fn(&At<'_>, &PodOptions, &mut ErrorList);

/// The sources of a pod's volume in upstream's order: member, what messages call it, rule.
pub(super) const SOURCES: &[(&str, &str, SourceRule)] = &[
    ("emptyDir", "emptyDir", |at, _, errors| validate_empty_dir(at, errors)),
    ("hostPath", "hostPath", |at, _, errors| validate_host_path(at, errors)),
    ("gitRepo", "gitRepo", |at, _, errors| validate_git_repo(at, errors)),
    ("gcePersistentDisk", "persistentDisk", |at, _, errors| validate_gce_disk(at, errors)),
    ("awsElasticBlockStore", "awsElasticBlockStore", |at, _, errors| validate_aws_store(at, errors)),
    ("secret", "secret", |at, _, errors| validate_keys(at, "secretName", errors)),
    ("nfs", "nfs", |at, _, errors| validate_nfs(at, errors)),
    ("iscsi", "iscsi", |at, _, errors| validate_iscsi(at, errors)),
    ("glusterfs", "glusterfs", |at, _, errors| require(at, &["endpoints", "path"], errors)),
    ("flocker", "flocker", |at, _, errors| validate_flocker(at, errors)),
    ("persistentVolumeClaim", "persistentVolumeClaim", |at, _, errors| require(at, &["claimName"], errors)),
    ("rbd", "rbd", |at, _, errors| validate_rbd(at, errors)),
    ("cinder", "cinder", |at, _, errors| validate_cinder(at, errors)),
    ("cephfs", "cephfs", |at, _, errors| validate_monitors(at, errors)),
    ("quobyte", "quobyte", |at, _, errors| validate_quobyte(at, errors)),
    ("downwardAPI", "downwardAPI", |at, _, errors| validate_downward_api(at, errors)),
    ("fc", "fc", |at, _, errors| validate_fc(at, errors)),
    ("flexVolume", "flexVolume", |at, _, errors| validate_flex(at, errors)),
    ("configMap", "configMap", |at, _, errors| validate_keys(at, "name", errors)),
    ("azureFile", "azureFile", |at, _, errors| require(at, &["secretName", "shareName"], errors)),
    ("vsphereVolume", "vsphereVolume", |at, _, errors| require(at, &["volumePath"], errors)),
    ("photonPersistentDisk", "photonPersistentDisk", |at, _, errors| require(at, &["pdID"], errors)),
    ("portworxVolume", "portworxVolume", |at, _, errors| require(at, &["volumeID"], errors)),
    ("azureDisk", "azureDisk", |at, _, errors| validate_azure_disk(at, errors)),
    ("storageos", "storageos", |at, _, errors| validate_storage_os(at, errors)),
    ("projected", "projected", validate_projected),
    ("scaleIO", "scaleIO", |at, _, errors| require(at, &["gateway", "system", "volumeName"], errors)),
    ("csi", "csi", |at, _, errors| validate_csi(at, errors)),
    ("ephemeral", "ephemeral", |at, _, errors| validate_ephemeral(at, errors)),
    ("image", "image", validate_image),
];

/// Fields that must not be empty.
pub fn require(at: &At<'_>, fields: &[&str], errors: &mut ErrorList) {
    for field in fields {
        required(&at.child(field), errors);
    }
}

/// A number of an integer field that must lie between 0 and 255.
fn byte_sized(at: &At<'_>, lowest_told: i64, errors: &mut ErrorList) {
    if !(0..=255).contains(&at.int()) {
        errors.push(at.invalid_int(range_fault(lowest_told, 255)));
    }
}

/// A file mode, if it is set.
pub(super) fn validate_mode(at: &At<'_>, errors: &mut ErrorList) {
    if at.is_set() && !(0..=0o777).contains(&at.int()) {
        errors.push(at.invalid_int(FILE_MODE_FAULT));
    }
}

fn validate_empty_dir(at: &At<'_>, errors: &mut ErrorList) {
    let limit = at.child("sizeLimit");
    if limit.text().starts_with('-') {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

/// `hostPath`.
pub fn validate_host_path(at: &At<'_>, errors: &mut ErrorList) {
    let path = at.child("path");
    if required(&path, errors) {
        validate_no_backsteps(&path, errors);
        const TYPES: &[&str] =
            &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
        optional_one_of(&at.child("type"), TYPES, errors);
    }
}

fn validate_git_repo(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("repository"), errors);
    validate_descending_path(&at.child("directory"), errors);
}

/// `gcePersistentDisk`.
pub fn validate_gce_disk(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("pdName"), errors);
    byte_sized(&at.child("partition"), 1, errors);
}

/// `awsElasticBlockStore`.
pub fn validate_aws_store(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("volumeID"), errors);
    byte_sized(&at.child("partition"), 1, errors);
}

/// `secret` and `configMap`, whose name is in the field `name`.
fn validate_keys(at: &At<'_>, name: &str, errors: &mut ErrorList) {
    required(&at.child(name), errors);
    validate_mode(&at.child("defaultMode"), errors);
    at.child("items").each().for_each(|item| validate_key_to_path(&item, errors));
}

/// `nfs`.
pub fn validate_nfs(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("server"), errors);
    let path = at.child("path");
    required(&path, errors);
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must be an absolute path"));
    }
}

fn validate_iscsi(at: &At<'_>, errors: &mut ErrorList) {
    validate_iscsi_target(at, errors);
    if (at["chapAuthDiscovery"].is_true() || at["chapAuthSession"].is_true()) && !at.child("secretRef").is_set() {
        errors.push(at.child("secretRef").required(""));
    }
    validate_iscsi_initiator(at, errors);
}

/// The part of `iscsi` before its secret.
fn validate_iscsi_target(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("targetPortal"), errors);
    let iqn = at.child("iqn");
    if required(&iqn, errors) {
        validate_iscsi_name(&iqn, INITIATOR_FORM, errors);
    }
    byte_sized(&at.child("lun"), 0, errors);
}

/// The part of `iscsi` after its secret.
fn validate_iscsi_initiator(at: &At<'_>, errors: &mut ErrorList) {
    let name = at.child_called("initiatorName", "initiatorname");
    if name.is_set() {
        validate_iscsi_name(&name, INITIATOR_FORM, errors);
    }
}

/// What upstream says of a pod's iSCSI name that begins with none of these.
const INITIATOR_FORM: &str = "must be valid format starting with iqn, eui, or naa";

/// An iSCSI name. `otherwise` is said of one that is of no known form at all.
pub fn validate_iscsi_name(at: &At<'_>, otherwise: &str, errors: &mut ErrorList) {
    let name = at.text();
    let is_well_formed = match name.get(..3) {
        Some("iqn") => is_iqn(name),
        Some("eui") => is_numbered(name, 16),
        Some("naa") => is_numbered(name, 32),
        _ => {
            errors.push(at.invalid(otherwise));
            return;
        }
    };
    if !is_well_formed {
        errors.push(at.invalid("must be valid format"));
    }
}

/// `eui.` and so many letters and digits; any character may stand for the dot.
fn is_numbered(name: &str, n_digits: usize) -> bool {
    let mut chars = name.chars().skip(3);
    chars.next().is_some_and(|c| c != '\n')
        && name.chars().count() == n_digits + 4
        && chars.all(|c| c.is_ascii_alphanumeric())
}

/// `iqn.YYYY-MM.` and a name and `:` and more. As upstream does, a name of this form anywhere up to the end counts.
fn is_iqn(name: &str) -> bool {
    name.match_indices("iqn.").any(|(at, _)| is_whole_iqn(&name[at + 4..]))
}

fn is_whole_iqn(rest: &str) -> bool {
    let bytes = rest.as_bytes();
    let is_dated = bytes.len() > 8
        && bytes[..8].iter().enumerate().all(|(idx, b)| match idx {
            4 => *b == b'-',
            7 => *b == b'.',
            _ => b.is_ascii_digit(),
        });
    if !is_dated {
        return false;
    }
    let rest = &rest[8..];
    let Some((authority, unique)) = rest.split_once(':') else { return false };
    !authority.is_empty()
        && authority.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
        && !unique.is_empty()
        && !unique.contains([',', ';', '*', '&', '$', '|'])
        && !unique.bytes().any(|b| matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' '))
}

/// `flocker`.
pub fn validate_flocker(at: &At<'_>, errors: &mut ErrorList) {
    let (name, uuid) = (at.child("datasetName"), at.child("datasetUUID"));
    match (name.text().is_empty(), uuid.text().is_empty()) {
        (true, true) => errors.push(at.required("one of datasetName and datasetUUID is required")),
        (false, false) => errors
            .push(at.invalid_showing("resource", "datasetName and datasetUUID can not be specified simultaneously")),
        _ => {}
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

/// Sources that name the monitors of a Ceph cluster.
pub fn validate_monitors(at: &At<'_>, errors: &mut ErrorList) {
    let monitors = at.child("monitors");
    if monitors.items().is_empty() {
        errors.push(monitors.required(""));
    }
}

/// `rbd`.
pub fn validate_rbd(at: &At<'_>, errors: &mut ErrorList) {
    validate_monitors(at, errors);
    required(&at.child("image"), errors);
}

/// A secret by name, if it is set.
fn validate_secret_name(at: &At<'_>, errors: &mut ErrorList) {
    let secret = at.child("secretRef");
    if secret.is_set() {
        required(&secret.child("name"), errors);
    }
}

fn validate_cinder(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("volumeID"), errors);
    validate_secret_name(at, errors);
}

/// `quobyte`.
pub fn validate_quobyte(at: &At<'_>, errors: &mut ErrorList) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (at.child("registry"), at.child("tenant"));
    if registry.text().is_empty() {
        errors.push(registry.required(PAIRS));
    } else if tenant.text().len() >= 65 {
        errors.push(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        let n_bad = registry.text().split(',').filter(|pair| !is_host_port(pair)).count();
        errors.extend((0..n_bad).map(|_| registry.invalid(PAIRS)));
    }
    required(&at.child("volume"), errors);
}

/// Whether Go's `net.SplitHostPort` takes the text apart.
fn is_host_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let has_no_brackets = |s: &str| !s.contains(['[', ']']);
    match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(has_no_brackets) && has_no_brackets(port),
        None => !host.contains(':') && has_no_brackets(host) && has_no_brackets(port),
    }
}

/// `fc`.
pub fn validate_fc(at: &At<'_>, errors: &mut ErrorList) {
    let (targets, wwids, lun) = (at.child("targetWWNs"), at.child("wwids"), at.child("lun"));
    let (has_targets, has_wwids) = (!targets.items().is_empty(), !wwids.items().is_empty());
    if !has_targets && !has_wwids {
        errors.push(targets.required("must specify either targetWWNs or wwids, but not both"));
    }
    if has_targets && has_wwids {
        let shown = compact(targets.value(), "[]string");
        let rule = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError { shown: Some(shown), ..targets.invalid(rule) });
    }
    if has_targets {
        if lun.is_set() {
            byte_sized(&lun, 0, errors);
        } else {
            errors.push(lun.required("lun is required if targetWWNs is specified"));
        }
    }
}

/// `flexVolume`.
pub fn validate_flex(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("driver"), errors);
    for (key, option) in at.child("options").each_entry() {
        let namespace = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            errors.push(option.invalid_showing(key, "kubernetes.io and k8s.io namespaces are reserved"));
        }
    }
}

/// `azureDisk`.
pub fn validate_azure_disk(at: &At<'_>, errors: &mut ErrorList) {
    require(at, &["diskName"], errors);
    let (uri, kind) = (at.child("diskURI"), at.child("kind"));
    required(&uri, errors);
    optional_one_of(&at.child("cachingMode"), &["None", "ReadOnly", "ReadWrite"], errors);
    optional_one_of(&kind, &["Dedicated", "Managed", "Shared"], errors);
    let (prefix, form) = match kind.as_str() {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
    };
    if !uri.text().starts_with(prefix) {
        errors.push(uri.not_supported(&[form]));
    }
}

fn validate_storage_os(at: &At<'_>, errors: &mut ErrorList) {
    let (name, namespace) = (at.child("volumeName"), at.child("volumeNamespace"));
    if required(&name, errors) {
        dns1123_label(&name, errors);
    }
    if !namespace.text().is_empty() {
        dns1123_label(&namespace, errors);
    }
    validate_secret_name(at, errors);
}

fn validate_csi(at: &At<'_>, errors: &mut ErrorList) {
    csi_driver_name(&at.child("driver"), errors);
    let secret = at.child("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.child("name");
        if required(&name, errors) {
            // upstream leaves the reference out of the path
            let called = At::new(name.value(), at.path().child("name"));
            push_faults(&called, names::dns1123_subdomain(name.text()), errors);
        }
    }
}

fn validate_ephemeral(at: &At<'_>, errors: &mut ErrorList) {
    let template = at.child("volumeClaimTemplate");
    if template.is_set() {
        validate_claim_template(&template, ClaimOptions::of_template(&Value::NULL), errors);
    } else {
        errors.push(template.required(""));
    }
}

fn validate_image(at: &At<'_>, options: &PodOptions, errors: &mut ErrorList) {
    if options.is_pod {
        required(&at.child("reference"), errors);
    }
    validate_pull_policy(&at.child("pullPolicy"), errors);
}
