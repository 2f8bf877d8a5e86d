//! `pods/eviction`: a delete that asks the pod's disruption budget first.

use super::binding::set_condition;
use crate::admit::{Attributes, Operation};
use crate::call::Call;
use crate::create::{Answer, Written, create_options};
use crate::modify::Conditions;
use crate::options::{DeleteOptions, WriteOptions};
use crate::resource::Resource;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{GroupResource, GroupVersionKind, Status, Str, Value, json};
use pintle_storage::{At, ListRequest};

/// How often an eviction is tried again after somebody else wrote.
const TRIES_MAX: usize = 20;
/// Pods whose deletion a budget may still be waiting to see (upstream's limit).
const DISRUPTED_PODS_MAX: usize = 2_000;

/// Evicts the pod that `eviction` (a decoded `Eviction`) names, with its delete options already read. `pods` and
/// `budgets` are the resources.
///
/// # Errors
/// 429 when the budget does not allow it, 500 when there are two budgets, 404.
pub async fn evict(
    pods: &Resource,
    budgets: &Resource,
    call: &Call<'_>,
    mut eviction: Value,
    options: &WriteOptions,
    mut delete: DeleteOptions,
) -> Result<Written> {
    pods.check_namespace(call.namespace, &mut eviction)?;
    let kind = GroupVersionKind::new("policy", "v1", "Eviction");
    let wire = create_options(options);
    let attributes = Attributes {
        operation: Operation::Create,
        resource: &pods.gvr,
        subresource: "eviction",
        kind: &kind,
        namespace: call.namespace,
        name: call.name,
        old: None,
        options: &wire,
        dry_run: options.dry_run,
        user: &call.caller.user,
        warnings: call.warnings,
    };
    call.world.admission.mutate(&attributes, &mut eviction).await?;
    if eviction.name() != call.name {
        return Err(Box::new(Status::bad_request("name in URL does not match name in Eviction object")));
    }
    delete.dry_run |= options.dry_run;
    call.world.admission.validate(&attributes, Some(&eviction)).await?;
    let has_version = delete.preconditions.resource_version.is_some();
    for _ in 0..TRIES_MAX {
        let pod = pods.object(&*pods.get(call, None).await?).await?;
        if !ignores_budgets(&pod) {
            return evict_by_budget(pods, budgets, call, &pod, &delete).await;
        }
        let mut delete = delete.clone();
        if !has_version && is_running(&pod) {
            delete.preconditions.resource_version = Some(Str::new(pod.resource_version()));
        }
        match mark_and_delete(pods, call, &delete).await {
            Ok(()) => return Ok(success()),
            Err(status) if status.is("Conflict") && !has_version => {}
            Err(status) => return Err(status),
        }
    }
    Err(Box::new(Status::stale(pods.group_resource(), call.name)))
}

fn success() -> Written {
    let status = Status { code: 201, is_success: true, ..Status::default() };
    Written { answer: Answer::Status(Box::new(status)), is_created: true }
}

fn phase(pod: &Value) -> &str {
    pod.at("status.phase").str_or_empty()
}

fn ignores_budgets(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed" | "Pending") || pod.is_terminating()
}

fn is_running(pod: &Value) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && !pod.is_terminating()
}

fn is_ready(pod: &Value) -> bool {
    pod.at("status.conditions").items().iter().any(|c| c["type"] == "Ready".into() && c["status"] == "True".into())
}

async fn evict_by_budget(
    pods: &Resource,
    budgets: &Resource,
    call: &Call<'_>,
    pod: &Value,
    delete: &DeleteOptions,
) -> Result<Written> {
    let matching = matching_budgets(budgets, call.namespace, pod).await?;
    let mut delete = delete.clone();
    let mut is_guarded = false;
    let mut name = String::new();
    match matching.as_slice() {
        [] => {}
        [budget] => {
            name = budget.name().to_owned();
            let (healthy, desired) = (count(budget, "status.currentHealthy"), count(budget, "status.desiredHealthy"));
            let is_always = budget.at("spec.unhealthyPodEvictionPolicy").as_str() == Some("AlwaysAllow");
            if !is_ready(pod) && (is_always || (healthy >= desired && desired > 0)) {
                is_guarded = true;
            } else {
                let conditions = Conditions::default();
                let spend = |budget: &mut Value| spend(budget, pod.name(), call.now);
                budgets.modify(call.namespace, &name, conditions, delete.dry_run, spend).await?;
            }
        }
        _ => {
            let text =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            let status = Status { code: 500, message: text.to_owned(), ..Status::default() };
            return Ok(Written { answer: Answer::Status(Box::new(status)), is_created: false });
        }
    }
    let had_version = delete.preconditions.resource_version.is_some();
    if is_guarded {
        delete.preconditions.resource_version = Some(Str::new(pod.resource_version()));
    }
    match mark_and_delete(pods, call, &delete).await {
        Ok(()) => Ok(success()),
        Err(status) if status.is("Conflict") && is_guarded && !had_version => Err(still_processed(&name)),
        Err(status) => Err(status),
    }
}

