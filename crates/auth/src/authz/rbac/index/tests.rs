use super::*;
use expect_test::{Expect, expect};
use pintle_apimachinery::json;

fn role(namespace: &str, name: &str, rules: Value) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "rules": rules})
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: Value) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "roleRef": {"kind": role.0, "name": role.1}, "subjects": subjects})
}

fn world() -> Rbac {
    let rbac = Rbac::new();
    let read = json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]);
    rbac.put("roles", &role("a", "read", read.clone()));
    rbac.put("clusterroles", &role("", "read", read));
    rbac.put("clusterroles", &role("", "paths", json!([{"verbs": ["get"], "nonResourceURLs": ["/x/*"]}])));
    rbac.put(
        "rolebindings",
        &binding(
            "a",
            "b",
            ("Role", "read"),
            json!([{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "robot"}]),
        ),
    );
    rbac.put("rolebindings", &binding("b", "b", ("ClusterRole", "read"), json!([{"kind": "Group", "name": "dev"}])));
    rbac.put(
        "clusterrolebindings",
        &binding(
            "",
            "p",
            ("ClusterRole", "paths"),
            json!([{"kind": "ServiceAccount", "name": "robot", "namespace": "a"}]),
        ),
    );
    rbac.put("rolebindings", &binding("c", "b", ("Role", "gone"), json!([{"kind": "User", "name": "jane"}])));
    rbac.put("rolebindings", &binding("c", "c", ("ClusterRole", "away"), json!([{"kind": "User", "name": "jane"}])));
    rbac
}

fn check(rbac: &Rbac, script: &str, expect: Expect) {
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let (name, groups) = words[0].split_once('+').unwrap_or((words[0], ""));
        let user = user::named(name, &groups.split(',').filter(|g| !g.is_empty()).collect::<Vec<_>>());
        let attributes = match words[2].strip_prefix('/') {
            Some(_) => Attributes::path(&user, words[1], words[2]),
            None => {
                Attributes::resource(&user, words[1], "", words[2]).at(words.get(3).copied().unwrap_or_default(), "")
            }
        };
        let verdict = rbac.authorize(&attributes);
        out.push_str(&format!("{line}: {:?} {}\n", verdict.decision, verdict.reason));
    }
    expect.assert_eq(&out);
}

#[test]
fn who_may_what_and_why() {
    check(
        &world(),
        "jane list pods a
         jane watch pods a
         jane list pods b
         jane list pods
         jane+dev list pods b
         system:serviceaccount:a:robot get pods a
         system:serviceaccount:b:robot get pods a
         system:serviceaccount:a:robot get /x/y
         jane get /x/y
         jane list pods c",
        expect![[r#"
            jane list pods a: Allow RBAC: allowed by RoleBinding "b/a" of Role "read" to User "jane"
            jane watch pods a: NoOpinion 
            jane list pods b: NoOpinion 
            jane list pods: NoOpinion 
            jane+dev list pods b: Allow RBAC: allowed by RoleBinding "b/b" of ClusterRole "read" to Group "dev"
            system:serviceaccount:a:robot get pods a: Allow RBAC: allowed by RoleBinding "b/a" of Role "read" to ServiceAccount "robot/a"
            system:serviceaccount:b:robot get pods a: NoOpinion 
            system:serviceaccount:a:robot get /x/y: Allow RBAC: allowed by ClusterRoleBinding "p" of ClusterRole "paths" to ServiceAccount "robot/a"
            jane get /x/y: NoOpinion 
            jane list pods c: NoOpinion RBAC: [role.rbac.authorization.k8s.io "gone" not found, clusterrole.rbac.authorization.k8s.io "away" not found]
        "#]],
    );
}

#[test]
fn changes_take_effect_at_once() {
    let rbac = world();
    let jane = user::named("jane", &[]);
    let is_allowed = |verb| rbac.authorize(&Attributes::resource(&jane, verb, "", "pods").at("a", "")).is_allowed();
    assert!(is_allowed("list") && !is_allowed("watch"));
    rbac.put("roles", &role("a", "read", json!([{"verbs": ["watch"], "apiGroups": [""], "resources": ["pods"]}])));
    assert!(!is_allowed("list") && is_allowed("watch"));
    rbac.remove("rolebindings", "a", "b");
    assert!(!is_allowed("watch"));
    rbac.replace(
        "rolebindings",
        [&binding("a", "b", ("ClusterRole", "read"), json!([{"kind": "User", "name": "jane"}]))],
    );
    assert!(is_allowed("list"));
}

#[test]
fn the_rules_of_a_user_and_the_roles_missing() {
    let rbac = world();
    let set = rbac.rules_for(&user::named("system:serviceaccount:a:robot", &[]), "a");
    let rules: Vec<String> = set.rules.iter().map(|rule| rule.to_string()).collect();
    expect![[r#"
        {NonResourceURLs:["/x/*"], Verbs:["get"]}
        {APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#]]
    .assert_eq(&rules.join("\n"));
    let set = rbac.rules_for(&user::named("jane", &[]), "c");
    expect![[
        r#"[role.rbac.authorization.k8s.io "gone" not found, clusterrole.rbac.authorization.k8s.io "away" not found]"#
    ]]
    .assert_eq(&set.errors.join("\n"));
}
