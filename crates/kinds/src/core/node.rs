//! Nodes and their status.

use super::label_not_supported;
use super::quantities::round_up_to_millis;
use crate::common::checks::{one_of, positive, push_faults, required};
use crate::common::resources::validate_resource_quantity;
use crate::common::{At, goform, ip};
use crate::prepare::keep;
use crate::{FieldTable, MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json, names, value};
use std::borrow::Cow;

/// The strategy of Nodes.
#[derive(Debug)]
pub struct Node;

impl UpdateStrategy for Node {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        if old["spec"]["configSource"].is_null() {
            object.remove_at("spec.configSource");
        }
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &mut errors);
        validate_update(object, old, &mut errors);
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        warnings(object)
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Node {
    fn set_defaults(&self, object: &mut Value) {
        settle_pod_cidrs(object.make("spec"));
        let Some(status) = object.get_mut("status") else { return };
        if status["allocatable"].is_null() && !status["capacity"].is_null() {
            let capacity = status["capacity"].clone();
            status.set("allocatable", capacity);
        }
        round_up_to_millis(status.get_mut("capacity"));
        round_up_to_millis(status.get_mut("allocatable"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        object.remove_at("spec.configSource");
        object.remove_at("status.config");
        object.remove_at("status.declaredFeatures");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("spec.unschedulable", |object| {
            Cow::Borrowed(if object.at("spec.unschedulable").is_true() { "true" } else { "false" })
        })]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }
}

/// `nodes/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        if old.at("status.config").is_null() {
            object.remove_at("status.config");
        }
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_update(object, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}

/// `podCIDR` is the first of `podCIDRs`; where a client says otherwise, the single one counts.
fn settle_pod_cidrs(spec: &mut Value) {
    let single = spec["podCIDR"].str_or_empty();
    match spec["podCIDRs"].items().first().map(Value::str_or_empty) {
        Some(first) if single.is_empty() => {
            let first = first.to_owned();
            spec.set("podCIDR", first);
        }
        Some(first) if first == single => {}
        _ if single.is_empty() => {}
        _ => {
            let single = single.to_owned();
            spec.set("podCIDRs", json!([single]));
        }
    }
}

const TAINTS_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID_ANNOTATION: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// A declared feature's name may have this many bytes.
const FEATURE_BYTES_MAX: usize = 253;

fn validate(object: &Value, errors: &mut ErrorList) {
    let metadata = Path::new("metadata");
    validate_annotations(object, errors);
    // upstream says `metadata` for the spec here
    validate_taints(&object["spec"]["taints"], &metadata.child("taints"), errors);
    validate_resources(object, errors);
    let capacity = object.at("status.nodeInfo.swap.capacity");
    if !capacity.is_null() {
        let swap = metadata.child("nodeSwapStatus");
        positive(&At::new(capacity, swap.child("capacity")), errors);
    }
    validate_declared_features(object, errors);
    let spec = At::top(object, "spec");
    let cidrs = spec.child("podCIDRs");
    cidrs.each().for_each(|cidr| ip::cidr_legacy(&cidr, None, errors));
    if cidrs.items().len() > 1 {
        validate_cidr_pair(&cidrs, errors);
    }
}

