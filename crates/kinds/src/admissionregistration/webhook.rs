//! MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

use super::rules::{FAILURE_POLICIES, MATCH_POLICIES, validate_match_conditions, validate_rule};
use super::{set_rule_defaults, set_selector_defaults};
use crate::common::checks::{fully_qualified_name, push_faults};
use crate::common::selectors::{self, SelectorOptions, validate_label_selector};
use crate::common::webhook::validate_client_config;
use crate::common::{At, Seen, one_of};
use crate::prepare::{raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value, names};
use std::ops::RangeInclusive;

/// How long a webhook may take, in seconds.
const TIMEOUT_SECONDS: RangeInclusive<i64> = 1..=30;
/// The versions of AdmissionReview that the server sends.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// The side effects that a webhook may have.
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
/// The side effects that old objects may tell of.
const OLD_SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

/// The strategy of webhook configurations.
#[derive(Debug)]
pub struct WebhookConfiguration {
    /// Whether these are MutatingWebhookConfigurations.
    pub is_mutating: bool,
}

impl UpdateStrategy for WebhookConfiguration {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["webhooks"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        self.checked(object, &Options::kept_from(object, old))
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW.any_finalizers()
    }
}

impl Strategy for WebhookConfiguration {
    fn set_defaults(&self, object: &mut Value) {
        for webhook in object.get_mut("webhooks").map_or(&mut [][..], Value::items_mut) {
            webhook.set_default("failurePolicy", "Fail");
            set_selector_defaults(webhook);
            webhook.set_default("timeoutSeconds", 10);
            if self.is_mutating {
                webhook.set_default("reinvocationPolicy", "Never");
            }
            if let Some(service) = webhook.at_mut("clientConfig.service").filter(|service| !service.is_null()) {
                service.set_default("port", 443);
            }
            set_rule_defaults(webhook.get_mut("rules"));
        }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        self.checked(object, &Options::default())
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

/// What passes because the old object held such.
#[derive(Default)]
struct Options<'v> {
    any_condition: bool,
    any_side_effect: bool,
    any_review_version: bool,
    any_name: bool,
    any_selector_value: bool,
    old_webhooks: &'v [Value],
}

impl<'v> Options<'v> {
    fn kept_from(object: &Value, old: &'v Value) -> Options<'v> {
        let (new_webhooks, webhooks) = (object["webhooks"].items(), old["webhooks"].items());
        let same_conditions =
            |(new, old): (&Value, &Value)| new["matchConditions"].items() == old["matchConditions"].items();
        let mut names = Seen::new();
        let recognized = |webhook: &Value| {
            let versions = webhook["admissionReviewVersions"].items();
            versions.is_empty() || versions.iter().any(|version| REVIEW_VERSIONS.contains(&version.str_or_empty()))
        };
        let selects_oddly = |webhook: &Value| {
            ["namespaceSelector", "objectSelector"]
                .iter()
                .any(|field| selectors::is_invalid(&webhook[*field], SelectorOptions::default()))
        };
        Options {
            any_condition: new_webhooks.len() == webhooks.len()
                && new_webhooks.iter().zip(webhooks).all(same_conditions),
            any_side_effect: !webhooks.iter().all(|w| SIDE_EFFECTS.contains(&w["sideEffects"].str_or_empty())),
            any_review_version: !webhooks.iter().all(recognized),
            any_name: !webhooks.iter().all(|webhook| names.insert(webhook["name"].str_or_empty())),
            any_selector_value: webhooks.iter().any(selects_oddly),
            old_webhooks: webhooks,
        }
    }
}

impl WebhookConfiguration {
    fn checked(&self, object: &Value, options: &Options<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        let mut seen = Seen::new();
        for webhook in At::top(object, "webhooks").each() {
            self.validate_webhook(&webhook, options, &mut errors);
            validate_review_versions(&webhook.child("admissionReviewVersions"), options, &mut errors);
            let name = webhook.value()["name"].str_or_empty();
            if !options.any_name && !name.is_empty() && !seen.insert(name) {
                errors.push(webhook.child("name").duplicate());
            }
        }
        errors
    }

