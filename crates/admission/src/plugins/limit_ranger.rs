//! `LimitRanger`: what containers, pods and claims may ask for in a namespace, and what they get when they do not ask.
//!
//! Follows: plugin/pkg/admission/limitranger (v1.35).

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use crate::pod::{Counting, ResourceList, Side, pod_resources, quantity, resource_list};
use async_trait::async_trait;
use pintle_apimachinery::field::aggregate;
use pintle_apimachinery::meta::{Meta, set_annotation};
use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Str, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

/// The annotation that tells what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The plugin.
#[derive(Debug)]
pub struct LimitRanger {
    /// Where limit ranges are.
    pub lookup: Arc<dyn Lookup>,
}

fn is_going(attributes: &Attributes<'_>) -> bool {
    attributes.old.is_some_and(Meta::is_terminating)
}

#[async_trait]
impl Plugin for LimitRanger {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        let is_create = attributes.operation == Operation::Create;
        let is_resize = attributes.subresource == "resize" && attributes.is_about("", "pods");
        (is_create && attributes.is_on("", "pods"))
            || (attributes.operation == Operation::Update && is_resize)
            || (attributes.is_write() && attributes.is_on("", "persistentvolumeclaims"))
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        if attributes.resource.resource != "pods" || is_going(attributes) {
            return Ok(());
        }
        for range in self.lookup.list("", "limitranges", attributes.namespace).await {
            fill_in(&range, object);
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(new) = object.filter(|_| !is_going(attributes)) else { return Ok(()) };
        for range in self.lookup.list("", "limitranges", attributes.namespace).await {
            let faults = match attributes.resource.resource.as_str() {
                "pods" => pod_faults(&range, new),
                _ => claim_faults(&range, new),
            };
            if !faults.is_empty() {
                return Err(forbidden(attributes, object, aggregate(&faults)));
            }
        }
        Ok(())
    }
}

fn limits_of<'r>(range: &'r Value, kind: &'static str) -> impl Iterator<Item = &'r Value> {
    range["spec"]["limits"].items().iter().filter(move |limit| limit["type"].as_str() == Some(kind))
}

