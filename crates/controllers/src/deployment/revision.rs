//! Revisions: which ReplicaSet has the deployment's template, how they are numbered, and what annotations they carry.
//! Pure.

use super::plan::{max_surge, replicas};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use pintle_client::Object as _;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The revision of a ReplicaSet, and the current one of a deployment.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier revisions that the same template had.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The deployment's replicas when the ReplicaSet was last scaled.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The deployment's replicas and surge when the ReplicaSet was last scaled.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// The revision to go back to: what `extensions/v1beta1` had as a field.
pub(super) const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// The label that tells the pods of different templates apart.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// Annotations that are not passed on between a deployment and its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    pintle_apimachinery::meta::well_known::LAST_APPLIED,
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
];

/// The longest revision history, in characters; the oldest revisions leave it first.
const HISTORY_CHARS_MAX: usize = 2000;

fn annotation<'a>(annotations: Option<&'a BTreeMap<String, String>>, key: &str) -> &'a str {
    annotations.and_then(|annotations| annotations.get(key)).map_or("", String::as_str)
}

/// An annotation of a ReplicaSet, or `""`.
pub(super) fn annotation_of<'a>(set: &'a ReplicaSet, key: &str) -> &'a str {
    annotation(set.metadata.annotations.as_ref(), key)
}

/// A revision; 0 for a set without one. `None` when it is no number.
pub(super) fn revision_of(set: &ReplicaSet) -> Option<i64> {
    match annotation_of(set, REVISION) {
        "" => Some(0),
        text => text.parse().ok(),
    }
}

/// The highest revision.
pub(super) fn max_revision<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>) -> i64 {
    sets.into_iter().filter_map(revision_of).max().unwrap_or_default().max(0)
}

/// The revision before the highest one; 0 when there is none.
pub(super) fn last_revision<'a>(sets: impl IntoIterator<Item = &'a ReplicaSet>) -> i64 {
    let mut revisions: Vec<i64> = sets.into_iter().filter_map(revision_of).collect();
    revisions.sort_unstable();
    revisions.iter().rev().nth(1).copied().unwrap_or_default()
}

/// The older first; of the same age, by name.
pub(super) fn by_creation(a: &ReplicaSet, b: &ReplicaSet) -> Ordering {
    let created = |set: &ReplicaSet| set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    created(a).cmp(&created(b)).then_with(|| a.name().cmp(b.name()))
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(meta) = &mut template.metadata {
        if let Some(labels) = &mut meta.labels {
            labels.remove(HASH_LABEL);
        }
        meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
        meta.annotations = meta.annotations.take().filter(|annotations| !annotations.is_empty());
    }
    template.metadata = template.metadata.filter(|meta| *meta != Default::default());
    template
}

/// Whether two templates are the same but for the hash label.
pub(super) fn equal_ignore_hash(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    without_hash(a) == without_hash(b)
}

/// A ReplicaSet's template.
pub(super) fn template_of(set: &ReplicaSet) -> Cow<'_, PodTemplateSpec> {
    match set.spec.as_ref().and_then(|spec| spec.template.as_ref()) {
        Some(template) => Cow::Borrowed(template),
        None => Cow::Owned(PodTemplateSpec::default()),
    }
}

/// The oldest set with the deployment's template; several can have it after a collision.
pub(super) fn new_set_idx(deployment: &Deployment, sets: &[ReplicaSet]) -> Option<usize> {
    let template = &deployment.spec.as_ref()?.template;
    let same = sets.iter().enumerate().filter(|(_, set)| equal_ignore_hash(&template_of(set), template));
    same.min_by(|(_, a), (_, b)| by_creation(a, b)).map(|(idx, _)| idx)
}

/// Gives the new set the annotations of the deployment and its revision; whether anything changed. `is_new` is for a
/// set that is about to be made: it also gets the numbers of replicas.
pub(super) fn annotate(deployment: &Deployment, set: &mut ReplicaSet, revision: i64, is_new: bool) -> bool {
    let mut is_changed = false;
    let annotations = set.metadata.annotations.get_or_insert_default();
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) && annotations.get(key) != Some(value) {
            annotations.insert(key.clone(), value.clone());
            is_changed = true;
        }
    }
    let old = annotations.get(REVISION).cloned();
    let old_number = match old.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            // somebody's own text: as upstream, nothing more is done to it
            Err(_) => return false,
        },
    };
    if old_number < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string());
        is_changed = true;
        if let Some(old) = old
            && let Some(history) = history_with(annotations.get(REVISION_HISTORY).map_or("", String::as_str), &old)
        {
            annotations.insert(REVISION_HISTORY.to_owned(), history);
        }
    }
    if annotations.is_empty() {
        set.metadata.annotations = None;
    }
    (is_new && set_replicas_annotations(deployment, set)) || is_changed
}

/// A history with one more revision; `None` when even that alone is too long.
fn history_with(history: &str, revision: &str) -> Option<String> {
    if history.is_empty() {
        return Some(revision.to_owned());
    }
    let mut kept: Vec<&str> = history.split(',').collect();
    let mut len = history.len() + revision.len() + 1;
    let mut n_dropped = 0;
    while len > HISTORY_CHARS_MAX && n_dropped < kept.len() {
        len -= kept[n_dropped].len() + 1;
        n_dropped += 1;
    }
    if len > HISTORY_CHARS_MAX {
        return None;
    }
    kept.drain(..n_dropped);
    kept.push(revision);
    Some(kept.join(","))
}