    fn validate_webhook(&self, at: &At<'_>, options: &Options<'_>, errors: &mut ErrorList) {
        let optional = |field: &str, supported: &[&str], errors: &mut ErrorList| {
            let value = at.child(field);
            if value.is_set() {
                one_of(&value, supported, errors);
            }
        };
        fully_qualified_name(&at.child("name"), errors);
        at.child("rules").each().for_each(|rule| validate_rule(&rule, errors));
        optional("failurePolicy", &FAILURE_POLICIES, errors);
        optional("matchPolicy", &MATCH_POLICIES, errors);
        let side_effects: &[&str] = if options.any_side_effect { &OLD_SIDE_EFFECTS } else { &SIDE_EFFECTS };
        if at["sideEffects"].is_null() {
            let rule = format!("must specify one of {}", side_effects.join(", "));
            errors.push(at.child("sideEffects").required(rule));
        }
        optional("sideEffects", side_effects, errors);
        let timeout = at.child("timeoutSeconds");
        if timeout.is_set() && !TIMEOUT_SECONDS.contains(&timeout.int()) {
            errors.push(timeout.invalid("the timeout value must be between 1 and 30 seconds"));
        }
        let selector = SelectorOptions { allow_invalid_values: options.any_selector_value, ..Default::default() };
        validate_label_selector(&at.child("namespaceSelector"), selector, errors);
        validate_label_selector(&at.child("objectSelector"), selector, errors);
        if self.is_mutating {
            optional("reinvocationPolicy", &["IfNeeded", "Never"], errors);
        }
        validate_client_config(&at.child("clientConfig"), errors);
        if !options.any_condition {
            let conditions = options.old_webhooks.iter().flat_map(|webhook| webhook["matchConditions"].items());
            let old: Value = conditions.cloned().collect();
            validate_match_conditions(&at.child("matchConditions"), &old, false, errors);
        }
    }
}

fn validate_review_versions(list: &At<'_>, options: &Options<'_>, errors: &mut ErrorList) {
    if list.items().is_empty() {
        errors.push(list.required(format!("must specify one of {}", REVIEW_VERSIONS.join(", "))));
        return;
    }
    let mut seen = Seen::new();
    for version in list.each() {
        if !seen.insert(version.value().str_or_empty()) {
            errors.push(version.invalid("duplicate version"));
            continue;
        }
        push_faults(&version, names::dns1035_label(version.text()), errors);
    }
    if !options.any_review_version && !REVIEW_VERSIONS.iter().any(|version| seen.contains(version)) {
        errors.push(list.invalid(format!("must include at least one of {}", REVIEW_VERSIONS.join(", "))));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::{Value, json};

    const RESOURCE: &str = "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

    fn with(change: Value) -> Value {
        let mut webhook = json!({
            "name": "a.example.com", "clientConfig": {"url": "https://x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]
        });
        change.entries().for_each(|(key, member)| webhook.set(key, member.clone()));
        json!({"webhooks": [webhook]})
    }

    fn base() -> Value {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"})
    }

    #[test]
    fn creating() {
        let rule = |change: Value| {
            let mut rule =
                json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
            change.entries().for_each(|(key, member)| rule.set(key, member.clone()));
            with(json!({"rules": [rule]}))
        };
        let mut twice = with(json!({}));
        let webhook = twice["webhooks"].items()[0].clone();
        twice["webhooks"].make_array().push(webhook);
        let out = creates(
            RESOURCE,
            &base(),
            &[
                json!({"webhooks": [{"clientConfig": {}}]}),
                twice,
                with(json!({"name": "a.b", "failurePolicy": "x", "matchPolicy": "x", "sideEffects": "Some",
                    "timeoutSeconds": 31, "reinvocationPolicy": "x", "admissionReviewVersions": ["V", "V"]})),
                with(json!({"namespaceSelector": {"matchLabels": {"a": "!"}},
                    "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})),
                with(json!({"clientConfig": {"url": "http://u@?q#f"}})),
                with(json!({"clientConfig": {"url": "https://%"}})),
                with(json!({"clientConfig": {"service": {"name": "", "namespace": "n", "path": "a//B/", "port": -1}}})),
                with(json!({"matchConditions": [{"name": "", "expression": " "}, {"name": "a/b/c", "expression": "1"},
                    {"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]})),
                rule(json!({})),
                rule(json!({"operations": [], "apiGroups": [], "apiVersions": [], "resources": [], "scope": "x"})),
                rule(json!({"operations": ["*", "PATCH"], "apiGroups": ["*", "a"], "apiVersions": ["*", ""],
                    "resources": ["", "*/*", "*", "a/*", "a/b", "*/b", "c/b", "d"]})),
            ],
        );
        expect![[r#"
            {"webhooks":[{"clientConfig":{}}]}
                webhooks[0].name: Required value
                webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun
                webhooks[0].clientConfig: Required value: exactly one of url or service is required
                webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","sideEffects":"None"},{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","sideEffects":"None"}]}
                webhooks[1].name: Duplicate value: "a.example.com"
            {"webhooks":[{"admissionReviewVersions":["V","V"],"clientConfig":{"url":"https://x"},"failurePolicy":"x","matchPolicy":"x","name":"a.b","reinvocationPolicy":"x","sideEffects":"Some","timeoutSeconds":31}]}
                webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots
                webhooks[0].failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"
                webhooks[0].matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"
                webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"
                webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds
                webhooks[0].reinvocationPolicy: Unsupported value: "x": supported values: "IfNeeded", "Never"
                webhooks[0].admissionReviewVersions[0]: Invalid value: "V": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')
                webhooks[0].admissionReviewVersions[1]: Invalid value: "V": duplicate version
                webhooks[0].admissionReviewVersions: Invalid value: ["V","V"]: must include at least one of v1, v1beta1
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","namespaceSelector":{"matchLabels":{"a":"!"}},"objectSelector":{"matchExpressions":[{"key":"a","operator":"In"}]},"sideEffects":"None"}]}
                webhooks[0].namespaceSelector.matchLabels: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"http://u@?q#f"},"name":"a.example.com","sideEffects":"None"}]}
                webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]
                webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]
                webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL
                webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL
                webhooks[0].clientConfig.url: Invalid value: "q": query parameters are not permitted in the URL
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://%"},"name":"a.example.com","sideEffects":"None"}]}
                webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse "https://%": invalid URL escape "%"; desired format: https://host[/path]
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"service":{"name":"","namespace":"n","path":"a//B/","port":-1}},"name":"a.example.com","sideEffects":"None"}]}
                webhooks[0].clientConfig.service.namespace: Required value
                webhooks[0].clientConfig.service.port: Invalid value: -1: port is not valid: must be between 1 and 65535, inclusive
                webhooks[0].clientConfig.service.path: Invalid value: "a//B/": must start with a '/'
                webhooks[0].clientConfig.service.path: Invalid value: "a//B/": segment[0] may not be empty
                webhooks[0].clientConfig.service.path: Invalid value: "a//B/": segment[1] may not be empty
                webhooks[0].clientConfig.service.path: Invalid value: "a//B/": segment[2]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"matchConditions":[{"expression":" ","name":""},{"expression":"1","name":"a/b/c"},{"expression":"true","name":"a"},{"expression":"true","name":"a"}],"name":"a.example.com","sideEffects":"None"}]}
                webhooks[0].matchConditions[0].expression: Required value
                webhooks[0].matchConditions[0].name: Required value
                webhooks[0].matchConditions[1].expression: Invalid value: "1": must evaluate to bool but got int
                webhooks[0].matchConditions[1].name: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
                webhooks[0].matchConditions[3].name: Duplicate value: "a"
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}],"sideEffects":"None"}]}
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","rules":[{"apiGroups":[],"apiVersions":[],"operations":[],"resources":[],"scope":"x"}],"sideEffects":"None"}]}
                webhooks[0].rules[0].operations: Required value
                webhooks[0].rules[0].apiGroups: Required value
                webhooks[0].rules[0].apiVersions: Required value
                webhooks[0].rules[0].resources: Required value
                webhooks[0].rules[0].scope: Unsupported value: "x": supported values: "*", "Cluster", "Namespaced"
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","rules":[{"apiGroups":["*","a"],"apiVersions":["*",""],"operations":["*","PATCH"],"resources":["","*/*","*","a/*","a/b","*/b","c/b","d"]}],"sideEffects":"None"}]}
                webhooks[0].rules[0].operations: Invalid value: ["*","PATCH"]: if '*' is present, must not specify other operations
                webhooks[0].rules[0].operations[1]: Unsupported value: "PATCH": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"
                webhooks[0].rules[0].apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other API groups
                webhooks[0].rules[0].apiVersions: Invalid value: ["*",""]: if '*' is present, must not specify other API versions
                webhooks[0].rules[0].apiVersions[1]: Required value
                webhooks[0].rules[0].resources[0]: Required value
                webhooks[0].rules[0].resources[3]: Invalid value: "a/*": if '*/*' is present, must not specify a/*
                webhooks[0].rules[0].resources[4]: Invalid value: "a/b": if 'a/*' is present, must not specify a/b
                webhooks[0].rules[0].resources[5]: Invalid value: "*/b": if '*/*' is present, must not specify */b
                webhooks[0].rules[0].resources[6]: Invalid value: "c/b": if '*/b' is present, must not specify c/b
                webhooks[0].rules[0].resources: Invalid value: ["","*/*","*","a/*","a/b","*/b","c/b","d"]: if '*/*' is present, must not specify other resources
                webhooks[0].rules[0].resources: Invalid value: ["","*/*","*","a/*","a/b","*/b","c/b","d"]: if '*' is present, must not specify other resources without subresources
        "#]].assert_eq(&out);
    }

    #[test]
    fn what_was_there_may_stay() {
        let mut base = base();
        let odd = json!({"sideEffects": "Some", "admissionReviewVersions": ["v9"],
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["!"]}]}});
        base.set("webhooks", with(odd.clone())["webhooks"].clone());
        let mut more = odd;
        more.set("timeoutSeconds", 0);
        let conditions = with(json!({"matchConditions": [{"name": "x", "expression": ""}]}));
        let out = updates(RESOURCE, "", &base, &[with(more), with(json!({"sideEffects": "x"})), conditions]);
        expect![[r#"
            {"webhooks":[{"admissionReviewVersions":["v9"],"clientConfig":{"url":"https://x"},"name":"a.example.com","objectSelector":{"matchExpressions":[{"key":"a","operator":"In","values":["!"]}]},"sideEffects":"Some","timeoutSeconds":0}]}
                webhooks[0].timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"name":"a.example.com","sideEffects":"x"}]}
                webhooks[0].sideEffects: Unsupported value: "x": supported values: "None", "NoneOnDryRun", "Some", "Unknown"
            {"webhooks":[{"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://x"},"matchConditions":[{"expression":"","name":"x"}],"name":"a.example.com","sideEffects":"None"}]}
                webhooks[0].matchConditions[0].expression: Required value
        "#]].assert_eq(&out);
    }
}