fn validate_cidr_pair(cidrs: &At<'_>, errors: &mut ErrorList) {
    let parsed: Vec<_> = cidrs.each().map(|cidr| ip::parse_cidr(cidr.text())).collect();
    if let Some(idx) = parsed.iter().position(Option::is_none) {
        let text = cidrs.items()[idx].str_or_empty();
        let why = format!("invalid CIDR[{idx}]: <nil> (invalid CIDR address: {text})");
        let rule = format!("invalid PodCIDRs. failed to check with dual stack with error:{why}");
        errors.push(FieldError::internal(cidrs.path(), rule));
    }
    let is_dual = parsed.iter().all(Option::is_some)
        && parsed.iter().flatten().any(|cidr| cidr.ip.is_ipv4())
        && parsed.iter().flatten().any(|cidr| cidr.ip.is_ipv6());
    if !is_dual || parsed.len() > 2 {
        let shown = goform::compact(cidrs.value(), "[]string");
        let error = cidrs.invalid("may specify no more than one CIDR for each IP family");
        errors.push(FieldError { shown: Some(shown), ..error });
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut ErrorList) {
    validate_annotations(object, errors);
    validate_resources(object, errors);
    validate_declared_features(object, errors);
    let status = At::top(object, "status");
    let addresses = status.child("addresses");
    for (idx, address) in addresses.each().enumerate() {
        if addresses.items()[..idx].contains(address.value()) {
            let shown = goform::compact(address.value(), "core/v1.NodeAddress");
            errors.push(FieldError { shown: Some(shown), ..FieldError::duplicate(address.path(), "") });
        }
    }
    let (spec, old_spec) = (At::top(object, "spec"), &old["spec"]);
    let (cidrs, old_cidrs) = (spec.child("podCIDRs"), old_spec["podCIDRs"].items());
    let n_changed = if old_cidrs.is_empty() {
        0
    } else if old_cidrs.len() == cidrs.items().len() {
        old_cidrs.iter().zip(cidrs.items()).filter(|(old, new)| old != new).count()
    } else {
        1
    };
    for _ in 0..n_changed {
        errors.push(cidrs.forbidden("node updates may not change podCIDR except from \"\" to valid"));
    }
    let provider = spec.child("providerID");
    if !old_spec["providerID"].is_empty() && *provider.value() != old_spec["providerID"] {
        errors.push(provider.forbidden("node updates may not change providerID except from \"\" to valid"));
    }
    validate_taints(&spec["taints"], &Path::new("metadata").child("taints"), errors);
    let external = spec.child("externalID");
    if external.text() != old_spec["externalID"].str_or_empty() {
        errors.push(external.forbidden("may not be updated"));
    }
}

fn validate_taints(taints: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (idx, taint) in taints.items().iter().enumerate() {
        let at = At::new(taint, path.index(idx));
        let (key, value, effect) = (at.child("key"), at.child("value"), at.child("effect"));
        push_faults(&key, names::qualified_name(key.text()), errors);
        let faults = names::label_value(value.text());
        if !faults.is_empty() {
            errors.push(value.invalid(faults.join(";")));
        }
        if required(&effect, errors) {
            one_of(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
        let is_same = |other: &Value| other["key"] == taint["key"] && other["effect"] == taint["effect"];
        if taints.items()[..idx].iter().any(is_same) {
            errors.push(FieldError {
                shown: Some(goform::compact(taint, "core/v1.Taint")),
                detail: "taints must be unique by key and effect pair".to_owned(),
                ..FieldError::duplicate(at.path(), "")
            });
        }
    }
}

fn validate_annotations(object: &Value, errors: &mut ErrorList) {
    let metadata = Path::new("metadata");
    let path = metadata.child("annotations");
    let text = |key: &str| object.annotation(key).filter(|text| !text.is_empty());
    if let Some(text) = text(TAINTS_ANNOTATION) {
        match value::parse(text.as_bytes()) {
            Ok(taints) => validate_taints(&lower_case(taints), &path.child(TAINTS_ANNOTATION), errors),
            Err(why) => errors.push(FieldError::invalid(&path, TAINTS_ANNOTATION, why.to_string())),
        }
    }
    if let Some(text) = text(AVOID_ANNOTATION) {
        match value::parse(text.as_bytes()) {
            Ok(avoided) => {
                let list = path.child(AVOID_ANNOTATION);
                for (idx, entry) in avoided["preferAvoidPods"].items().iter().enumerate() {
                    validate_avoided(entry, &list.index(idx), errors);
                }
            }
            Err(why) => {
                let error = FieldError::invalid(&path.child("AvoidPods"), AVOID_ANNOTATION, why.to_string());
                errors.push(error);
            }
        }
    }
}

/// The members of each item by the names of the API: the annotation may spell them in any case.
fn lower_case(mut items: Value) -> Value {
    for item in items.items_mut() {
        let members = item.entries().map(|(key, member)| (key.to_lowercase(), member.clone())).collect();
        *item = Value::Object(pintle_apimachinery::Object::from_unsorted(members));
    }
    items
}

fn validate_avoided(entry: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let signature = path.child("PodSignature");
    let controller = &entry["podSignature"]["podController"];
    if controller.is_null() {
        errors.push(FieldError::required(&signature, ""));
    } else if !controller["controller"].is_true() {
        let at = signature.child("PodController");
        errors.push(FieldError::invalid(&at.child("Controller"), false, "must point to a controller"));
    }
}

fn validate_resources(object: &Value, errors: &mut ErrorList) {
    let status = At::top(object, "status");
    for field in ["capacity", "allocatable"] {
        let list = status.child(field);
        for (name, amount) in list.value().entries() {
            // upstream writes the name as one more field
            validate_resource_quantity(name, &At::new(amount, list.path().child(name)), errors);
        }
    }
}

fn validate_declared_features(object: &Value, errors: &mut ErrorList) {
    let status = At::top(object, "status");
    let features = status.child("declaredFeatures");
    for (idx, feature) in features.each().enumerate() {
        let quoted = || pintle_apimachinery::field::go_quote(feature.text());
        if feature.text().len() > FEATURE_BYTES_MAX {
            let rule =
                format!("invalid feature name {}: must be no more than {FEATURE_BYTES_MAX} characters", quoted());
            errors.push(feature.invalid(rule));
        } else if !is_feature_name(feature.text()) {
            errors.push(feature.invalid(format!("invalid feature name {}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", quoted())));
        }
        let Some(next) = features.items().get(idx + 1) else { continue };
        let at = features.index(idx + 1);
        if next == feature.value() {
            errors.push(at.duplicate());
        } else if feature.text() > next.str_or_empty() {
            errors.push(at.invalid("list must be sorted alphabetically"));
        }
    }
}

fn is_feature_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.split('/').all(|segment| {
            segment.starts_with(|c: char| c.is_ascii_alphabetic()) && segment.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = At::top(object, "spec");
    if spec.child("configSource").is_set() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec["externalID"].is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for cidr in spec.child("podCIDRs").each() {
        ip::warn_of_cidr(cidr.text(), cidr.path(), &mut warnings);
    }
    warnings
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({"apiVersion": "v1", "kind": "Node"});
        let out = creates(
            "v1/nodes",
            &base,
            &[
                json!({"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"], "podCIDR": "10.0.0.0/24"}}),
                json!({"spec": {"podCIDRs": ["x"]}}),
                json!({"spec": {"taints": [{"key": "", "effect": "x"}, {"key": "a", "value": "!", "effect": "NoSchedule"},
                    {"key": "a", "effect": "NoSchedule"}, {"key": "b"}]}}),
                json!({"spec": {"configSource": {}}}),
                json!({"status": {"capacity": {"cpu": "-1"}}}),
                json!({"metadata": {"annotations": {(super::AVOID_ANNOTATION): "{"}}}),
                json!({"metadata": {"annotations": {(super::AVOID_ANNOTATION): "{\"preferAvoidPods\":[{}]}"}}}),
            ],
        );
        expect![[r#"
            {"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24","10.0.1.0/24"]}}
                spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family
            {"spec":{"podCIDRs":["x"]}}
                spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
            {"spec":{"taints":[{"effect":"x","key":""},{"effect":"NoSchedule","key":"a","value":"!"},{"effect":"NoSchedule","key":"a"},{"key":"b"}]}}
                metadata.taints[0].key: Invalid value: "": name part must be non-empty
                metadata.taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
                metadata.taints[0].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"
                metadata.taints[1].value: Invalid value: "!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
                metadata.taints[2]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair
                metadata.taints[3].effect: Required value
            {"spec":{"configSource":{}}}
            {"status":{"capacity":{"cpu":"-1"}}}
                status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0
                status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0
            {"metadata":{"annotations":{"scheduler.alpha.kubernetes.io/preferAvoidPods":"{"}}}
                metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": unexpected end of JSON input
            {"metadata":{"annotations":{"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{}]}"}}}
                metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value
        "#]].assert_eq(&out);
        let mut old = base;
        old.set("spec", json!({"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "a"}));
        old.set("status", json!({"capacity": {"cpu": "1"}}));
        let variants = [
            json!({"spec": {"unschedulable": true, "taints": [{"key": "a", "effect": "NoExecute"}]}}),
            json!({"spec": {"providerID": "b"}}),
            json!({"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}}),
        ];
        expect![[r#"
            {"spec":{"taints":[{"effect":"NoExecute","key":"a"}],"unschedulable":true}}
            {"spec":{"providerID":"b"}}
                spec.providerID: Forbidden: node updates may not change providerID except from "" to valid
            {"spec":{"podCIDR":"10.0.1.0/24","podCIDRs":["10.0.1.0/24"]}}
                spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid
        "#]]
        .assert_eq(&updates("v1/nodes", "", &old, &variants));
        let variants = [
            json!({"status": {"capacity": {"cpu": "-1", "example.com/x": "1500m"}}}),
            json!({"spec": {"unschedulable": true}, "status": {"phase": "Running"}}),
        ];
        expect![[r#"
            {"status":{"capacity":{"cpu":"-1","example.com/x":"1500m"}}}
                status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0
                status.capacity.example.com/x: Invalid value: "1500m": must be an integer
            {"spec":{"unschedulable":true},"status":{"phase":"Running"}}
        "#]]
        .assert_eq(&updates("v1/nodes", "status", &old, &variants));
    }
}
