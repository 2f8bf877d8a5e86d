//! The roles and bindings of a new cluster, from the table in `policy.txt`.

use super::Seed;
use crate::authz::rbac::GROUP;
use pintle_apimachinery::{Value, json};

/// The table.
const TABLE: &str = include_str!("policy.txt");

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const ALL: &str = "create delete deletecollection get list patch update watch";

/// What the ClusterRoles of controllers begin with.
const CONTROLLER_PREFIX: &str = "system:controller:";
/// What the label that puts a role into another one begins with.
const AGGREGATE_LABEL: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Every role and binding that a cluster starts with: ClusterRoles, their bindings, Roles, their bindings.
pub fn policy() -> Vec<Seed> {
    let mut cluster_roles: Vec<Value> = Vec::new();
    let mut roles: Vec<Value> = Vec::new();
    let (mut cluster_bindings, mut bindings) = (Vec::new(), Vec::new());
    let mut is_in_cluster_role = true;
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["clusterrole", name] => {
                is_in_cluster_role = true;
                cluster_roles.push(cluster_role(name));
                cluster_bindings.extend(controller_binding(name));
            }
            ["role", namespace, name] => {
                is_in_cluster_role = false;
                roles.push(object("Role", namespace, name));
            }
            ["clusterrolebinding", name, subjects @ ..] => {
                cluster_bindings.push(binding("ClusterRoleBinding", "", name, ("ClusterRole", name), subjects));
            }
            ["rolebinding", namespace, name, role, subjects @ ..] => {
                bindings.push(binding("RoleBinding", namespace, name, ("Role", role), subjects));
            }
            _ => {
                let owners = if is_in_cluster_role { &mut cluster_roles } else { &mut roles };
                if let Some(role) = owners.last_mut() {
                    role["rules"].make_array().push(rule(line));
                }
            }
        }
    }
    [
        ("clusterroles", cluster_roles),
        ("clusterrolebindings", cluster_bindings),
        ("roles", roles),
        ("rolebindings", bindings),
    ]
    .into_iter()
    .flat_map(|(resource, objects)| {
        objects.into_iter().map(move |object| Seed { group: GROUP, version: "v1", resource, object })
    })
    .collect()
}

fn object(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    });
    if !namespace.is_empty() {
        object["metadata"].set("namespace", namespace);
    }
    if kind.ends_with("Role") {
        object.set("rules", Value::Null);
    }
    object
}

/// A ClusterRole without its rules. `admin`, `edit` and `view` are put together from others, each holding the next.
fn cluster_role(name: &str) -> Value {
    let mut role = object("ClusterRole", "", name);
    let gathers = ["admin", "edit", "view"].contains(&name);
    if gathers {
        let label = format!("{AGGREGATE_LABEL}{name}");
        role.set("aggregationRule", json!({"clusterRoleSelectors": [{"matchLabels": {(label.as_str()): "true"}}]}));
    }
    let goes_to = match name {
        "edit" => Some("admin"),
        "view" => Some("edit"),
        _ => name.strip_prefix("system:aggregate-to-"),
    };
    if let Some(target) = goes_to {
        role["metadata"]["labels"].set(&format!("{AGGREGATE_LABEL}{target}"), "true");
    }
    role
}

/// The binding of a controller's role to its service account.
fn controller_binding(role: &str) -> Option<Value> {
    let account = format!("ServiceAccount=kube-system/{}", role.strip_prefix(CONTROLLER_PREFIX)?);
    Some(binding("ClusterRoleBinding", "", role, ("ClusterRole", role), &[&account]))
}

fn binding(kind: &str, namespace: &str, name: &str, role: (&str, &str), subjects: &[&str]) -> Value {
    let mut binding = object(kind, namespace, name);
    binding.set("roleRef", json!({"apiGroup": GROUP, "kind": role.0, "name": role.1}));
    if !subjects.is_empty() {
        binding.set("subjects", subjects.iter().map(|subject| self::subject(subject)).collect::<Value>());
    }
    binding
}

fn subject(text: &str) -> Value {
    let (kind, name) = text.split_once('=').unwrap_or(("User", text));
    match name.split_once('/') {
        Some((namespace, name)) => json!({"kind": kind, "name": name, "namespace": namespace}),
        None => json!({"apiGroup": GROUP, "kind": kind, "name": name}),
    }
}

fn rule(line: &str) -> Value {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let list = |text: &str| text.split(' ').map(Value::from).collect::<Value>();
    let verbs = list(match parts[0] {
        "READ" => READ,
        "WRITE" => WRITE,
        "ALL" => ALL,
        verbs => verbs,
    });
    match parts[1..] {
        [paths] => json!({"verbs": verbs, "nonResourceURLs": list(paths)}),
        [groups, resources, ref names @ ..] => {
            let groups = groups.split(' ').map(|group| Value::from(if group == "core" { "" } else { group }));
            let mut rule =
                json!({"verbs": verbs, "apiGroups": groups.collect::<Value>(), "resources": list(resources)});
            if let [names] = names {
                rule.set("resourceNames", list(names));
            }
            rule
        }
        [] => json!({"verbs": verbs}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::meta::Meta;

    #[test]
    fn the_table_reads_as_upstreams_objects() {
        let seeds = policy();
        let count = |resource| seeds.iter().filter(|seed| seed.resource == resource).count();
        assert_eq!(["clusterroles", "clusterrolebindings", "roles", "rolebindings"].map(count), [68, 49, 7, 7]);
        let show = |resource, name| {
            let seed = seeds.iter().find(|seed| seed.resource == resource && seed.object.name() == name).unwrap();
            let mut object = seed.object.clone();
            object.remove("apiVersion");
            object["metadata"].remove("annotations");
            object.to_json_string()
        };
        expect![[r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"rbac.authorization.k8s.io/aggregate-to-edit":"true"}}]},"kind":"ClusterRole","metadata":{"labels":{"kubernetes.io/bootstrapping":"rbac-defaults","rbac.authorization.k8s.io/aggregate-to-admin":"true"},"name":"edit"},"rules":null}"#]]
            .assert_eq(&show("clusterroles", "edit"));
        expect![[r#"{"kind":"ClusterRole","metadata":{"labels":{"kubernetes.io/bootstrapping":"rbac-defaults"},"name":"system:monitoring"},"rules":[{"nonResourceURLs":["/healthz","/healthz/*","/livez","/livez/*","/metrics","/metrics/slis","/readyz","/readyz/*"],"verbs":["get"]},{"apiGroups":[""],"resources":["nodes/metrics"],"verbs":["get"]}]}"#]]
            .assert_eq(&show("clusterroles", "system:monitoring"));
        expect![[r#"{"kind":"ClusterRoleBinding","metadata":{"labels":{"kubernetes.io/bootstrapping":"rbac-defaults"},"name":"system:controller:job-controller"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:controller:job-controller"},"subjects":[{"kind":"ServiceAccount","name":"job-controller","namespace":"kube-system"}]}"#]]
            .assert_eq(&show("clusterrolebindings", "system:controller:job-controller"));
        expect![[r#"{"kind":"RoleBinding","metadata":{"labels":{"kubernetes.io/bootstrapping":"rbac-defaults"},"name":"system::leader-locking-kube-scheduler","namespace":"kube-system"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"system::leader-locking-kube-scheduler"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"system:kube-scheduler"},{"kind":"ServiceAccount","name":"kube-scheduler","namespace":"kube-system"}]}"#]]
            .assert_eq(&show("rolebindings", "system::leader-locking-kube-scheduler"));
    }
}
