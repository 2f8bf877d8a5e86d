//! The rules of FlowSchemas and PriorityLevelConfigurations.

use super::bootstrap;
use crate::common::checks::{dns1123_label, dns1123_subdomain};
use crate::common::{At, Seen, equality, goform, required};
use pintle_apimachinery::field::Shown;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, names};

/// The last precedence that a FlowSchema can have.
const PRECEDENCE_MAX: i64 = 10_000;
/// A priority level may have this many queues.
const QUEUES_MAX: i64 = 10_000_000;
/// Dealing queues to a flow may use this many bits of its hash.
const HASH_BITS_MAX: f64 = 60.0;

/// The verbs that rules may name, sorted.
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The kinds of subjects: kind, member, sorted.
const SUBJECTS: [(&str, &str); 3] = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];

/// Set only by a conversion from a version that is gone.
const ROUND_TRIP_ANNOTATION: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// Checks a whole FlowSchema.
pub(super) fn validate_flow_schema(object: &Value, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let precedence = spec.child("matchingPrecedence");
    if precedence.int() <= 0 {
        errors.push(precedence.invalid_int("must be a positive value"));
    }
    if precedence.int() > PRECEDENCE_MAX {
        errors.push(precedence.invalid_int(format!("must not be greater than {PRECEDENCE_MAX}")));
    }
    if precedence.int() == 1 && object.name() != "exempt" {
        errors.push(precedence.invalid_int("only the schema named 'exempt' may have matchingPrecedence 1"));
    }
    let method = spec.child("distinguisherMethod");
    if method.is_set() && !matches!(method["type"].str_or_empty(), "ByNamespace" | "ByUser") {
        let error = method.child("type").not_supported(&["ByNamespace", "ByUser"]);
        let shown = goform::compact(&method, "flowcontrol/v1.FlowDistinguisherMethod");
        errors.push(FieldError { shown: Some(shown), ..error });
    }
    let level = spec.child("priorityLevelConfiguration");
    let level = level.child("name");
    if level.text().is_empty() {
        errors.push(level.required("must reference a priority level"));
    } else {
        dns1123_subdomain(&level, errors);
    }
    spec.child("rules").each().for_each(|rule| validate_rule(&rule, errors));
    if let Some(fixed) = bootstrap::mandatory(bootstrap::flow_schemas(), object.name())
        && !equality::semantic(&spec, &fixed["spec"], "flowcontrol/v1.FlowSchemaSpec")
    {
        let rule = format!("spec of '{}' must equal the fixed value", object.name());
        errors.push(not_fixed(&spec, "flowcontrol/v1.FlowSchemaSpec", rule));
    }
    validate_conditions(object, errors);
}

fn not_fixed(spec: &At<'_>, type_name: &str, rule: String) -> FieldError {
    FieldError { shown: Some(goform::compact(spec, type_name)), ..spec.invalid_showing("", rule) }
}

/// Checks the conditions of either kind.
pub(super) fn validate_conditions(object: &Value, errors: &mut ErrorList) {
    let status = At::top(object, "status");
    let mut seen = Seen::new();
    for condition in status.child("conditions").each() {
        let kind = condition.child("type");
        if !seen.insert(condition.value()["type"].str_or_empty()) {
            errors.push(kind.duplicate());
        }
        required(&kind, errors);
    }
}

