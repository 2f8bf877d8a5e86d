//! The FlowSchemas and PriorityLevelConfigurations that every cluster holds. Those that are mandatory keep the form
//! given here; the others are suggestions, which administrators may change.

use crate::common::equality;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Value, json};
use std::sync::OnceLock;

/// `"true"` on an object whose spec the server keeps as it is given here.
pub const AUTO_UPDATE_ANNOTATION: &str = "apf.kubernetes.io/autoupdate-spec";

/// The names of the mandatory objects of both kinds.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// The priority levels, the mandatory ones first.
pub fn priority_levels() -> &'static [Value] {
    static LEVELS: OnceLock<Vec<Value>> = OnceLock::new();
    LEVELS.get_or_init(|| {
        let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
        let catch_all = limited(5, 0, json!({"type": "Reject"}));
        let queue = |queues: i64, hand_size: i64| {
            json!({"type": "Queue", "queuing": {"queues": queues, "handSize": hand_size, "queueLengthLimit": 50}})
        };
        let suggested = [
            ("system", 30, 33, queue(64, 6)),
            ("node-high", 40, 25, queue(64, 6)),
            ("leader-election", 10, 0, queue(16, 4)),
            ("workload-high", 40, 50, queue(128, 6)),
            ("workload-low", 100, 90, queue(128, 6)),
            ("global-default", 20, 50, queue(128, 6)),
        ];
        let mut levels = vec![object("PriorityLevelConfiguration", "exempt", exempt)];
        levels.push(object("PriorityLevelConfiguration", "catch-all", catch_all));
        levels.extend(suggested.map(|(name, shares, lendable, response)| {
            object("PriorityLevelConfiguration", name, limited(shares, lendable, response))
        }));
        levels
    })
}

fn limited(shares: i64, lendable_percent: i64, limit_response: Value) -> Value {
    json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "lendablePercent": lendable_percent, "limitResponse": limit_response}})
}

/// The flow schemas, the mandatory ones first.
pub fn flow_schemas() -> &'static [Value] {
    static SCHEMAS: OnceLock<Vec<Value>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
        let user = |name: &str| json!({"kind": "User", "user": {"name": name}});
        let everyone = || vec![group("system:unauthenticated"), group("system:authenticated")];
        let system_accounts =
            || json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}});
        let (manager, scheduler) = (user("system:kube-controller-manager"), user("system:kube-scheduler"));
        let leases = |verbs: Value| {
            json!({"verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]})
        };
        let health = json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]);
        let elections = json!([leases(json!(["get", "create", "update"]))]);
        let nodes = json!([
            {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"], "clusterScope": true,
             "namespaces": ["*"]},
            leases(json!(["*"]))
        ]);
        let (by_user, by_namespace) = ("ByUser", "ByNamespace");
        let node_group = || vec![group("system:nodes")];
        let accounts = vec![group("system:serviceaccounts")];
        vec![
            schema("exempt", "exempt", 1, "", vec![group("system:masters")], anything()),
            schema("catch-all", "catch-all", 10000, by_user, everyone(), anything()),
            schema("system-nodes", "system", 500, by_user, node_group(), anything()),
            schema("system-node-high", "node-high", 400, by_user, node_group(), json!({"resourceRules": nodes})),
            schema("probes", "exempt", 2, "", everyone(), json!({"nonResourceRules": health})),
            schema(
                "system-leader-election",
                "leader-election",
                100,
                by_user,
                vec![manager.clone(), scheduler.clone(), system_accounts()],
                json!({"resourceRules": elections}),
            ),
            schema("kube-controller-manager", "workload-high", 800, by_namespace, vec![manager], anything()),
            schema("kube-scheduler", "workload-high", 800, by_namespace, vec![scheduler], anything()),
            schema(
                "kube-system-service-accounts",
                "workload-high",
                900,
                by_namespace,
                vec![system_accounts()],
                anything(),
            ),
            schema("service-accounts", "workload-low", 9000, by_user, accounts, anything()),
            schema("global-default", "global-default", 9900, by_user, everyone(), anything()),
        ]
    })
}

/// The rules that match every request.
fn anything() -> Value {
    json!({
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}
        ],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    })
}

