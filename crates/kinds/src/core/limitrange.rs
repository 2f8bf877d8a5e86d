//! LimitRanges.

use super::quantities::round_up_to_millis;
use crate::common::At;
use crate::common::resources::{
    is_overcommit_allowed, quantity, validate_container_resource_name, validate_resource_name,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::{ErrorList, FieldError, Value, names};
use std::collections::BTreeSet;

/// The strategy of LimitRanges.
#[derive(Debug)]
pub struct LimitRange;

impl UpdateStrategy for LimitRange {
    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> ErrorList {
        validate(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::NEW
    }
}

impl Strategy for LimitRange {
    fn set_defaults(&self, object: &mut Value) {
        for limit in object.at_mut("spec.limits").map_or(&mut [][..], Value::items_mut) {
            if limit["type"].as_str() == Some("Container") {
                fill_absent(limit, "max", "default");
                fill_absent(limit, "default", "defaultRequest");
                fill_absent(limit, "min", "defaultRequest");
            }
            for amounts in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
                round_up_to_millis(limit.get_mut(amounts));
            }
        }
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        validate(object)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}

/// Copies the amounts of `from` that `to` does not have.
fn fill_absent(limit: &mut Value, from: &str, to: &str) {
    if limit[from].entries().len() == 0 {
        return;
    }
    let given = limit[from].clone();
    for (resource, amount) in given.entries() {
        limit[to].set_default(resource, amount.clone());
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = At::top(object, "spec");
    let mut types = BTreeSet::new();
    for limit in spec.child("limits").each() {
        validate_type(&limit, &mut types, &mut errors);
        let names = validate_names(&limit, &mut errors);
        for name in names {
            validate_amounts(&limit, name, &mut errors);
        }
    }
    errors
}

fn validate_type<'a>(limit: &At<'a>, types: &mut BTreeSet<&'a str>, errors: &mut ErrorList) {
    let type_name = limit.value()["type"].str_or_empty();
    let at = limit.child("type");
    let faults = names::qualified_name(type_name);
    let is_known = matches!(type_name, "Pod" | "Container" | "PersistentVolumeClaim");
    if faults.is_empty() && !type_name.contains('/') && !is_known {
        errors.push(at.invalid("must be a standard limit type or fully qualified"));
    }
    errors.extend(faults.into_iter().map(|fault| at.invalid(fault)));
    if !types.insert(type_name) {
        errors.push(at.duplicate());
    }
}

/// The names of all amounts that count, in their order.
fn validate_names<'a>(limit: &At<'a>, errors: &mut ErrorList) -> BTreeSet<&'a str> {
    let type_name = limit.value()["type"].str_or_empty();
    let is_of_pod = type_name == "Pod";
    let validate_name = |name: &str, amount: &At<'_>, errors: &mut ErrorList| {
        if matches!(type_name, "Pod" | "Container") {
            validate_container_resource_name(name, amount, errors);
        } else {
            validate_resource_name(name, amount, errors);
        }
    };
    let mut found = BTreeSet::new();
    let mut take = |field: &str, errors: &mut ErrorList| {
        let amounts = limit.child(field);
        for (name, amount) in amounts.each_entry() {
            validate_name(name, &amount, errors);
        }
        found.extend(limit.value()[field].entries().map(|(name, _)| name.as_str()));
    };
    take("max", errors);
    take("min", errors);
    for field in ["default", "defaultRequest"] {
        let amounts = limit.child(field);
        if !is_of_pod {
            take(field, errors);
        } else if amounts.entries().len() > 0 {
            errors.push(amounts.forbidden("may not be specified when `type` is 'Pod'"));
        }
    }
    if type_name == "PersistentVolumeClaim" && !limit["min"].has("storage") && !limit["max"].has("storage") {
        let rule = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(limit.child("limits").required(rule));
    }
    take("maxLimitRequestRatio", errors);
    found
}

