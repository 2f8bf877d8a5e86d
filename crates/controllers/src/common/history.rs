//! `ControllerRevisions`: the templates that a StatefulSet or DaemonSet has had.
//!
//! Follows: kubernetes/pkg/controller/history (v1.35). Templates are compared as objects, so that a revision written by
//! another implementation is recognised.

use super::hash::safe_fnv;
use super::owner::controller_ref;
use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use pintle_client::Object;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The label of revisions, and of the pods made from them.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// The longest part of the owner's name in a revision's name.
const NAME_PREFIX_CHARS_MAX: usize = 223;

/// What a revision keeps of a template: a patch that puts it back, which kubectl applies.
fn data_of(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// The template that a revision keeps.
pub(crate) fn template_in(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// Whether the revision is of this template.
pub(crate) fn is_of(revision: &ControllerRevision, template: &PodTemplateSpec) -> bool {
    template_in(revision).as_ref() == Some(template)
}

/// The highest number, and one more.
pub(crate) fn next_number<'a>(revisions: impl IntoIterator<Item = &'a ControllerRevision>) -> i64 {
    revisions.into_iter().map(|revision| revision.revision).max().unwrap_or_default() + 1
}

/// A new revision of a template. `hash_label` is where the hash stands.
pub(crate) fn new_revision<O: Object + Resource>(
    owner: &O,
    template: &PodTemplateSpec,
    number: i64,
    collision_count: Option<i32>,
    hash_label: &str,
) -> ControllerRevision {
    let data = data_of(template);
    let hash = safe_fnv(&serde_json::to_vec(&data).unwrap_or_default(), collision_count);
    let mut labels: BTreeMap<String, String> =
        template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(hash_label.to_owned(), hash.clone());
    let prefix = owner.name().get(..NAME_PREFIX_CHARS_MAX).unwrap_or_else(|| owner.name());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: owner.meta().namespace.clone(),
            labels: Some(labels),
            annotations: owner.meta().annotations.clone(),
            owner_references: Some(vec![controller_ref(owner)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    }
}

/// The revisions that are in use by nothing, oldest first, beyond the limit.
pub(crate) fn surplus(
    mut revisions: Vec<ControllerRevision>,
    limit: Option<i32>,
    is_live: impl Fn(&ControllerRevision) -> bool,
) -> Vec<ControllerRevision> {
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else { return Vec::new() };
    revisions.retain(|revision| !is_live(revision));
    revisions.sort_by(|a, b| a.revision.cmp(&b.revision).then_with(|| a.name().cmp(b.name())));
    revisions.truncate(revisions.len().saturating_sub(limit));
    revisions
}
