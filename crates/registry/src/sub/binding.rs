//! `pods/binding` and `bindings`: a scheduler gives a pod its node.

use crate::admit::{Attributes, Operation};
use crate::call::Call;
use crate::create::{Answer, Written, create_options};
use crate::modify::Conditions;
use crate::options::WriteOptions;
use crate::resource::Resource;
use pintle_apimachinery::field::aggregate;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::names::path_segment;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{ErrorList, FieldError, GroupResource, GroupVersionKind, Path, Status, Value, json};

/// Binds the pod that `binding` (a decoded `Binding`) names. `pods` is the resource.
///
/// # Errors
/// 400 when names differ, 500 (as upstream) when the binding is malformed, 409 when the pod cannot be bound.
pub async fn bind(pods: &Resource, call: &Call<'_>, mut binding: Value, options: &WriteOptions) -> Result<Written> {
    pods.check_namespace(call.namespace, &mut binding)?;
    let name = if call.name.is_empty() { binding.name().to_owned() } else { call.name.to_owned() };
    let kind = GroupVersionKind::new("", "v1", "Binding");
    let wire = create_options(options);
    let attributes = Attributes {
        operation: Operation::Create,
        resource: &pods.gvr,
        subresource: "binding",
        kind: &kind,
        namespace: call.namespace,
        name: &name,
        old: None,
        options: &wire,
        dry_run: options.dry_run,
        user: &call.caller.user,
        warnings: call.warnings,
    };
    call.world.admission.mutate(&attributes, &mut binding).await?;
    if binding.name() != name {
        return Err(Box::new(Status::bad_request("name in URL does not match name in Binding object")));
    }
    let errors = validate(&binding);
    if !errors.is_empty() {
        return Err(Box::new(Status::plain_error(aggregate(&errors))));
    }
    call.world.admission.validate(&attributes, Some(&binding)).await?;
    let conditions = Conditions { uid: binding.uid(), resource_version: binding.resource_version() };
    let node = binding["target"]["name"].str_or_empty();
    let assigned = pods
        .modify(call.namespace, &name, conditions, options.dry_run, |pod| assign(pod, &binding, node, call.now))
        .await;
    assigned?;
    let status = Status { code: 201, is_success: true, ..Status::default() };
    Ok(Written { answer: Answer::Status(Box::new(status)), is_created: true })
}

fn validate(binding: &Value) -> ErrorList {
    let target = &binding["target"];
    let path = Path::new("target");
    let mut errors = ErrorList::new();
    let kind = target["kind"].str_or_empty();
    if !kind.is_empty() && kind != "Node" {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Node", "<empty>"]));
    }
    let name = target["name"].str_or_empty();
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let _ = path_segment;
    errors
}

/// What a binding changes of its pod.
fn assign(pod: &mut Value, binding: &Value, node: &str, now: jiff::Timestamp) -> Result<()> {
    let name = pod.name().to_owned();
    let refuse = |why: String| Err(Box::new(Status::conflict(&GroupResource::new("", "pods/binding"), &name, why)));
    if pod.is_terminating() {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let present = pod.at("spec.nodeName").str_or_empty().to_owned();
    if !present.is_empty() {
        return refuse(format!("pod {name} is already assigned to node \"{present}\""));
    }
    if !pod.at("spec.schedulingGates").items().is_empty() {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    *pod.make("spec.nodeName") = Value::from(node);
    pod.remove_at("status.nominatedNodeName");
    for (key, value) in binding.metadata()["annotations"].entries() {
        pod.make("metadata.annotations").set(key, value.clone());
    }
    for (key, value) in binding.metadata()["labels"].entries() {
        pod.make("metadata.labels").set(key, value.clone());
    }
    let condition = json!({"type": "PodScheduled", "status": "True"});
    set_condition(pod, condition, now);
    Ok(())
}

/// Puts a condition into `status.conditions`, in place of the one of its type; its time changes with its status only.
pub(super) fn set_condition(object: &mut Value, mut condition: Value, now: jiff::Timestamp) {
    let conditions = object.make("status.conditions").make_array();
    let position = conditions.iter().position(|c| c["type"] == condition["type"]);
    let transition = match position.map(|idx| &conditions[idx]) {
        Some(old) if old["status"] == condition["status"] => old["lastTransitionTime"].clone(),
        _ => time_value(now),
    };
    condition.set("lastTransitionTime", transition);
    condition.set("lastProbeTime", Value::Null);
    match position {
        Some(idx) => {
            let probe = conditions[idx]["lastProbeTime"].clone();
            condition.set("lastProbeTime", probe);
            conditions[idx] = condition;
        }
        None => conditions.push(condition),
    }
}