/// What the amounts of one resource may be to each other.
fn validate_amounts(limit: &At<'_>, name: &str, errors: &mut ErrorList) {
    let is_of_pod = limit["type"].as_str() == Some("Pod");
    let amount = |field: &str| Some(&limit[field][name]).filter(|a| !a.is_null()).map(quantity);
    let (min, max, ratio) = (amount("min"), amount("max"), amount("maxLimitRequestRatio"));
    let default = amount("default").filter(|_| !is_of_pod);
    let request = amount("defaultRequest").filter(|_| !is_of_pod);
    let mut tell = |field: &str, shown: Quantity, rule: String| {
        let at = limit.child(field);
        errors.push(FieldError::invalid(at.key(name).path(), shown.canonical(), rule));
    };
    /// Lower amount, what it is called, upper amount, what it is called, the field to blame, whether it is the lower.
    type Order<'o> = (Option<Quantity>, &'o str, Option<Quantity>, &'o str, &'o str, bool);
    let orders: [Order<'_>; 6] = [
        (min, "min", max, "max", "min", true),
        (min, "min", request, "default request", "defaultRequest", false),
        (request, "default request", max, "max", "defaultRequest", true),
        (request, "default request", default, "default limit", "defaultRequest", true),
        (min, "min", default, "default", "default", true),
        (default, "default", max, "max", "default", false),
    ];
    for (lower, lower_name, upper, upper_name, field, is_lower_shown) in orders {
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower > upper
        {
            let shown = if is_lower_shown { lower } else { upper };
            tell(field, shown, format!("{lower_name} value {lower} is greater than {upper_name} value {upper}"));
        }
    }
    if let Some(ratio) = ratio {
        if ratio.milli_value() < 1000 {
            tell("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
        }
        if let (Some(min), Some(max)) = (min, max) {
            let most = max.as_f64() / min.as_f64();
            if ratio.as_f64() > most {
                tell(
                    "maxLimitRequestRatio",
                    ratio,
                    format!("ratio {ratio} is greater than max/min = {}", go_fixed(most)),
                );
            }
        }
    }
    if let (Some(default), Some(request)) = (default, request)
        && !is_overcommit_allowed(name)
        && default != request
    {
        let rule = format!("default value {default} must equal to defaultRequest value {request} in {name}");
        tell("defaultRequest", request, rule);
    }
}

/// A float as Go's `%f` shows it.
fn go_fixed(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        format!("{number:.6}")
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::creates;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating() {
        let base = json!({"apiVersion": "v1", "kind": "LimitRange"});
        let limit = |limit: pintle_apimachinery::Value| json!({"spec": {"limits": [limit]}});
        let out = creates(
            "v1/limitranges",
            &base,
            &[
                limit(json!({"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}, "default": {"cpu": "3"},
                    "defaultRequest": {"cpu": "4"}, "maxLimitRequestRatio": {"cpu": "500m"}})),
                limit(json!({"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}})),
                limit(json!({"type": "PersistentVolumeClaim"})),
                limit(json!({"type": "", "max": {"x": "1"}})),
                limit(json!({"type": "Container", "min": {"memory": "1Gi"}, "max": {"memory": "2Gi"},
                    "maxLimitRequestRatio": {"memory": "3"}})),
                limit(json!({"type": "Container", "max": {"example.com/x": "1"}, "default": {"example.com/x": "2"}})),
                json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "1"}}]}}),
            ],
        );
        expect![[r#"
            {"spec":{"limits":[{"default":{"cpu":"3"},"defaultRequest":{"cpu":"4"},"max":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"500m"},"min":{"cpu":"2"},"type":"Container"}]}}
                spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1
                spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than max value 1
                spec.limits[0].defaultRequest[cpu]: Invalid value: "4": default request value 4 is greater than default limit value 3
                spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1
                spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1
            {"spec":{"limits":[{"default":{"cpu":"1"},"defaultRequest":{"cpu":"1"},"type":"Pod"}]}}
                spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'
                spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'
            {"spec":{"limits":[{"type":"PersistentVolumeClaim"}]}}
                spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but neither was provided
            {"spec":{"limits":[{"max":{"x":"1"},"type":""}]}}
                spec.limits[0].type: Invalid value: "": name part must be non-empty
                spec.limits[0].type: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                spec.limits[0].max[x]: Invalid value: "x": must be a standard resource type or fully qualified
            {"spec":{"limits":[{"max":{"memory":"2Gi"},"maxLimitRequestRatio":{"memory":"3"},"min":{"memory":"1Gi"},"type":"Container"}]}}
                spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000
            {"spec":{"limits":[{"default":{"example.com/x":"2"},"max":{"example.com/x":"1"},"type":"Container"}]}}
                spec.limits[0].defaultRequest[example.com/x]: Invalid value: "2": default request value 2 is greater than max value 1
                spec.limits[0].default[example.com/x]: Invalid value: "1": default value 2 is greater than max value 1
            {"spec":{"limits":[{"max":{"cpu":"1"},"type":"Pod"},{"max":{"cpu":"1"},"type":"Pod"}]}}
                spec.limits[1].type: Duplicate value: "Pod"
        "#]].assert_eq(&out);
    }
}
