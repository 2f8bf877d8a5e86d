//! RuntimeClasses.

use crate::common::checks::{dns1123_label, immutable};
use crate::common::resources::{Requirer, validate_requirements};
use crate::common::selectors::validate_labels;
use crate::common::{At, goform, node_labels};
use crate::core::pod::{PodOptions, validate_tolerations};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value, json};
use std::collections::BTreeSet;

/// The strategy of RuntimeClasses.
#[derive(Debug)]
pub struct RuntimeClass;

impl UpdateStrategy for RuntimeClass {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(object);
        immutable(&At::top(object, "handler"), &old["handler"], "", &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::BOTH.any_finalizers()
    }
}

impl Strategy for RuntimeClass {
    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    dns1123_label(&At::top(object, "handler"), &mut errors);
    let (overhead, scheduling) = (At::top(object, "overhead"), At::top(object, "scheduling"));
    if overhead.is_set() {
        // upstream checks it as the limits of a container
        let limits = json!({"limits": overhead["podFixed"].clone()});
        let at = At::new(&limits, *overhead.path());
        validate_requirements(&at, Requirer::Container, &BTreeSet::new(), false, &mut errors);
    }
    validate_labels(&scheduling.child("nodeSelector"), &mut errors);
    validate_distinct_tolerations(&scheduling.child("tolerations"), &mut errors);
    errors
}

fn validate_distinct_tolerations(tolerations: &At<'_>, errors: &mut ErrorList) {
    validate_tolerations(tolerations, &PodOptions::default(), errors);
    let mut seen = BTreeSet::new();
    for toleration in tolerations.each() {
        let key = ["key", "operator", "value", "effect"].map(|field| toleration.value()[field].str_or_empty());
        if !seen.insert(key) {
            let shown = goform::compact(&toleration, "core/v1.Toleration");
            errors.push(FieldError { shown: Some(shown), ..FieldError::duplicate(toleration.path(), "") });
        }
    }
}

/// Warns of node labels that have newer names.
fn warnings(object: &Value) -> Vec<String> {
    let labels = object.at("scheduling.nodeSelector").entries().map(|(label, _)| label);
    let messages = labels.filter_map(|label| node_labels::deprecation(label));
    messages.map(|message| format!("scheduling.nodeSelector: {message}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::creates;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating() {
        let base = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "h"});
        let tolerations = json!([
            {"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists", "tolerationSeconds": 1}, {}
        ]);
        let out = creates(
            "node.k8s.io/v1/runtimeclasses",
            &base,
            &[
                json!({"handler": "", "overhead": {"podFixed": {"cpu": "-1", "x": "1"}}}),
                json!({"scheduling": {"nodeSelector": {"_": "!"}, "tolerations": tolerations}}),
                json!({"scheduling": {"nodeSelector": {"beta.kubernetes.io/arch": "a"}}}),
            ],
        );
        expect![[r#"
            {"handler":"","overhead":{"podFixed":{"cpu":"-1","x":"1"}}}
                handler: Invalid value: "": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
                overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0
                overhead.limits[x]: Invalid value: "x": must be a standard resource type or fully qualified
                overhead.limits[x]: Invalid value: "x": must be a standard resource for containers
            {"scheduling":{"nodeSelector":{"_":"!"},"tolerations":[{"key":"a","operator":"Exists"},{"key":"a","operator":"Exists","tolerationSeconds":1},{}]}}
                scheduling.nodeSelector: Invalid value: "_": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                scheduling.nodeSelector: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                scheduling.tolerations[1].effect: Invalid value: "": effect must be 'NoExecute' when `tolerationSeconds` is set
                scheduling.tolerations[2].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"
                scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":1}
            {"scheduling":{"nodeSelector":{"beta.kubernetes.io/arch":"a"}}}
                warning: scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/arch" instead
        "#]].assert_eq(&out);
    }
}