fn replicas_annotations(deployment: &Deployment) -> [(&'static str, String); 2] {
    let wanted = replicas(deployment);
    let most = wanted.saturating_add(max_surge(deployment));
    [(DESIRED_REPLICAS, wanted.to_string()), (MAX_REPLICAS, most.to_string())]
}

/// Whether the set's numbers of replicas are not the deployment's.
pub(super) fn needs_replicas_annotations(deployment: &Deployment, set: &ReplicaSet) -> bool {
    replicas_annotations(deployment).iter().any(|(key, value)| annotation_of(set, key) != value)
}

/// Notes the deployment's numbers of replicas on a set; whether they were others.
pub(super) fn set_replicas_annotations(deployment: &Deployment, set: &mut ReplicaSet) -> bool {
    let is_changed = needs_replicas_annotations(deployment, set);
    let annotations = set.metadata.annotations.get_or_insert_default();
    for (key, value) in replicas_annotations(deployment) {
        annotations.insert(key.to_owned(), value);
    }
    is_changed
}

/// Notes the revision on the deployment; whether it was another.
pub(super) fn set_revision(deployment: &mut Deployment, revision: &str) -> bool {
    let annotations = deployment.metadata.annotations.get_or_insert_default();
    annotations.insert(REVISION.to_owned(), revision.to_owned()).as_deref() != Some(revision)
}

/// The revision that the deployment is to go back to; 0 for the last one.
pub(super) fn rollback_to(deployment: &Deployment) -> Option<i64> {
    annotation(deployment.metadata.annotations.as_ref(), ROLLBACK_TO).parse().ok()
}

/// Makes the deployment what it was when a set was new.
pub(super) fn roll_back(deployment: &mut Deployment, set: &ReplicaSet) {
    let mut template = template_of(set).into_owned();
    if let Some(labels) = template.metadata.as_mut().and_then(|meta| meta.labels.as_mut()) {
        labels.remove(HASH_LABEL);
    }
    if let Some(spec) = &mut deployment.spec {
        spec.template = template;
    }
    let is_own = |key: &str| NOT_COPIED.contains(&key);
    let mut annotations = deployment.metadata.annotations.take().unwrap_or_default();
    annotations.retain(|key, _| is_own(key));
    let of_set = set.metadata.annotations.iter().flatten().filter(|(key, _)| !is_own(key));
    annotations.extend(of_set.map(|(key, value)| (key.clone(), value.clone())));
    deployment.metadata.annotations = Some(annotations);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str, created: i64, image: &str, annotations: serde_json::Value) -> ReplicaSet {
        let created = jiff::Timestamp::from_second(created).unwrap().to_string();
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": created, "annotations": annotations},
            "spec": {"replicas": 1, "selector": {}, "template": {
                "metadata": {"labels": {"app": "web", "pod-template-hash": name}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            }},
        }))
        .unwrap()
    }

    fn deployment(image: &str) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "annotations": {"note": "n", REVISION: "9"}},
            "spec": {"replicas": 4, "selector": {},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}},
        }))
        .unwrap()
    }

    #[test]
    fn the_oldest_set_of_the_template_is_the_new_one() {
        let sets = [set("b", 2, "v2", json!({})), set("c", 1, "v2", json!({})), set("a", 0, "v1", json!({}))];
        assert_eq!(new_set_idx(&deployment("v2"), &sets), Some(1));
        assert_eq!(new_set_idx(&deployment("v1"), &sets), Some(2));
        assert_eq!(new_set_idx(&deployment("v3"), &sets), None);
    }

    #[test]
    fn annotations_follow_the_deployment() {
        let mut new = set("a", 0, "v1", json!(null));
        assert!(annotate(&deployment("v1"), &mut new, 1, true));
        assert!(!annotate(&deployment("v1"), &mut new, 1, true));
        assert!(annotate(&deployment("v1"), &mut new, 3, false) && annotate(&deployment("v1"), &mut new, 5, false));
        expect_test::expect![[r#"{"deployment.kubernetes.io/desired-replicas":"4","deployment.kubernetes.io/max-replicas":"5","deployment.kubernetes.io/revision":"5","deployment.kubernetes.io/revision-history":"1,3","note":"n"}"#]]
            .assert_eq(&serde_json::to_string(&new.metadata.annotations).unwrap());
        let sets = [new, set("b", 0, "v2", json!({REVISION: "4"})), set("c", 0, "v3", json!({REVISION: "no"}))];
        assert_eq!((max_revision(&sets), last_revision(&sets)), (5, 4));
    }

    #[test]
    fn histories_drop_their_beginning() {
        let long = vec!["12345"; 333].join(",");
        assert_eq!(long.len(), 1997);
        let longer = history_with(&long, "678").unwrap();
        assert!(longer.len() <= HISTORY_CHARS_MAX && longer.ends_with(",678") && longer.starts_with("12345,"));
        assert_eq!(history_with(&long, &"9".repeat(2001)), None);
    }

    #[test]
    fn rolling_back_takes_template_and_annotations() {
        let mut deployment = deployment("v2");
        roll_back(&mut deployment, &set("a", 0, "v1", json!({"old": "yes", REVISION: "1"})));
        expect_test::expect![[r#"{"deployment.kubernetes.io/revision":"9","old":"yes"}"#]]
            .assert_eq(&serde_json::to_string(&deployment.metadata.annotations).unwrap());
        let spec = deployment.spec.unwrap();
        assert_eq!(spec.template.spec.unwrap().containers[0].image.as_deref(), Some("v1"));
        assert_eq!(spec.template.metadata.unwrap().labels.unwrap().len(), 1);
    }
}
