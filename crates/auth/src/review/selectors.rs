//! The field and label selectors in the question of an access review, raw or taken apart.

use pintle_apimachinery::fieldselector::{FieldSelector, Term};
use pintle_apimachinery::labels::{Operator, Requirement, Selector};
use pintle_apimachinery::{ErrorList, FieldError, Path, Str, Value, names};

const ATTRIBUTES: Path<'static> = Path::new("spec.resourceAttributes");

/// What is wrong with the selectors of `resourceAttributes`.
pub(super) fn validate(attributes: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, is_label) in [("fieldSelector", false), ("labelSelector", true)] {
        let selector = &attributes[field];
        if selector.is_null() {
            continue;
        }
        let path = ATTRIBUTES.child(field);
        let raw = selector["rawSelector"].str_or_empty();
        let requirements = selector["requirements"].items();
        if !raw.is_empty() && !requirements.is_empty() {
            let text = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(&path.child("rawSelector"), raw, text));
        }
        if raw.is_empty() && requirements.is_empty() {
            let text = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(&path.child("requirements"), text));
        }
        let list = path.child("requirements");
        for (idx, requirement) in requirements.iter().enumerate() {
            let path = list.index(idx);
            if is_label {
                errors.extend(values_error(requirement, &path));
                errors.extend(label_errors(requirement, &path));
            } else {
                if requirement["key"].is_empty() {
                    errors.push(FieldError::required(&path.child("key"), "must be specified"));
                }
                errors.extend(values_error(requirement, &path));
            }
        }
    }
    errors
}

fn values_error(requirement: &Value, path: &Path<'_>) -> Option<FieldError> {
    let path = path.child("values");
    match (requirement["operator"].str_or_empty(), requirement["values"].is_empty()) {
        ("In" | "NotIn", true) => {
            Some(FieldError::required(&path, "must be specified when `operator` is 'In' or 'NotIn'"))
        }
        ("Exists" | "DoesNotExist", false) => {
            Some(FieldError::forbidden(&path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
        }
        // an operator that only newer clients know narrows less, which is safe
        _ => None,
    }
}

fn label_errors(requirement: &Value, path: &Path<'_>) -> ErrorList {
    let key = requirement["key"].str_or_empty();
    let faults = names::qualified_name(key).into_iter();
    let mut errors: ErrorList = faults.map(|fault| FieldError::invalid(&path.child("key"), key, fault)).collect();
    let list = path.child("values");
    for (idx, value) in requirement["values"].items().iter().enumerate() {
        let value = value.str_or_empty();
        let faults = names::label_value(value).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&list.index(idx), value, fault)));
    }
    errors
}

/// The selectors of a question as far as they can be read.
#[derive(Debug, Default)]
pub(super) struct ReadSelectors {
    pub(super) field: Option<FieldSelector>,
    pub(super) label: Option<Selector>,
    /// What the answer tells of parts that cannot be read.
    pub(super) errors: Vec<String>,
}

impl ReadSelectors {
    pub(super) fn new(attributes: &Value) -> ReadSelectors {
        let mut read = ReadSelectors::default();
        let (terms, is_whole) = field_terms(&attributes["fieldSelector"]);
        read.note("fieldSelector", terms.is_empty(), is_whole);
        read.field = (!terms.is_empty()).then_some(FieldSelector { terms });
        let (requirements, is_whole) = label_requirements(&attributes["labelSelector"]);
        read.note("labelSelector", requirements.is_empty(), is_whole);
        read.label = (!requirements.is_empty()).then(|| Selector::of(requirements));
        read
    }

    fn note(&mut self, field: &str, is_empty: bool, is_whole: bool) {
        if !is_whole {
            let partially = if is_empty { "" } else { "partially " };
            self.errors.push(format!("spec.resourceAttributes.{field} {partially}ignored due to parse error"));
        }
    }
}

/// The conditions, and whether all could be read.
fn field_terms(selector: &Value) -> (Vec<Term>, bool) {
    let raw = selector["rawSelector"].str_or_empty();
    if !raw.is_empty() {
        return match FieldSelector::parse(raw) {
            Ok(selector) => (selector.terms, true),
            Err(_) => (Vec::new(), false),
        };
    }
    let requirements = selector["requirements"].items();
    let terms: Vec<Term> = requirements.iter().filter_map(field_term).collect();
    let is_whole = terms.len() == requirements.len();
    (terms, is_whole)
}

fn field_term(requirement: &Value) -> Option<Term> {
    let is_negated = match requirement["operator"].str_or_empty() {
        "In" => false,
        "NotIn" => true,
        _ => return None,
    };
    let [value] = requirement["values"].items() else { return None };
    Some(Term { field: Str::new(requirement["key"].str_or_empty()), value: Str::new(value.str_or_empty()), is_negated })
}

/// The conditions, and whether all could be read.
fn label_requirements(selector: &Value) -> (Vec<Requirement>, bool) {
    let raw = selector["rawSelector"].str_or_empty();
    if !raw.is_empty() {
        return match Selector::parse(raw) {
            Ok(selector) => (selector.requirements, true),
            Err(_) => (Vec::new(), false),
        };
    }
    let items = selector["requirements"].items();
    let requirements: Vec<Requirement> = items.iter().filter_map(label_requirement).collect();
    let is_whole = requirements.len() == items.len();
    (requirements, is_whole)
}

fn label_requirement(requirement: &Value) -> Option<Requirement> {
    let operator = match requirement["operator"].str_or_empty() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return None,
    };
    let values = requirement["values"].items().iter().map(|v| Str::new(v.str_or_empty())).collect();
    Requirement::new(requirement["key"].str_or_empty(), operator, values).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn faults() {
        let texts =
            |attributes: Value| validate(&attributes).iter().map(FieldError::to_string).collect::<Vec<_>>().join("\n");
        expect!["spec.resourceAttributes.fieldSelector.requirements: Required value: when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required"]
            .assert_eq(&texts(json!({"fieldSelector": {}})));
        expect![[r#"
            spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified
            spec.resourceAttributes.fieldSelector.requirements[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
            spec.resourceAttributes.fieldSelector.requirements[2].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"#]]
        .assert_eq(&texts(json!({"fieldSelector": {"requirements": [{"key": "", "operator": "Exists"}, {"key": "a", "operator": "In"}, {"key": "b", "operator": "Exists", "values": ["x"]}]}})));
        expect![[r#"spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements"#]]
            .assert_eq(&texts(json!({"labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}})));
    }

    #[test]
    fn what_can_be_read_is_used() {
        let read = ReadSelectors::new(&json!({
            "fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["x"]}, {"key": "b", "operator": "Exists"}]},
            "labelSelector": {"rawSelector": "!!"},
        }));
        assert_eq!(read.field.unwrap().to_string(), "a=x");
        assert_eq!(read.label, None);
        expect![[r#"
            spec.resourceAttributes.fieldSelector partially ignored due to parse error
            spec.resourceAttributes.labelSelector ignored due to parse error"#]]
        .assert_eq(&read.errors.join("\n"));
    }
}