fn count(object: &Value, path: &str) -> i64 {
    object.at(path).as_i64().unwrap_or_default()
}

/// Marks the pod as disrupted, then deletes it.
async fn mark_and_delete(pods: &Resource, call: &Call<'_>, delete: &DeleteOptions) -> Result<()> {
    let mut delete = delete.clone();
    if !delete.dry_run {
        let kind = GroupResource::new("", "Pod");
        let conditions = delete.preconditions.clone();
        let marked = pods
            .modify(call.namespace, call.name, Conditions::default(), false, |pod| {
                check(&kind, pod, &conditions)?;
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting",
                });
                set_condition(pod, condition, call.now);
                Ok(())
            })
            .await?;
        if let Some(version) = &mut delete.preconditions.resource_version {
            *version = Str::new(marked.revision.to_string());
        }
    }
    pods.delete(call, &delete).await.map(|_| ())
}

fn check(kind: &GroupResource, pod: &Value, conditions: &crate::options::Preconditions) -> Result<()> {
    if let Some(uid) = conditions.uid.as_ref().filter(|uid| !uid.is_empty() && *uid != pod.uid()) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            pod.uid()
        );
        return Err(Box::new(Status::conflict(kind, pod.name(), why)));
    }
    if let Some(version) =
        conditions.resource_version.as_ref().filter(|v| !v.is_empty() && *v != pod.resource_version())
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            pod.resource_version()
        );
        return Err(Box::new(Status::conflict(kind, pod.name(), why)));
    }
    Ok(())
}

async fn matching_budgets(budgets: &Resource, namespace: &str, pod: &Value) -> Result<Vec<Value>> {
    let request = ListRequest { prefix: budgets.store.prefix(namespace), start: None, limit: 0, at: At::Latest };
    let listing = budgets.store.storage.list(request).await;
    let listing = listing.map_err(|e| crate::errors::storage_status(&e, budgets.group_resource(), ""))?;
    let mut matching = Vec::new();
    for record in &listing.records {
        let budget = budgets.object(record).await?;
        let selector = Selector::from_object(budget.at("spec.selector"));
        if selector.is_ok_and(|selector| selector.matches(&pod.metadata()["labels"])) {
            matching.push(budget);
        }
    }
    Ok(matching)
}

fn refused(budget: &str, retry_after_seconds: i32, cause: String) -> Box<Status> {
    let _ = budget;
    Box::new(
        Status::too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            retry_after_seconds,
        )
        .with_cause("DisruptionBudget", cause, ""),
    )
}

fn still_processed(budget: &str) -> Box<Status> {
    refused(budget, 10, format!("The disruption budget {budget} is still being processed by the server."))
}

/// Takes one disruption from the budget.
fn spend(budget: &mut Value, pod: &str, now: jiff::Timestamp) -> Result<()> {
    let name = budget.name().to_owned();
    if count(budget, "status.observedGeneration") < budget.generation() {
        return Err(still_processed(&name));
    }
    let resource = GroupResource::new("policy", "poddisruptionbudget");
    let allowed = count(budget, "status.disruptionsAllowed");
    if allowed < 0 {
        return Err(Box::new(Status::forbidden(&resource, &name, "pdb disruptions allowed is negative")));
    }
    if budget.at("status.disruptedPods").entries().len() > DISRUPTED_PODS_MAX {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Box::new(Status::forbidden(&resource, &name, why)));
    }
    if allowed == 0 {
        return Err(refused(&name, 0, why_not_allowed(budget, &name)));
    }
    let status = budget.make("status");
    status.set("disruptionsAllowed", allowed - 1);
    status.make("disruptedPods").set(pod, time_value(now));
    if allowed == 1 {
        let generation = budget.generation();
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": generation,
        });
        set_condition(budget, condition, now);
        if let Some(conditions) = budget.at_mut("status.conditions").and_then(Value::as_array_mut) {
            conditions.iter_mut().for_each(|c| {
                c.remove("lastProbeTime");
            });
        }
    }
    Ok(())
}

fn why_not_allowed(budget: &Value, name: &str) -> String {
    let condition =
        budget.at("status.conditions").items().iter().find(|c| c["type"].as_str() == Some("DisruptionAllowed"));
    let text = |field: &str| condition.map_or("", |c| c[field].str_or_empty());
    let is_false = text("status") == "False" && !text("message").is_empty();
    let (healthy, desired) = (count(budget, "status.currentHealthy"), count(budget, "status.desiredHealthy"));
    if is_false && text("reason") == "SyncFailed" {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            text("message")
        )
    } else if healthy <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    } else if is_false {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            text("reason"),
            text("message")
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}