fn validate_rule(at: &At<'_>, errors: &mut ErrorList) {
    let subjects = at.child("subjects");
    if subjects.items().is_empty() {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    subjects.each().for_each(|subject| validate_subject(&subject, errors));
    let (resources, others) = (at.child("resourceRules"), at.child("nonResourceRules"));
    if resources.items().is_empty() && others.items().is_empty() {
        errors.push(at.required("at least one of resourceRules and nonResourceRules has to be non-empty"));
    }
    resources.each().for_each(|rule| validate_resource_rule(&rule, errors));
    others.each().for_each(|rule| validate_non_resource_rule(&rule, errors));
}

fn validate_subject(at: &At<'_>, errors: &mut ErrorList) {
    let kind = at.child("kind");
    let Some((_, member)) = SUBJECTS.iter().find(|(name, _)| *name == kind.text()) else {
        errors.push(kind.not_supported(&SUBJECTS.map(|(name, _)| name)));
        return;
    };
    let subject = at.child(member);
    if !subject.is_set() {
        errors.push(subject.required(format!("{member} is required when subject kind is '{}'", kind.text())));
    } else {
        let name = subject.child("name");
        if required(&name, errors) && *member == "serviceAccount" && name.text() != "*" {
            dns1123_subdomain(&name, errors);
        }
        if *member == "serviceAccount" {
            let namespace = subject.child("namespace");
            if namespace.text().is_empty() {
                errors.push(namespace.required("must specify namespace for service account"));
            } else {
                dns1123_label(&namespace, errors);
            }
        }
    }
    for (other, other_member) in [SUBJECTS[1], SUBJECTS[2], SUBJECTS[0]] {
        let other_subject = at.child(other_member);
        if other_member != *member && other_subject.is_set() {
            let rule = format!("{other_member} is forbidden when subject kind is not '{other}'");
            errors.push(other_subject.forbidden(rule));
        }
    }
}

fn has_wildcard(list: &Value) -> bool {
    list.items().iter().any(|item| item.as_str() == Some("*"))
}

/// A list in which `*` stands alone. `what` the others are called. Answers whether its items are to be looked at.
fn validate_wildcard(list: &At<'_>, what: &str, errors: &mut ErrorList) -> bool {
    let is_wild = has_wildcard(list);
    if is_wild && list.items().len() > 1 {
        let rule = format!("if '*' is present, must not specify other {what}");
        errors.push(list.invalid(rule));
    }
    !is_wild
}

fn validate_verbs(verbs: &At<'_>, errors: &mut ErrorList) {
    if verbs.items().is_empty() {
        errors.push(verbs.required("verbs must contain at least one value"));
    } else if validate_wildcard(verbs, "verbs", errors)
        && !verbs.items().iter().all(|verb| VERBS.contains(&verb.str_or_empty()))
    {
        let error = verbs.not_supported(&VERBS);
        errors.push(FieldError { shown: Some(verbs.value().shown()), ..error });
    }
}

fn validate_non_resource_rule(at: &At<'_>, errors: &mut ErrorList) {
    validate_verbs(&at.child("verbs"), errors);
    let urls = at.child("nonResourceURLs");
    if urls.items().is_empty() {
        errors.push(urls.required("nonResourceURLs must contain at least one value"));
    } else if validate_wildcard(&urls, "non-resource URLs", errors) {
        errors.extend(urls.each().filter_map(|url| Some(url.invalid(path_fault(url.text())?))));
    }
}

fn path_fault(path: &str) -> Option<&'static str> {
    let n_stars = path.matches('*').count();
    Some(match path {
        "" => "must not be empty",
        "/" => return None,
        _ if !path.starts_with('/') => "must start with slash",
        _ if path.contains(' ') => "must not contain white-space",
        _ if path.contains("//") => "must not contain double slash",
        _ if n_stars > 1 || (n_stars == 1 && !path.ends_with("/*")) => "wildcard can only do suffix matching",
        _ => return None,
    })
}

fn validate_resource_rule(at: &At<'_>, errors: &mut ErrorList) {
    validate_verbs(&at.child("verbs"), errors);
    for (field, one, others) in [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")] {
        let list = at.child(field);
        if list.items().is_empty() {
            errors.push(list.required(format!("resource rules must supply at least one {one}")));
        } else {
            validate_wildcard(&list, others, errors);
        }
    }
    let namespaces = at.child("namespaces");
    if namespaces.items().is_empty() && !at["clusterScope"].is_true() {
        errors
            .push(namespaces.required("resource rules that are not cluster scoped must supply at least one namespace"));
    } else if validate_wildcard(&namespaces, "namespaces", errors) {
        for namespace in namespaces.each() {
            let told =
                |fault| namespace.invalid(format!("each member of this list must be '*' or a DNS-1123 label; {fault}"));
            errors.extend(names::dns1123_label(namespace.text()).into_iter().map(told));
        }
    }
}

