//! Pod failure policies and success policies. Pure.
//!
//! Follows: kubernetes/pkg/controller/job/pod_failure_policy.go and success_policy.go (v1.35).

use super::indexes::Indexes;
use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, SuccessPolicy};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use pintle_client::Object as _;

/// What a policy makes of a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It counts towards the back-off limit: no rule matches, or one that says so.
    Count,
    /// It does not count.
    Ignore,
    /// The pod's index has failed.
    FailIndex,
    /// The job has failed, with this message.
    FailJob(String),
}

impl Verdict {
    /// Whether the pod counts as failed.
    pub(super) fn counts(&self) -> bool {
        *self != Verdict::Ignore
    }
}

/// What the job's policy makes of a failed pod.
pub(super) fn verdict(spec: &JobSpec, pod: &Pod) -> Verdict {
    spec.pod_failure_policy.as_ref().map_or(Verdict::Count, |policy| judge(policy, pod))
}

fn judge(policy: &PodFailurePolicy, pod: &Pod) -> Verdict {
    for (idx, rule) in policy.rules.iter().enumerate() {
        let (namespace, name, action) = (pod.namespace(), pod.name(), &rule.action);
        let reason = if let Some(wanted) = &rule.on_exit_codes {
            let Some(container) = failed_container(pod, wanted) else { continue };
            let code = exit_code(container).unwrap_or_default();
            let container = &container.name;
            format!(
                "Container {container} for pod {namespace}/{name} failed with exit code {code} matching {action} rule at index {idx}"
            )
        } else if let Some(patterns) = &rule.on_pod_conditions {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            let matching = conditions.into_iter().flatten().find(|condition| {
                patterns.iter().any(|pattern| {
                    pattern.type_ == condition.type_ && pattern.status.as_deref().unwrap_or("True") == condition.status
                })
            });
            let Some(condition) = matching else { continue };
            let type_ = &condition.type_;
            format!("Pod {namespace}/{name} has condition {type_} matching {action} rule at index {idx}")
        } else {
            continue;
        };
        match action.as_str() {
            "Ignore" => return Verdict::Ignore,
            "FailIndex" => return Verdict::FailIndex,
            "Count" => return Verdict::Count,
            "FailJob" => return Verdict::FailJob(reason),
            // an action of a later version: the next rule
            _ => {}
        }
    }
    Verdict::Count
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// The first container, init containers last, whose exit code is wanted. An exit without failure never is.
fn failed_container<'a>(pod: &'a Pod, wanted: &PodFailurePolicyOnExitCodesRequirement) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all = status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten());
    let is_wanted = |container: &&ContainerStatus| {
        let has_name = wanted.container_name.as_ref().is_none_or(|name| *name == container.name);
        let code = exit_code(container).filter(|code| *code != 0);
        has_name
            && code.is_some_and(|code| match wanted.operator.as_str() {
                "In" => wanted.values.contains(&code),
                "NotIn" => !wanted.values.contains(&code),
                _ => false,
            })
    };
    all.into_iter().find(is_wanted)
}

/// The message of the first rule of a success policy that is met.
pub(super) fn met_rule(policy: Option<&SuccessPolicy>, completions: i32, succeeded: &Indexes) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let is_met = |rule: &k8s_openapi::api::batch::v1::SuccessPolicyRule| match &rule.succeeded_indexes {
        Some(text) => {
            let wanted = Indexes::parse(text, completions);
            let n_met = wanted.n_common(succeeded);
            !wanted.is_empty() && (n_met == wanted.len() || rule.succeeded_count.is_some_and(|count| n_met >= count))
        }
        None => rule.succeeded_count.is_some_and(|count| succeeded.len() >= count),
    };
    policy?.rules.iter().position(is_met).map(|idx| format!("Matched rules at index {idx}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let spec: JobSpec = serde_json::from_value(json!({"template": {}, "podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
            {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "NotIn", "values": [1, 2]}},
        ]}}))
        .unwrap();
        let pod = |status: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "ns"}, "status": status})).unwrap()
        };
        let exit = |name: &str, code: i32| {
            verdict(
                &spec,
                &pod(json!({"containerStatuses": [{"name": name, "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": {"terminated": {"exitCode": code}}}]})),
            )
        };
        assert_eq!(
            verdict(&spec, &pod(json!({"conditions": [{"type": "DisruptionTarget", "status": "True"}]}))),
            Verdict::Ignore
        );
        assert_eq!(exit("main", 7), Verdict::FailIndex);
        assert_eq!(exit("main", 2), Verdict::Count);
        assert_eq!(exit("other", 9), Verdict::Count);
        assert_eq!(
            exit("main", 9),
            Verdict::FailJob(
                "Container main for pod ns/p failed with exit code 9 matching FailJob rule at index 2".into()
            )
        );
    }

    #[test]
    fn success_rules() {
        let policy: SuccessPolicy = serde_json::from_value(
            json!({"rules": [{"succeededIndexes": "0-3", "succeededCount": 2}, {"succeededCount": 5}]}),
        )
        .unwrap();
        let met = |indexes: &[i32]| met_rule(Some(&policy), 10, &Indexes::of(indexes.iter().copied()));
        assert_eq!(met(&[0, 5, 6, 7]), None);
        assert_eq!(met(&[0, 3]).as_deref(), Some("Matched rules at index 0"));
        assert_eq!(met(&[5, 6, 7, 8, 9]).as_deref(), Some("Matched rules at index 1"));
    }
}