/// Gives the pod's containers the requests and limits that they leave out.
fn fill_in(range: &Value, pod: &mut Value) {
    let mut defaults = [("requests", Value::object()), ("limits", Value::object())];
    for limit in limits_of(range, "Container") {
        for (field, (_, amounts)) in ["defaultRequest", "default"].into_iter().zip(&mut defaults) {
            for (name, amount) in limit[field].entries() {
                amounts.set(name, amount.clone());
            }
        }
    }
    let mut notes = Vec::new();
    for (field, what) in [("containers", "container"), ("initContainers", "init container")] {
        for container in pod["spec"].get_mut(field).map(Value::items_mut).unwrap_or_default() {
            let container_name = Str::new(container["name"].str_or_empty());
            for (side, amounts) in &defaults {
                let missing: Vec<Str> = amounts
                    .entries()
                    .filter(|(name, _)| container["resources"][*side][name.as_str()].is_null())
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in &missing {
                    container["resources"][*side].set(name, amounts[name.as_str()].clone());
                }
                if !missing.is_empty() {
                    let word = side.trim_end_matches('s');
                    notes.push(format!("{} {word} for {what} {container_name}", missing.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        set_annotation(pod, ANNOTATION, format!("LimitRanger plugin set: {}", notes.join("; ")));
    }
}

/// What an object asks for and may use.
struct Asked {
    requests: ResourceList,
    limits: ResourceList,
}

impl Asked {
    fn of_container(container: &Value) -> Asked {
        let list = |side: Side| resource_list(&container["resources"][side.field()]);
        Asked { requests: list(Side::Requests), limits: list(Side::Limits) }
    }

    fn of_pod(pod: &Value) -> Asked {
        let counting = Counting { with_status: false, with_overhead: false, with_pod_level_huge_pages: false };
        let list = |side: Side| pod_resources(pod, side, counting);
        Asked { requests: list(Side::Requests), limits: list(Side::Limits) }
    }
}

fn pod_faults(range: &Value, pod: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for limit in range["spec"]["limits"].items() {
        match limit["type"].str_or_empty() {
            "Container" => {
                for container in ["containers", "initContainers"].into_iter().flat_map(|f| pod["spec"][f].items()) {
                    check(limit, "Container", &Asked::of_container(container), &mut faults);
                }
            }
            "Pod" => check(limit, "Pod", &Asked::of_pod(pod), &mut faults),
            _ => {}
        }
    }
    faults
}

fn claim_faults(range: &Value, claim: &Value) -> Vec<String> {
    const KIND: &str = "PersistentVolumeClaim";
    let requests = resource_list(&claim["spec"]["resources"]["requests"]);
    let asked = Asked { requests, limits: ResourceList::new() };
    let mut faults = Vec::new();
    for limit in limits_of(range, KIND) {
        for (name, bound) in resource_list(&limit["min"]) {
            faults.extend(below_minimum(KIND, &name, bound, &asked));
        }
        for (name, bound) in resource_list(&limit["max"]) {
            faults.extend(above_maximum_request(KIND, &name, bound, &asked));
        }
    }
    faults
}

fn check(limit: &Value, kind: &str, asked: &Asked, faults: &mut Vec<String>) {
    for (name, bound) in limit["min"].entries() {
        faults.extend(below_minimum(kind, name, quantity(bound), asked));
    }
    for (name, bound) in limit["max"].entries() {
        faults.extend(above_maximum(kind, name, quantity(bound), asked));
    }
    for (name, bound) in limit["maxLimitRequestRatio"].entries() {
        faults.extend(above_ratio(kind, name, quantity(bound), asked));
    }
}

/// Amounts beyond this are compared in whole units: their thousandths do not fit.
const MILLI_VALUE_MAX: i64 = i64::MAX / 1000;

/// Three amounts as numbers that can be compared.
fn comparable(request: Option<&Quantity>, limit: Option<&Quantity>, bound: Quantity) -> (i64, i64, i64) {
    let all = [request.copied().unwrap_or(Quantity::ZERO), limit.copied().unwrap_or(Quantity::ZERO), bound];
    let is_small = all.iter().all(|amount| amount.value() <= MILLI_VALUE_MAX);
    let [request, limit, bound] = all.map(|amount| if is_small { amount.milli_value() } else { amount.value() });
    (request, limit, bound)
}

fn below_minimum(kind: &str, name: &str, bound: Quantity, asked: &Asked) -> Option<String> {
    let (request, limit) = (asked.requests.get(name), asked.limits.get(name));
    let (request_value, limit_value, bound_value) = comparable(request, limit, bound);
    let head = format!("minimum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{head}.  No request is specified")),
        (Some(request), _) if request_value < bound_value => Some(format!("{head}, but request is {request}")),
        (_, Some(limit)) if limit_value < bound_value => Some(format!("{head}, but limit is {limit}")),
        _ => None,
    }
}

fn above_maximum(kind: &str, name: &str, bound: Quantity, asked: &Asked) -> Option<String> {
    let (request, limit) = (asked.requests.get(name), asked.limits.get(name));
    let (request_value, limit_value, bound_value) = comparable(request, limit, bound);
    let head = format!("maximum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (_, None) => Some(format!("{head}.  No limit is specified")),
        (_, Some(limit)) if limit_value > bound_value => Some(format!("{head}, but limit is {limit}")),
        (Some(request), _) if request_value > bound_value => Some(format!("{head}, but request is {request}")),
        _ => None,
    }
}

fn above_maximum_request(kind: &str, name: &str, bound: Quantity, asked: &Asked) -> Option<String> {
    let request = asked.requests.get(name);
    let (request_value, _, bound_value) = comparable(request, None, bound);
    let head = format!("maximum {name} usage per {kind} is {bound}");
    match request {
        None => Some(format!("{head}.  No request is specified")),
        Some(request) if request_value > bound_value => Some(format!("{head}, but request is {request}")),
        Some(_) => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is what is asked for, as upstream computes it")]
fn above_ratio(kind: &str, name: &str, bound: Quantity, asked: &Asked) -> Option<String> {
    let (request, limit) = (asked.requests.get(name), asked.limits.get(name));
    let (request_value, limit_value, _) = comparable(request, limit, bound);
    let head = format!("{name} max limit to request ratio per {kind} is {bound}, but");
    if request_value == 0 {
        return Some(format!("{head} no request is specified or request is 0"));
    }
    if limit_value == 0 {
        return Some(format!("{head} no limit is specified or limit is 0"));
    }
    let ratio = limit_value as f64 / request_value as f64;
    let is_above = if bound.value() <= MILLI_VALUE_MAX {
        ratio * 1000.0 > bound.milli_value() as f64
    } else {
        ratio > bound.value() as f64
    };
    is_above.then(|| format!("{head} provided ratio is {ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;

    fn script(limits: Value) -> Script {
        let script = Script::new(|lookup| Arc::new(LimitRanger { lookup }));
        script.put("limitranges", json!({"metadata": {"namespace": "ns", "name": "l"}, "spec": {"limits": limits}}));
        script
    }

    fn pod(containers: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": containers}})
    }

    fn asking(requests: Value, limits: Value) -> Value {
        pod(json!([{"name": "c", "resources": {"requests": requests, "limits": limits}}]))
    }

    #[tokio::test]
    async fn defaults_are_filled_in_and_told() {
        let script = script(
            json!([{"type": "Container", "default": {"cpu": "1", "memory": "512Mi"}, "defaultRequest": {"cpu": "100m"}}]),
        );
        let mut two = pod(json!([{"name": "a"}, {"name": "b", "resources": {"requests": {"cpu": "50m"}}}]));
        two["spec"].set("initContainers", json!([{"name": "i"}]));
        let admitted = script.create("pods ns", two).await.ok();
        expect!["LimitRanger plugin set: cpu request for container a; cpu, memory limit for container a; cpu, memory limit for container b; cpu request for init container i; cpu, memory limit for init container i"]
            .assert_eq(admitted.annotation(ANNOTATION).unwrap());
        expect![[r#"[{"name":"a","resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m"}}},{"name":"b","resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"50m"}}}]"#]]
            .assert_eq(&admitted["spec"]["containers"].to_json_string());
    }

    #[tokio::test]
    async fn bounds_of_containers() {
        let script = script(
            json!([{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}}]),
        );
        script.create("pods ns", asking(json!({"cpu": "500m"}), json!({"cpu": "1"}))).await.ok();
        script.create("pods ns", asking(json!({"cpu": "50m"}), json!({"cpu": "100m"}))).await.refused(expect![[
            r#"403 pods "p" is forbidden: minimum cpu usage per Container is 100m, but request is 50m"#
        ]]);
        script
            .create("pods ns", asking(json!({"cpu": "1"}), json!({"cpu": "2"})))
            .await
            .refused(expect![[r#"403 pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2"#]]);
        script.create("pods ns", asking(json!({"cpu": "300m"}), json!({"cpu": "1"}))).await.refused(expect![[r#"403 pods "p" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333"#]]);
        script.create("pods ns", asking(json!({}), json!({}))).await.refused(expect![[r#"403 pods "p" is forbidden: [minimum cpu usage per Container is 100m.  No request is specified, maximum cpu usage per Container is 1.  No limit is specified, cpu max limit to request ratio per Container is 2, but no request is specified or request is 0]"#]]);
        script.update("pods ns", asking(json!({}), json!({})), asking(json!({}), json!({}))).await.ok();
    }

    #[tokio::test]
    async fn bounds_of_pods_and_claims() {
        let script = script(
            json!([{"type": "Pod", "max": {"cpu": "1"}}, {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}]),
        );
        let cpu = |amount: &str| json!({"name": amount, "resources": {"limits": {"cpu": amount}}});
        script.create("pods ns", pod(json!([cpu("500m"), cpu("500m")]))).await.ok();
        script
            .create("pods ns", pod(json!([cpu("600m"), cpu("600m")])))
            .await
            .refused(expect![[r#"403 pods "p" is forbidden: maximum cpu usage per Pod is 1, but limit is 1200m"#]]);
        let claim =
            |size: &str| json!({"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": size}}}});
        script.create("persistentvolumeclaims ns", claim("500Mi")).await.refused(expect![[r#"403 persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"#]]);
        script.update("persistentvolumeclaims ns", claim("2Gi"), claim("6Gi")).await.refused(expect![[r#"403 persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"#]]);
    }
}