/// Checks a whole PriorityLevelConfiguration.
pub(super) fn validate_priority_level(object: &Value, errors: &mut ErrorList) {
    const TYPE: &str = "flowcontrol/v1.PriorityLevelConfigurationSpec";
    if object.annotation(ROUND_TRIP_ANNOTATION).is_some() {
        let path = Path::new("metadata");
        let rule = format!("annotation '{ROUND_TRIP_ANNOTATION}' is forbidden");
        errors.push(FieldError::forbidden(&path.child("annotations"), rule));
    }
    let name = object.name();
    let spec = At::top(object, "spec");
    validate_priority_level_spec(&spec, name, errors);
    if let Some(fixed) = bootstrap::mandatory(bootstrap::priority_levels(), name) {
        let (is_same, exception) = if name == "exempt" {
            let mut fixed = fixed["spec"].clone();
            fixed.set("exempt", spec["exempt"].clone());
            (equality::semantic(&spec, &fixed, TYPE), " except the 'spec.exempt' field")
        } else {
            (equality::semantic(&spec, &fixed["spec"], TYPE), "")
        };
        if !is_same {
            errors.push(not_fixed(&spec, TYPE, format!("spec of '{name}'{exception} must equal the fixed value")));
        }
    }
    validate_conditions(object, errors);
}

fn validate_priority_level_spec(spec: &At<'_>, name: &str, errors: &mut ErrorList) {
    let kind = spec.child("type");
    let (limited, exempt) = (spec.child("limited"), spec.child("exempt"));
    if (name == "exempt") != (kind.text() == "Exempt") {
        errors.push(kind.invalid("must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.push(limited.forbidden("must be nil if the type is not Limited"));
            }
            let shares = exempt.child("nominalConcurrencyShares");
            if shares.int() < 0 {
                errors.push(shares.invalid("must be a non-negative integer"));
            }
            validate_lendable(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.push(exempt.forbidden("must be nil if the type is Limited"));
            }
            if limited.is_set() {
                validate_limited(&limited, errors);
            } else {
                errors.push(limited.required("must not be empty when type is Limited"));
            }
        }
        _ => errors.push(kind.not_supported(&["Exempt", "Limited"])),
    }
}

fn validate_lendable(at: &At<'_>, errors: &mut ErrorList) {
    let lendable = at.child("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        errors.push(lendable.invalid("must be between 0 and 100, inclusive"));
    }
}

