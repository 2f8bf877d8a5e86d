//! Volumes of a pod spec: each has a name of its own and one source.
//!
//! Not here: the sources themselves, which are `volume_sources` and `projected`.

use super::options::PodOptions;
use super::volume_sources::SOURCES;
use crate::common::checks::required;
use crate::common::{At, dns1123_label};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{ErrorList, Value, names};

/// Longest `<volume name>:<target portal>` when an initiator is named.
const ISCSI_PORTAL_BYTES_MAX: usize = 64;

/// The well-formed volumes of a pod spec: those that mounts may name.
#[derive(Debug, Default)]
pub(super) struct Volumes<'v>(Vec<&'v Value>);

impl<'v> Volumes<'v> {
    /// The volume of this name.
    pub(super) fn get(&self, name: &str) -> Option<&'v Value> {
        self.0.iter().copied().find(|volume| volume["name"].as_str() == Some(name))
    }
}

/// The volumes of a pod spec. `pod_name` is empty for templates and where the name is not known.
pub(super) fn validate_volumes<'v>(
    at: &At<'v>,
    pod_name: &str,
    options: &PodOptions,
    errors: &mut ErrorList,
) -> Volumes<'v> {
    let mut volumes = Volumes::default();
    let made_claims: Vec<String> = if pod_name.is_empty() {
        Vec::new()
    } else {
        let ephemeral = at.items().iter().filter(|volume| volume.has("ephemeral"));
        ephemeral.map(|volume| format!("{pod_name}-{}", volume["name"].str_or_empty())).collect()
    };
    for (volume, value) in at.each().zip(at.value().items()) {
        let n_before = errors.len();
        validate_source(&volume, pod_name, options, errors);
        let name = volume.child("name");
        if required(&name, errors) {
            dns1123_label(&name, errors);
        }
        if volumes.get(name.text()).is_some() {
            errors.push(name.duplicate());
        }
        if errors.len() == n_before {
            volumes.0.push(value);
        }
        let claim = volume.child("persistentVolumeClaim");
        let claim_name = claim.child("claimName");
        if claim.is_set() && made_claims.iter().any(|made| made == claim_name.text()) {
            errors.push(claim_name.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    volumes
}

/// Misspellings in upstream's message about a second source: the source, and what it is called there.
const SECOND_CALLED: &[(&str, &str)] = &[("cephfs", "cephFS"), ("downwardAPI", "downwarAPI")];

fn validate_source(volume: &At<'_>, pod_name: &str, options: &PodOptions, errors: &mut ErrorList) {
    let mut has_one = false;
    for (name, called, rule) in SOURCES {
        let source = volume.child_called(name, called);
        if !source.is_set() {
            continue;
        }
        if has_one {
            let called = SECOND_CALLED.iter().find(|(source, _)| source == name).map_or(*name, |(_, called)| called);
            errors.push(volume.child_called(name, called).forbidden("may not specify more than 1 volume type"));
        } else {
            has_one = true;
            rule(&source, options, errors);
            if *name == "ephemeral" {
                validate_made_claim_name(volume, pod_name, errors);
            }
        }
        if *name == "iscsi" {
            validate_iscsi_name(volume, &source, errors);
        }
    }
    if !has_one {
        errors.push(volume.required("must specify a volume type"));
    }
}

fn validate_iscsi_name(volume: &At<'_>, source: &At<'_>, errors: &mut ErrorList) {
    let name = volume.child("name");
    let n_bytes = name.text().len() + 1 + source["targetPortal"].str_or_empty().len();
    if source.child("initiatorName").is_set() && n_bytes > ISCSI_PORTAL_BYTES_MAX {
        errors.push(name.invalid(
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.",
        ));
    }
}

/// The claim of an ephemeral volume is called after the pod and the volume.
fn validate_made_claim_name(volume: &At<'_>, pod_name: &str, errors: &mut ErrorList) {
    let name = volume.child("name");
    if pod_name.is_empty() || name.text().is_empty() {
        return;
    }
    let claim = format!("{pod_name}-{}", name.text());
    for fault in names::dns1123_subdomain(&claim) {
        errors.push(name.invalid(format!("PVC name {}: {fault}", go_quote(&claim))));
    }
}
