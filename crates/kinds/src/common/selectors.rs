//! Labels and the selectors over them: label selectors, node selectors, the label keys of spreading and affinity.

use super::At;
use super::checks::{push_faults, qualified_name};
use pintle_apimachinery::names;
use pintle_apimachinery::{ErrorList, Path, Value};

/// What a label selector may hold besides what is well-formed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelectorOptions {
    /// Values that are no label values pass: the old object had such.
    pub allow_invalid_values: bool,
    /// Operators that nobody knows pass (access reviews check them elsewhere).
    pub allow_unknown_operator: bool,
}

/// A map of labels.
pub fn validate_labels(at: &At<'_>, errors: &mut ErrorList) {
    errors.extend(crate::meta::validate_labels(at.value(), at.path()));
}

/// A label selector; absent is fine.
pub fn validate_label_selector(at: &At<'_>, options: SelectorOptions, errors: &mut ErrorList) {
    validate_labels(&at.child("matchLabels"), errors);
    for requirement in at.child("matchExpressions").each() {
        validate_requirement(&requirement, options, errors);
    }
}

/// One expression of a label selector.
pub fn validate_requirement(at: &At<'_>, options: SelectorOptions, errors: &mut ErrorList) {
    let (operator, values) = (at.child("operator"), at.child("values"));
    match operator.text() {
        "In" | "NotIn" => values_required(&values, errors),
        "Exists" | "DoesNotExist" => values_forbidden(&values, errors),
        _ if options.allow_unknown_operator => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    qualified_name(&at.child("key"), errors);
    if !options.allow_invalid_values {
        label_values(&values, errors);
    }
}

fn values_required(values: &At<'_>, errors: &mut ErrorList) {
    if values.items().is_empty() {
        errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
    }
}

fn values_forbidden(values: &At<'_>, errors: &mut ErrorList) {
    if !values.items().is_empty() {
        errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
}

fn label_values(values: &At<'_>, errors: &mut ErrorList) {
    for value in values.each() {
        push_faults(&value, names::label_value(value.text()), errors);
    }
}

/// Whether an expression of the selector has a value that is no label value.
pub fn has_invalid_value(selector: &Value) -> bool {
    let expressions = selector["matchExpressions"].items();
    let mut values = expressions.iter().flat_map(|expression| expression["values"].items());
    values.any(|value| !names::label_value(value.str_or_empty()).is_empty())
}

/// Whether [`validate_label_selector`] finds anything.
pub fn is_invalid(selector: &Value, options: SelectorOptions) -> bool {
    let mut errors = ErrorList::new();
    validate_label_selector(&At::new(selector, Path::ROOT), options, &mut errors);
    !errors.is_empty()
}

/// A node selector: at least one term.
pub fn validate_node_selector(at: &At<'_>, allow_invalid_values: bool, errors: &mut ErrorList) {
    let terms = at.child("nodeSelectorTerms");
    if terms.items().is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.each() {
        validate_node_selector_term(&term, allow_invalid_values, errors);
    }
}

/// One term of a node selector.
pub fn validate_node_selector_term(at: &At<'_>, allow_invalid_values: bool, errors: &mut ErrorList) {
    for requirement in at.child("matchExpressions").each() {
        validate_node_requirement(&requirement, allow_invalid_values, errors);
    }
    for requirement in at.child("matchFields").each() {
        validate_node_field_requirement(&requirement, errors);
    }
}

fn validate_node_requirement(at: &At<'_>, allow_invalid_values: bool, errors: &mut ErrorList) {
    let (operator, values) = (at.child("operator"), at.child("values"));
    match operator.text() {
        "In" | "NotIn" => values_required(&values, errors),
        "Exists" | "DoesNotExist" => values_forbidden(&values, errors),
        "Gt" | "Lt" => {
            if values.items().len() != 1 {
                errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
            }
        }
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    qualified_name(&at.child("key"), errors);
    if !allow_invalid_values {
        label_values(&values, errors);
    }
}

fn validate_node_field_requirement(at: &At<'_>, errors: &mut ErrorList) {
    let (operator, values, key) = (at.child("operator"), at.child("values"), at.child("key"));
    match operator.text() {
        "In" | "NotIn" => {
            if values.items().len() != 1 {
                errors.push(
                    values
                        .required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
                );
            }
        }
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    if key.text() == "metadata.name" {
        for value in values.each() {
            push_faults(&value, names::dns1123_subdomain(value.text()), errors);
        }
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
}

/// The `matchLabelKeys` and `mismatchLabelKeys` beside a `labelSelector`.
pub fn validate_label_keys(at: &At<'_>, errors: &mut ErrorList) {
    let (matching, mismatching, selector) =
        (at.child("matchLabelKeys"), at.child("mismatchLabelKeys"), at.child("labelSelector"));
    for keys in [&matching, &mismatching] {
        if !keys.items().is_empty() && !selector.is_set() {
            errors.push(keys.forbidden("must not be specified when labelSelector is not set"));
        } else {
            keys.each().for_each(|key| qualified_name(&key, errors));
        }
    }
    // The selector has the expressions made of matchLabelKeys already; a key that stands there twice was named twice.
    let expressions = selector["matchExpressions"].items();
    for (idx, expression) in expressions.iter().enumerate() {
        let key = &expression["key"];
        let Some(at_key) = matching.items().iter().rposition(|k| k == key) else { continue };
        let is_seen =
            selector["matchLabels"].has(key.str_or_empty()) || expressions[..idx].iter().any(|e| e["key"] == *key);
        if is_seen {
            errors.push(at.index(at_key).invalid_showing(key, "exists in both matchLabelKeys and labelSelector"));
        }
    }
    for key in matching.each() {
        if mismatching.items().contains(key.value()) {
            errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;

    fn told(errors: &ErrorList) -> String {
        errors.iter().map(|e| format!("{e}\n")).collect()
    }

    #[test]
    fn label_selectors() {
        let object = json!({"selector": {
            "matchLabels": {"a b": "c"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"key": "a", "operator": "Gt", "values": ["-"]},
            ],
        }});
        let mut errors = ErrorList::new();
        validate_label_selector(&At::top(&object, "selector"), SelectorOptions::default(), &mut errors);
        expect![[r#"
            selector.matchLabels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
            selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
            selector.matchExpressions[2].operator: Invalid value: "Gt": not a valid selector operator
            selector.matchExpressions[2].values[0]: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
        "#]]
        .assert_eq(&told(&errors));
        assert!(has_invalid_value(&object["selector"]) && is_invalid(&object["selector"], SelectorOptions::default()));
    }

    #[test]
    fn node_selectors() {
        let object = json!({"terms": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}, {"key": "a", "operator": "x"}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["A"]}, {"key": "b", "operator": "Exists"}]},
        ]}});
        let mut errors = ErrorList::new();
        validate_node_selector(&At::top(&object, "terms"), false, &mut errors);
        validate_node_selector(&At::top(&object, "none"), false, &mut errors);
        expect![[r#"
            terms.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'
            terms.nodeSelectorTerms[0].matchExpressions[1].operator: Invalid value: "x": not a valid selector operator
            terms.nodeSelectorTerms[1].matchFields[0].values[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            terms.nodeSelectorTerms[1].matchFields[1].operator: Invalid value: "Exists": not a valid selector operator
            terms.nodeSelectorTerms[1].matchFields[1].key: Invalid value: "b": not a valid field selector key
            none.nodeSelectorTerms: Required value: must have at least one node selector term
        "#]]
        .assert_eq(&told(&errors));
    }

    #[test]
    fn label_keys() {
        let term = json!({"term": {
            "matchLabelKeys": ["a", "b/"], "mismatchLabelKeys": ["a"],
            "labelSelector": {"matchLabels": {"a": "x"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
        }, "bare": {"matchLabelKeys": ["a"]}});
        let mut errors = ErrorList::new();
        validate_label_keys(&At::top(&term, "term"), &mut errors);
        validate_label_keys(&At::top(&term, "bare"), &mut errors);
        let fields: Vec<String> = errors.iter().map(|e| format!("{} {:?}", e.field, e.kind)).collect();
        expect![[r#"
            [
                "term.matchLabelKeys[1] Invalid",
                "term.matchLabelKeys[1] Invalid",
                "term[0] Invalid",
                "term.matchLabelKeys[0] Invalid",
                "bare.matchLabelKeys Forbidden",
            ]
        "#]]
        .assert_debug_eq(&fields);
    }
}
