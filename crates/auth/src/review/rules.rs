//! `SelfSubjectRulesReview`: everything I may do in a namespace.

use crate::authz::Authorizer;
use crate::authz::rbac::Rule;
use pintle_apimachinery::field::aggregate;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value, json};
use pintle_kinds::UserInfo;

/// The answer: a new object, with nothing of the question in it.
///
/// # Errors
/// 400 when the question names no namespace.
pub fn answer(question: &Value, user: &UserInfo, authorizer: &dyn Authorizer) -> Result<Value> {
    let namespace = question["spec"]["namespace"].str_or_empty();
    if namespace.is_empty() {
        return Err(Box::new(Status::bad_request("no namespace on request")));
    }
    let found = authorizer.rules_for(user, namespace);
    let rules_with = |has: fn(&Rule) -> bool, fields: &[&str]| -> Value {
        let rules = found.rules.iter().filter(|rule| has(rule));
        rules.map(|rule| only(&rule.to_value(), fields)).collect()
    };
    let mut status = json!({
        "resourceRules": rules_with(|rule| !rule.resources.is_empty(), &["verbs", "apiGroups", "resources", "resourceNames"]),
        "nonResourceRules": rules_with(|rule| !rule.non_resource_urls.is_empty(), &["verbs", "nonResourceURLs"]),
        "incomplete": found.is_incomplete,
    });
    if !found.errors.is_empty() {
        status.set("evaluationError", aggregate(&found.errors));
    }
    Ok(json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

fn only(rule: &Value, fields: &[&str]) -> Value {
    let mut value = Value::object();
    for field in fields {
        if rule.has(field) {
            value.set(field, rule[field].clone());
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::AlwaysAllow;
    use crate::user;
    use expect_test::expect;

    #[test]
    fn rules_by_what_they_are_about() {
        let jane = user::named("jane", &[]);
        let answer = |namespace: &str| answer(&json!({"spec": {"namespace": namespace}}), &jane, &AlwaysAllow);
        expect![[r#"{"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["*"]}],"resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}"#]]
            .assert_eq(&answer("ns").unwrap()["status"].to_json_string());
        assert_eq!(answer("").unwrap_err().message, "no namespace on request");
    }
}