fn validate_limited(at: &At<'_>, errors: &mut ErrorList) {
    let shares = at.child("nominalConcurrencyShares");
    if shares.int() < 0 {
        errors.push(shares.invalid("must be a non-negative integer"));
    }
    let response = at.child("limitResponse");
    let (kind, queuing) = (response.child("type"), response.child("queuing"));
    match kind.text() {
        "Reject" if queuing.is_set() => {
            errors.push(queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"));
        }
        "Reject" => {}
        "Queue" if queuing.is_set() => validate_queuing(&queuing, errors),
        "Queue" => errors.push(queuing.required("must not be empty if limited.limitResponse.type is Limited")),
        _ => errors.push(kind.not_supported(&["Queue", "Reject"])),
    }
    validate_lendable(at, errors);
    let borrowing = at.child("borrowingLimitPercent");
    if borrowing.int() < 0 {
        errors.push(borrowing.invalid("if specified, must be a non-negative integer"));
    }
}

fn validate_queuing(at: &At<'_>, errors: &mut ErrorList) {
    let (length, queues, hand) = (at.child("queueLengthLimit"), at.child("queues"), at.child("handSize"));
    if length.int() <= 0 {
        errors.push(length.invalid_int("must be positive"));
    }
    let n_queues = queues.int();
    if n_queues <= 0 {
        errors.push(queues.invalid_int("must be positive"));
    } else if n_queues > QUEUES_MAX {
        errors.push(queues.invalid_int(format!("must not be greater than {QUEUES_MAX}")));
    }
    if hand.int() <= 0 {
        errors.push(hand.invalid_int("must be positive"));
    } else if hand.int() > n_queues {
        errors.push(hand.invalid_int(format!("should not be greater than queues ({n_queues})")));
    } else if ((n_queues as f64).log2() * hand.int() as f64).ceil() > HASH_BITS_MAX {
        errors.push(hand.invalid_int(format!(
            "required entropy bits of deckSize {n_queues} and handSize {} should not be greater than {HASH_BITS_MAX}",
            hand.int()
        )));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    #[test]
    fn flow_schemas() {
        let base = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
            "spec": {"priorityLevelConfiguration": {"name": "x"}}
        });
        let rule = |rule: Value| json!({"spec": {"rules": [rule]}});
        let me = json!([{"kind": "User", "user": {"name": "me"}}]);
        let resources = |more: Value| {
            let mut it = json!({"verbs": ["get"], "apiGroups": ["a"], "resources": ["b"], "namespaces": ["c"]});
            more.entries().for_each(|(key, member)| it.set(key, member.clone()));
            rule(json!({"subjects": me.clone(), "resourceRules": [it]}))
        };
        let out = creates(
            "flowcontrol.apiserver.k8s.io/v1/flowschemas",
            &base,
            &[
                json!({"spec": {"matchingPrecedence": -1, "priorityLevelConfiguration": {"name": ""}}}),
                json!({"spec": {"matchingPrecedence": 1, "distinguisherMethod": {"type": "ByMood"}}}),
                json!({"spec": {"matchingPrecedence": 10001, "priorityLevelConfiguration": {"name": "A"}}}),
                rule(json!({})),
                rule(json!({"subjects": [
                    {"kind": "Robot"}, {"kind": "User", "group": {"name": "x"}, "serviceAccount": {}},
                    {"kind": "ServiceAccount", "serviceAccount": {"name": "A", "namespace": ""}, "user": {}},
                    {"kind": "Group", "group": {"name": ""}}],
                    "nonResourceRules": [
                        {"verbs": [], "nonResourceURLs": []},
                        {"verbs": ["*", "get"], "nonResourceURLs": ["*", "/x"]},
                        {"verbs": ["x"], "nonResourceURLs": ["", "/", "x", "/ ", "//", "/*x", "/a/*"]}]})),
                resources(json!({})),
                resources(json!({"verbs": ["head"], "apiGroups": [], "resources": ["*", "x"], "namespaces": []})),
                resources(json!({"namespaces": ["A", "*"]})),
                resources(json!({"namespaces": ["A"]})),
                json!({"metadata": {"name": "catch-all"}, "spec": {"rules": []}}),
            ],
        );
        expect![[r#"
            {"spec":{"matchingPrecedence":-1,"priorityLevelConfiguration":{"name":""}}}
                spec.matchingPrecedence: Invalid value: -1: must be a positive value
                spec.priorityLevelConfiguration.name: Required value: must reference a priority level
            {"spec":{"distinguisherMethod":{"type":"ByMood"},"matchingPrecedence":1}}
                spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1
                spec.distinguisherMethod.type: Unsupported value: {"Type":"ByMood"}: supported values: "ByNamespace", "ByUser"
            {"spec":{"matchingPrecedence":10001,"priorityLevelConfiguration":{"name":"A"}}}
                spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000
                spec.priorityLevelConfiguration.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            {"spec":{"rules":[{}]}}
                spec.rules[0].subjects: Required value: subjects must contain at least one value
                spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty
            {"spec":{"rules":[{"nonResourceRules":[{"nonResourceURLs":[],"verbs":[]},{"nonResourceURLs":["*","/x"],"verbs":["*","get"]},{"nonResourceURLs":["","/","x","/ ","//","/*x","/a/*"],"verbs":["x"]}],"subjects":[{"kind":"Robot"},{"group":{"name":"x"},"kind":"User","serviceAccount":{}},{"kind":"ServiceAccount","serviceAccount":{"name":"A","namespace":""},"user":{}},{"group":{"name":""},"kind":"Group"}]}]}}
                spec.rules[0].subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"
                spec.rules[0].subjects[1].user: Required value: user is required when subject kind is 'User'
                spec.rules[0].subjects[1].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'
                spec.rules[0].subjects[1].group: Forbidden: group is forbidden when subject kind is not 'Group'
                spec.rules[0].subjects[2].serviceAccount.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.rules[0].subjects[2].serviceAccount.namespace: Required value: must specify namespace for service account
                spec.rules[0].subjects[2].user: Forbidden: user is forbidden when subject kind is not 'User'
                spec.rules[0].subjects[3].group.name: Required value
                spec.rules[0].nonResourceRules[0].verbs: Required value: verbs must contain at least one value
                spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value
                spec.rules[0].nonResourceRules[1].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs
                spec.rules[0].nonResourceRules[1].nonResourceURLs: Invalid value: ["*","/x"]: if '*' is present, must not specify other non-resource URLs
                spec.rules[0].nonResourceRules[2].verbs: Unsupported value: ["x"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"
                spec.rules[0].nonResourceRules[2].nonResourceURLs[0]: Invalid value: "": must not be empty
                spec.rules[0].nonResourceRules[2].nonResourceURLs[2]: Invalid value: "x": must start with slash
                spec.rules[0].nonResourceRules[2].nonResourceURLs[3]: Invalid value: "/ ": must not contain white-space
                spec.rules[0].nonResourceRules[2].nonResourceURLs[4]: Invalid value: "//": must not contain double slash
                spec.rules[0].nonResourceRules[2].nonResourceURLs[5]: Invalid value: "/*x": wildcard can only do suffix matching
            {"spec":{"rules":[{"resourceRules":[{"apiGroups":["a"],"namespaces":["c"],"resources":["b"],"verbs":["get"]}],"subjects":[{"kind":"User","user":{"name":"me"}}]}]}}
            {"spec":{"rules":[{"resourceRules":[{"apiGroups":[],"namespaces":[],"resources":["*","x"],"verbs":["head"]}],"subjects":[{"kind":"User","user":{"name":"me"}}]}]}}
                spec.rules[0].resourceRules[0].verbs: Unsupported value: ["head"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"
                spec.rules[0].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group
                spec.rules[0].resourceRules[0].resources: Invalid value: ["*","x"]: if '*' is present, must not specify other resources
                spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace
            {"spec":{"rules":[{"resourceRules":[{"apiGroups":["a"],"namespaces":["A","*"],"resources":["b"],"verbs":["get"]}],"subjects":[{"kind":"User","user":{"name":"me"}}]}]}}
                spec.rules[0].resourceRules[0].namespaces: Invalid value: ["A","*"]: if '*' is present, must not specify other namespaces
            {"spec":{"rules":[{"resourceRules":[{"apiGroups":["a"],"namespaces":["A"],"resources":["b"],"verbs":["get"]}],"subjects":[{"kind":"User","user":{"name":"me"}}]}]}}
                spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: "A": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            {"metadata":{"name":"catch-all"},"spec":{"rules":[]}}
                spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"x"},"MatchingPrecedence":1000,"DistinguisherMethod":null,"Rules":null}: spec of 'catch-all' must equal the fixed value
        "#]].assert_eq(&out);
        let status = json!({"status": {"conditions": [{"type": ""}, {"type": "a"}, {"type": "a"}]}});
        let out = updates("flowcontrol.apiserver.k8s.io/v1/flowschemas", "status", &base, &[status]);
        expect![[r#"
            {"status":{"conditions":[{"type":""},{"type":"a"},{"type":"a"}]}}
                status.conditions[0].type: Required value
                status.conditions[2].type: Duplicate value: "a"
        "#]]
        .assert_eq(&out);
    }

    #[test]
    fn priority_levels() {
        let base = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}
        });
        let limited = |limited: Value| json!({"spec": {"limited": limited}});
        let queuing = |queuing: Value| json!({"spec": {"limited": {"limitResponse": {"queuing": queuing}}}});
        let out = creates(
            "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            &base,
            &[
                json!({"spec": {"type": "Exempt"}}),
                json!({"spec": {"type": "x"}}),
                json!({"spec": {"limited": null, "exempt": {}}}),
                json!({"metadata": {"name": "exempt"}, "spec": {"type": "Exempt", "exempt": {
                    "nominalConcurrencyShares": -1, "lendablePercent": 101}}}),
                json!({"metadata": {"name": "catch-all", "annotations": {(super::ROUND_TRIP_ANNOTATION): ""}}}),
                limited(json!({"nominalConcurrencyShares": -1, "lendablePercent": -1, "borrowingLimitPercent": -1})),
                limited(json!({"limitResponse": {"type": "Reject"}})),
                limited(json!({"limitResponse": {"queuing": null}})),
                limited(json!({"limitResponse": {"type": ""}})),
                queuing(json!({"queues": -1, "handSize": -1, "queueLengthLimit": -1})),
                queuing(json!({"queues": 10_000_001, "handSize": 10})),
                queuing(json!({"queues": 4, "handSize": 5})),
                queuing(json!({"queues": 64, "handSize": 10})),
            ],
        );
        expect![[r#"
            {"spec":{"type":"Exempt"}}
                spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'
                spec.limited: Forbidden: must be nil if the type is not Limited
            {"spec":{"type":"x"}}
                spec.type: Unsupported value: "x": supported values: "Exempt", "Limited"
            {"spec":{"exempt":{},"limited":null}}
                spec.exempt: Forbidden: must be nil if the type is Limited
                spec.limited: Required value: must not be empty when type is Limited
            {"metadata":{"name":"exempt"},"spec":{"exempt":{"lendablePercent":101,"nominalConcurrencyShares":-1},"type":"Exempt"}}
                spec.limited: Forbidden: must be nil if the type is not Limited
                spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer
                spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive
                spec: Invalid value: {"Type":"Exempt","Limited":{"NominalConcurrencyShares":30,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":64,"HandSize":8,"QueueLengthLimit":50}},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":{"NominalConcurrencyShares":-1,"LendablePercent":101}}: spec of 'exempt' except the 'spec.exempt' field must equal the fixed value
            {"metadata":{"annotations":{"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares":""},"name":"catch-all"}}
                metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden
                spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":30,"LimitResponse":{"Type":"Queue","Queuing":{"Queues":64,"HandSize":8,"QueueLengthLimit":50}},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: spec of 'catch-all' must equal the fixed value
            {"spec":{"limited":{"borrowingLimitPercent":-1,"lendablePercent":-1,"nominalConcurrencyShares":-1}}}
                spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer
                spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive
                spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer
            {"spec":{"limited":{"limitResponse":{"type":"Reject"}}}}
                spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not Limited
            {"spec":{"limited":{"limitResponse":{"queuing":null}}}}
                spec.limited.limitResponse.queuing: Required value: must not be empty if limited.limitResponse.type is Limited
            {"spec":{"limited":{"limitResponse":{"type":""}}}}
                spec.limited.limitResponse.type: Unsupported value: "": supported values: "Queue", "Reject"
            {"spec":{"limited":{"limitResponse":{"queuing":{"handSize":-1,"queueLengthLimit":-1,"queues":-1}}}}}
                spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive
                spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive
                spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive
            {"spec":{"limited":{"limitResponse":{"queuing":{"handSize":10,"queues":10000001}}}}}
                spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000
                spec.limited.limitResponse.queuing.handSize: Invalid value: 10: required entropy bits of deckSize 10000001 and handSize 10 should not be greater than 60
            {"spec":{"limited":{"limitResponse":{"queuing":{"handSize":5,"queues":4}}}}}
                spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)
            {"spec":{"limited":{"limitResponse":{"queuing":{"handSize":10,"queues":64}}}}}
        "#]].assert_eq(&out);
    }
}
