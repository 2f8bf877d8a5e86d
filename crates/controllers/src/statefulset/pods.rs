//! The pods and claims of a StatefulSet, by their ordinals. Pure.

use crate::common::history::REVISION_LABEL;
use crate::common::owner::controller_ref;
use crate::common::pods::pod_from_template;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use pintle_client::Object as _;

const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// A set's specification.
pub(super) fn spec(set: &StatefulSet) -> StatefulSetSpec {
    set.spec.clone().unwrap_or_default()
}

/// The first ordinal, and how many there are.
pub(super) fn ordinals(set: &StatefulSet) -> std::ops::Range<i32> {
    let spec = set.spec.as_ref();
    let start = spec.and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or_default();
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    start..start.saturating_add(replicas)
}

/// The ordinal in a pod's name, if the name is one of the set's.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i32> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { digits.parse().ok() } else { None }
}

/// The name of the revision that a pod was made from.
pub(super) fn revision_of(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(REVISION_LABEL)).map_or("", String::as_str)
}

/// A new pod of an ordinal.
pub(super) fn new_pod(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let mut pod = pod_from_template(template, &controller_ref(set), set.namespace());
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(format!("{}-{ordinal}", set.name()));
    identify(set, &mut pod, ordinal);
    pod.metadata.labels.get_or_insert_default().insert(REVISION_LABEL.to_owned(), revision.to_owned());
    let name = pod.metadata.name.clone();
    let service = spec(set).service_name.filter(|name| !name.is_empty());
    let pod_spec = pod.spec.get_or_insert_default();
    (pod_spec.hostname, pod_spec.subdomain) = (name, service);
    mount_claims(set, &mut pod, ordinal);
    pod
}

/// Gives a pod the labels of its ordinal.
pub(super) fn identify(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.to_owned(), format!("{}-{ordinal}", set.name()));
    labels.insert(POD_INDEX_LABEL.to_owned(), ordinal.to_string());
}

/// Whether a pod has the labels of its ordinal.
pub(super) fn is_identified(pod: &Pod) -> bool {
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(POD_NAME_LABEL));
    label.map(String::as_str) == Some(pod.name())
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.name(), set.name())
}

fn mount_claims(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let templates = spec(set).volume_claim_templates.unwrap_or_default();
    if templates.is_empty() {
        return;
    }
    let mut volumes: Vec<Volume> = templates
        .iter()
        .map(|template| Volume {
            name: template.name().to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(set, template, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        })
        .collect();
    let pod_spec = pod.spec.get_or_insert_default();
    let is_other = |volume: &Volume| !templates.iter().any(|template| template.name() == volume.name);
    volumes.extend(pod_spec.volumes.take().unwrap_or_default().into_iter().filter(is_other));
    pod_spec.volumes = Some(volumes);
}

/// The claims of an ordinal.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let spec = spec(set);
    let selector = spec.selector.match_labels.unwrap_or_default();
    let claim = |template: PersistentVolumeClaim| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, &template, ordinal));
        claim.metadata.namespace = set.metadata.namespace.clone();
        claim.metadata.labels.get_or_insert_default().extend(selector.clone());
        claim.status = None;
        claim
    };
    spec.volume_claim_templates.unwrap_or_default().into_iter().map(claim).collect()
}

/// The owners that a claim should have, by the set's retention policy; `None` when it has them. `pod` is the reference
/// to the pod of its ordinal.
pub(super) fn owners_of_claim(
    set: &StatefulSet,
    ordinal: i32,
    pod: &OwnerReference,
    claim: &PersistentVolumeClaim,
) -> Option<Vec<OwnerReference>> {
    let policy = spec(set).persistent_volume_claim_retention_policy.unwrap_or_default();
    let deletes = |when: &Option<String>| when.as_deref() == Some("Delete");
    let (when_scaled, when_deleted) = (deletes(&policy.when_scaled), deletes(&policy.when_deleted));
    let set_ref = controller_ref(set);
    let owners = claim.metadata.owner_references.clone().unwrap_or_default();
    let means = |owner: &OwnerReference, other: &OwnerReference| owner.kind == other.kind && owner.name == other.name;
    let is_stale = owners
        .iter()
        .any(|owner| [&set_ref, pod].into_iter().any(|other| means(owner, other) && owner.uid != other.uid));
    let is_foreign =
        owners.iter().any(|owner| owner.controller == Some(true) && !means(owner, &set_ref) && !means(owner, pod));
    if is_stale || (is_foreign && (when_scaled || when_deleted)) {
        return None;
    }
    let mut wanted: Vec<OwnerReference> =
        owners.iter().filter(|owner| !means(owner, &set_ref) && !means(owner, pod)).cloned().collect();
    let is_condemned = !ordinals(set).contains(&ordinal);
    if when_scaled && is_condemned {
        wanted.push(pod.clone());
    } else if when_deleted {
        wanted.push(set_ref);
    }
    let is_same = wanted.len() == owners.len() && wanted.iter().all(|owner| owners.contains(owner));
    (!is_same).then_some(wanted)
}
