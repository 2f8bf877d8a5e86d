//! The sources of persistent volumes. Where they are like those of pods' volumes, the rules are theirs.

use crate::common::At;
use crate::common::checks::{csi_driver_name, dns1123_label, dns1123_subdomain, required};
use crate::core::pod::validate_no_backsteps;
use crate::core::pod::volume_sources::{
    require, validate_aws_store, validate_azure_disk, validate_fc, validate_flex, validate_flocker, validate_gce_disk,
    validate_host_path, validate_iscsi_name, validate_monitors, validate_nfs, validate_quobyte, validate_rbd,
};
use pintle_apimachinery::{ErrorList, names};

/// The volume that a source belongs to.
pub(super) struct Volume<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Its spec.
    pub(super) spec: &'a At<'a>,
}

/// A kind of source.
pub(super) struct Source {
    /// The member of the spec.
    pub(super) member: &'static str,
    /// What messages about it call it.
    pub(super) told: &'static str,
    /// What the message calls it that refuses it beside another.
    pub(super) told_twice: &'static str,
    /// Whether it may not stand beside another.
    pub(super) is_exclusive: bool,
    pub(super) validate: fn(&At<'_>, &Volume<'_>, &mut ErrorList),
}

const fn source(member: &'static str, validate: fn(&At<'_>, &Volume<'_>, &mut ErrorList)) -> Source {
    Source { member, told: member, told_twice: member, is_exclusive: true, validate }
}

/// The sources in upstream's order.
pub(super) const SOURCES: &[Source] = &[
    source("hostPath", |at, _, errors| validate_host_path(at, errors)),
    Source { told: "persistentDisk", ..source("gcePersistentDisk", |at, _, errors| validate_gce_disk(at, errors)) },
    source("awsElasticBlockStore", |at, _, errors| validate_aws_store(at, errors)),
    source("glusterfs", |at, _, errors| validate_glusterfs(at, errors)),
    source("flocker", |at, _, errors| validate_flocker(at, errors)),
    source("nfs", |at, _, errors| validate_nfs(at, errors)),
    source("rbd", |at, _, errors| validate_rbd(at, errors)),
    source("quobyte", |at, _, errors| validate_quobyte(at, errors)),
    Source { told_twice: "cephFS", ..source("cephfs", |at, _, errors| validate_monitors(at, errors)) },
    source("iscsi", validate_iscsi),
    source("cinder", |at, _, errors| validate_cinder(at, errors)),
    source("fc", |at, _, errors| validate_fc(at, errors)),
    Source { is_exclusive: false, ..source("flexVolume", |at, _, errors| validate_flex(at, errors)) },
    source("azureFile", |at, _, errors| validate_azure_file(at, errors)),
    source("vsphereVolume", |at, _, errors| require(at, &["volumePath"], errors)),
    source("photonPersistentDisk", |at, _, errors| require(at, &["pdID"], errors)),
    source("portworxVolume", |at, _, errors| require(at, &["volumeID"], errors)),
    source("azureDisk", |at, _, errors| validate_azure_disk(at, errors)),
    source("scaleIO", |at, _, errors| require(at, &["gateway", "system", "volumeName"], errors)),
    source("local", validate_local),
    source("storageos", |at, _, errors| validate_storage_os(at, errors)),
    source("csi", |at, _, errors| validate_csi(at, errors)),
];

fn validate_glusterfs(at: &At<'_>, errors: &mut ErrorList) {
    require(at, &["endpoints", "path"], errors);
    let namespace = at.child("endpointsNamespace");
    if namespace.is_set() && namespace.text().is_empty() {
        errors.push(namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name"));
    } else if namespace.is_set() {
        dns1123_label(&namespace, errors);
    }
}

/// Name and namespace of a secret, if it is set.
fn require_secret(at: &At<'_>, errors: &mut ErrorList) {
    let secret = at.child("secretRef");
    if secret.is_set() {
        require(&secret, &["name", "namespace"], errors);
    }
}

fn validate_iscsi(at: &At<'_>, volume: &Volume<'_>, errors: &mut ErrorList) {
    /// Volume and portal together may have this many bytes, and a colon between.
    const PORTAL_BYTES_MAX: usize = 64;
    let portal = at.child("targetPortal");
    required(&portal, errors);
    let initiator = at.child_called("initiatorName", "initiatorname");
    if initiator.is_set() && volume.name.len() + 1 + portal.text().len() > PORTAL_BYTES_MAX {
        errors.push(at.child_called("targetPortal", "targetportal").invalid(
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is \
             specified.",
        ));
    }
    const FORM: &str = "must be valid format";
    let iqn = at.child("iqn");
    if required(&iqn, errors) {
        validate_iscsi_name(&iqn, FORM, errors);
    }
    let lun = at.child("lun");
    if !(0..=255).contains(&lun.int()) {
        errors.push(lun.invalid_int(names::range_fault(0, 255)));
    }
    let secret = at.child("secretRef");
    if secret.is_set() {
        required(&secret.child("name"), errors);
    } else if at["chapAuthDiscovery"].is_true() || at["chapAuthSession"].is_true() {
        errors.push(secret.required(""));
    }
    if initiator.is_set() {
        validate_iscsi_name(&initiator, FORM, errors);
    }
}

fn validate_cinder(at: &At<'_>, errors: &mut ErrorList) {
    required(&at.child("volumeID"), errors);
    require_secret(at, errors);
}

fn validate_azure_file(at: &At<'_>, errors: &mut ErrorList) {
    require(at, &["secretName", "shareName"], errors);
    let namespace = at.child("secretNamespace");
    if namespace.is_set() {
        required(&namespace, errors);
    }
}

fn validate_local(at: &At<'_>, volume: &Volume<'_>, errors: &mut ErrorList) {
    let path = at.child("path");
    if required(&path, errors) {
        validate_no_backsteps(&path, errors);
    }
    let affinity = volume.spec.child("nodeAffinity");
    if !affinity.is_set() {
        errors.push(affinity.required("Local volume requires node affinity"));
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
    require_secret(at, errors);
}

fn validate_csi(at: &At<'_>, errors: &mut ErrorList) {
    csi_driver_name(&at.child("driver"), errors);
    required(&at.child("volumeHandle"), errors);
    for field in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        let secret = at.child(field);
        if !secret.is_set() {
            continue;
        }
        let (name, namespace) = (secret.child("name"), secret.child("namespace"));
        if required(&name, errors) {
            dns1123_subdomain(&name, errors);
        }
        if required(&namespace, errors) {
            dns1123_label(&namespace, errors);
        }
    }
}
