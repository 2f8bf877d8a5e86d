//! The pods of a job. Pure.

use super::round::{INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, NewPod, TRACKING_FINALIZER};
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, PodTemplateSpec};

/// The variable with a pod's index.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The longest prefix of a generated name.
const NAME_PREFIX_CHARS_MAX: usize = 58;

/// The template of a new pod.
pub(super) fn template_for(spec: &JobSpec, job: &str, new: NewPod) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let meta = template.metadata.get_or_insert_default();
    let finalizers = meta.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING_FINALIZER) {
        finalizers.push(TRACKING_FINALIZER.to_owned());
    }
    let Some(index) = new.index else { return template };
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    if let Some((counted, ignored)) = new.failures {
        annotations.insert(INDEX_FAILURES.to_owned(), counted.to_string());
        if ignored > 0 {
            annotations.insert(INDEX_IGNORED_FAILURES.to_owned(), ignored.to_string());
        }
    }
    meta.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    let pod = template.spec.get_or_insert_default();
    pod.hostname = Some(format!("{job}-{index}"));
    for container in pod.init_containers.iter_mut().flatten().chain(&mut pod.containers) {
        add_index_variable(container);
    }
    template
}

fn add_index_variable(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), api_version: None };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
    });
}

/// The prefix of the name of an index's pods.
pub(super) fn name_prefix(job: &str, index: i32) -> String {
    let suffix = format!("-{index}-");
    let room = NAME_PREFIX_CHARS_MAX - suffix.len();
    format!("{}{suffix}", job.get(..room).unwrap_or(job))
}