fn schema(
    name: &str,
    level: &str,
    precedence: i64,
    distinguisher: &str,
    subjects: Vec<Value>,
    mut rules: Value,
) -> Value {
    rules.set("subjects", subjects);
    let mut spec = json!({
        "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence, "rules": [rules]
    });
    if !distinguisher.is_empty() {
        spec.set("distinguisherMethod", json!({"type": distinguisher}));
    }
    object("FlowSchema", name, spec)
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "annotations": {(AUTO_UPDATE_ANNOTATION): "true"}}, "spec": spec
    })
}

/// The mandatory object of this name among `objects`.
pub(super) fn mandatory(objects: &'static [Value], name: &str) -> Option<&'static Value> {
    if !MANDATORY.contains(&name) {
        return None;
    }
    objects.iter().find(|object| object.name() == name)
}

/// What becomes of the stored object `current` at a start of the server, where `wanted` is the one of its name from
/// [`priority_levels`] or [`flow_schemas`]; `None` when nothing does. Specs follow what is given here unless an
/// administrator took the object over, by its annotation or by changing the spec.
pub fn revision(current: &Value, wanted: &Value) -> Option<Value> {
    let said = current.annotation(AUTO_UPDATE_ANNOTATION).and_then(go_bool);
    let follows = MANDATORY.contains(&wanted.name()) || said.unwrap_or_else(|| current.generation() == 1);
    let is_changed = follows && !is_same_spec(current, wanted);
    if said == Some(follows) && !is_changed {
        return None;
    }
    let mut revised = current.clone();
    if is_changed {
        revised.set("spec", wanted["spec"].clone());
    }
    if said != Some(follows) {
        let annotations = revised.make("metadata").make("annotations");
        annotations.set(AUTO_UPDATE_ANNOTATION, if follows { "true" } else { "false" });
    }
    Some(revised)
}

fn is_same_spec(current: &Value, wanted: &Value) -> bool {
    if current.kind() != "PriorityLevelConfiguration" {
        return equality::semantic(&current["spec"], &wanted["spec"], "flowcontrol/v1.FlowSchemaSpec");
    }
    let mut spec = wanted["spec"].clone();
    if wanted.name() == "exempt" {
        let exempt = current.at("spec.exempt");
        if exempt.is_null() {
            return false;
        }
        // administrators may change this one part
        spec.set("exempt", exempt.clone());
    }
    equality::semantic(&current["spec"], &spec, "flowcontrol/v1.PriorityLevelConfigurationSpec")
}

/// A boolean as Go reads it from text.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{creates, prepared};

    #[test]
    fn the_objects_keep_the_rules() {
        for (resource, objects) in [("flowschemas", flow_schemas()), ("prioritylevelconfigurations", priority_levels())]
        {
            let of = format!("flowcontrol.apiserver.k8s.io/v1/{resource}");
            for object in objects {
                assert_eq!(creates(&of, object, &[json!({})]), "{}\n", "{object}");
                assert_eq!(prepared(&of, object)["spec"], object["spec"], "complete as they are");
            }
        }
    }

    #[test]
    fn what_a_start_revises() {
        let wanted = &priority_levels()[0];
        assert_eq!(revision(wanted, wanted), None);
        let mut lenient = wanted.clone();
        lenient["spec"]["exempt"].set("lendablePercent", 7);
        assert_eq!(revision(&lenient, wanted), None, "this may be changed");
        lenient["spec"].set("type", "Limited");
        assert_eq!(revision(&lenient, wanted).as_ref(), Some(wanted));

        let wanted = &flow_schemas()[2];
        let mut taken = wanted.clone();
        taken["spec"].set("matchingPrecedence", 7);
        taken["metadata"].set("generation", 2);
        taken["metadata"].remove("annotations");
        let revised = revision(&taken, wanted).unwrap();
        assert_eq!(revised["spec"], taken["spec"]);
        assert_eq!(revised.annotation(AUTO_UPDATE_ANNOTATION), Some("false"));
        assert_eq!(revision(&revised, wanted), None);
        taken["metadata"].set("generation", 1);
        assert_eq!(revision(&taken, wanted).unwrap()["spec"], wanted["spec"], "nobody changed it: it is outdated");
    }
}
