//! StatefulSets and their status.
//!
//! Follows: pkg/apis/apps/{v1,validation}, pkg/registry/apps/statefulset (v1.35).

use crate::common::checks::required;
use crate::common::claim::{ClaimOptions, set_claim_spec_defaults, validate_claim_spec};
use crate::common::equality::semantic;
use crate::common::goform::compact;
use crate::common::{At, dns1123_label, nonnegative};
use crate::core::pod::defaults::{round_requirements, set_template_defaults};
use crate::core::pod::warnings::warn_of_claim;
use crate::core::pod::{PodOptions, drop_disabled_spec_fields, template_warnings, validate_template};
use crate::core::quantities::round_up_to_millis;
use crate::prepare::{StatusMetadata, StatusSubresource, clear_status, keep, start_generation};
use crate::workload::{
    int_or_percent, parsed_selector, raise_generation, showing_selector, validate_at_most, validate_at_most_all,
    validate_collisions, validate_counts, validate_endless, validate_int_or_percent, validate_selector,
    validate_template_is_selected,
};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, json};

/// The strategy of StatefulSets.
#[derive(Debug)]
pub struct StatefulSet;

static STATUS: StatusSubresource = StatusSubresource {
    metadata: StatusMetadata::Changes,
    rounds: MetadataRounds::UPDATE,
    validate: |_, object, old| {
        let mut errors = ErrorList::new();
        let status = At::top(object, "status");
        const COUNTS: &[&str] = &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ];
        validate_counts(&status, COUNTS, &mut errors);
        validate_at_most(&status, &COUNTS[1..5], "replicas", "status.replicas", &mut errors);
        validate_at_most(&status, &["availableReplicas"], "readyReplicas", "status.readyReplicas", &mut errors);
        validate_collisions(&status, old, &mut errors);
        errors
    },
};

impl UpdateStrategy for StatefulSet {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_disabled_fields(object, old);
        raise_generation(object, old, "apps/v1.StatefulSetSpec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let pod_options = PodOptions::of_template(old.at("spec.template"));
        let tolerant = Options { is_update: true, skips_template: false, pod: pod_options };
        // a template that was malformed before is not looked at
        let mut of_old = ErrorList::new();
        validate_spec(old, &tolerant, &mut of_old);
        let mut errors = ErrorList::new();
        validate_spec(object, &Options { skips_template: !of_old.is_empty(), ..tolerant }, &mut errors);
        let mut masked = object["spec"].clone();
        for field in MUTABLE {
            keep(&mut masked, &old["spec"], field);
        }
        if !semantic(&masked, &old["spec"], "apps/v1.StatefulSetSpec") {
            errors.push(FieldError::forbidden(
                &Path::new("spec"),
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ));
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let is_same = object.generation() == old.generation();
        let mut warnings = if is_same { Vec::new() } else { template_warnings(object, "spec.template") };
        warn_of_claims(object, true, &mut warnings);
        warnings
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

/// The fields of a spec that may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

impl Strategy for StatefulSet {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("podManagementPolicy", "OrderedReady");
        let strategy = spec.make("updateStrategy");
        if strategy["type"].str_or_empty().is_empty() {
            strategy.set("type", "RollingUpdate");
            strategy.set_default("rollingUpdate", Value::object());
        }
        if strategy["type"].as_str() == Some("RollingUpdate") && !strategy["rollingUpdate"].is_null() {
            strategy.make("rollingUpdate").set_default("partition", 0);
        }
        let retention = spec.make("persistentVolumeClaimRetentionPolicy");
        retention.set_default("whenDeleted", "Retain");
        retention.set_default("whenScaled", "Retain");
        spec.set_default("replicas", 1);
        spec.set_default("revisionHistoryLimit", 10);
        set_template_defaults(spec.make("template"));
        for claim in spec.get_mut("volumeClaimTemplates").map(Value::items_mut).unwrap_or_default() {
            set_claim_defaults(claim);
        }
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Faults {
        if is_prefix { names::dns1123_label(&names::mask_trailing_dash(name)) } else { names::dns1123_label(name) }
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "apps/v1.StatefulSetStatus");
        start_generation(object);
        drop_disabled_fields(object, &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let options = Options { is_update: false, skips_template: false, pod: PodOptions::TEMPLATE };
        validate_spec(object, &options, &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        let mut warnings = template_warnings(object, "spec.template");
        warn_of_claims(object, false, &mut warnings);
        warnings
    }

    fn subresource(&self, name: &str) -> Option<&dyn UpdateStrategy> {
        (name == "status").then_some(&STATUS as _)
    }
}

/// A claim template is a whole claim, and says so.
fn set_claim_defaults(claim: &mut Value) {
    claim.set("apiVersion", "v1");
    claim.set("kind", "PersistentVolumeClaim");
    claim.make("status").set_default("phase", "Pending");
    let spec = claim.make("spec");
    set_claim_spec_defaults(spec);
    round_requirements(spec, "resources");
    let status = claim.make("status");
    round_up_to_millis(status.get_mut("capacity"));
    round_up_to_millis(status.get_mut("allocatedResources"));
}

fn drop_disabled_fields(object: &mut Value, old: &Value) {
    // MaxUnavailableStatefulSet
    if old.at("spec.updateStrategy.rollingUpdate.maxUnavailable").is_null() {
        object.remove_at("spec.updateStrategy.rollingUpdate.maxUnavailable");
    }
    drop_disabled_spec_fields(object.make("spec.template.spec"), old.at("spec.template.spec"));
}

fn warn_of_claims(object: &Value, is_update: bool, warnings: &mut Vec<String>) {
    let spec = At::top(object, "spec");
    for claim in spec.child("volumeClaimTemplates").each() {
        // upstream's path misses `spec` on create and has it capitalised on update
        let at = if is_update { claim.child_called("spec", "Spec") } else { At::new(&claim["spec"], *claim.path()) };
        warn_of_claim(&at, warnings);
    }
    if spec["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
                .to_owned(),
        );
    }
}

#[derive(Clone, Copy)]
struct Options {
    /// What cannot change is not checked again.
    is_update: bool,
    skips_template: bool,
    pod: PodOptions,
}

fn validate_spec(object: &Value, options: &Options, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let policy = spec.child("podManagementPolicy");
    if required(&policy, errors) && !matches!(policy.text(), "OrderedReady" | "Parallel") {
        errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'"));
    }
    validate_strategy(&spec.child("updateStrategy"), errors);
    let retention = spec.child("persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"] {
        let when = retention.child(when);
        if retention.is_set() && !matches!(when.text(), "Retain" | "Delete") {
            errors.push(when.not_supported(&["Retain", "Delete"]));
        }
    }
    if !options.is_update {
        for claim in spec.child("volumeClaimTemplates").each() {
            validate_claim_spec(&claim.child("spec"), ClaimOptions::default(), errors);
        }
    }
    nonnegative(&spec.child("replicas"), errors);
    nonnegative(&spec.child("minReadySeconds"), errors);
    nonnegative(&spec.descend("ordinals.start"), errors);
    let service = spec.child("serviceName");
    if !options.is_update && !service.text().is_empty() {
        dns1123_label(&service, errors);
    }
    let (selector, template) = (spec.child("selector"), spec.child("template"));
    validate_selector(&selector, "statefulset", errors);
    match parsed_selector(&selector) {
        Some(parsed) => {
            let as_run = template_as_run(&spec);
            let as_run = At::new(as_run.as_ref().unwrap_or_else(|| template.value()), *template.path());
            validate_template_is_selected(&parsed, &as_run, true, errors);
            validate_pod_template(&as_run, options, errors);
        }
        None => errors.push(showing_selector(&selector, "")),
    }
    validate_endless(&template, "StatefulSet", errors);
}

/// The template with what the controller puts in: names of its own, volumes of the claims. `None`: as it is.
fn template_as_run(spec: &Value) -> Option<Value> {
    let claims = spec["volumeClaimTemplates"].items();
    let template = &spec["template"];
    let has_names = ["hostname", "subdomain"].iter().any(|name| !template["spec"][name].is_empty());
    if claims.is_empty() && !has_names {
        return None;
    }
    let mut template = template.clone();
    let pod_spec = template.make("spec");
    pod_spec.remove("hostname");
    pod_spec.remove("subdomain");
    if !claims.is_empty() {
        let name_of = |claim: &Value| claim["metadata"]["name"].str_or_empty().to_owned();
        let mut names: Vec<String> = claims.iter().map(name_of).collect();
        names.sort();
        names.dedup();
        let volume = |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let mut volumes: Vec<Value> = names.iter().map(volume).collect();
        let is_kept = |volume: &&Value| !names.iter().any(|name| volume["name"].as_str() == Some(name));
        volumes.extend(pod_spec["volumes"].items().iter().filter(is_kept).cloned());
        pod_spec.set("volumes", Value::Array(volumes));
    }
    Some(template)
}

/// Upstream looks at the metadata of these templates twice.
fn validate_pod_template(at: &At<'_>, options: &Options, errors: &mut ErrorList) {
    if !options.skips_template {
        validate_template(at, &options.pod, errors);
    }
    crate::core::pod::validate_template_metadata(at, &options.pod, errors);
}

fn validate_strategy(at: &At<'_>, errors: &mut ErrorList) {
    let rolling = at.child("rollingUpdate");
    match at["type"].str_or_empty() {
        "" => errors.push(at.required("")),
        "OnDelete" => {
            if rolling.is_set() {
                let shown = compact(rolling.value(), "apps/v1.RollingUpdateStatefulSetStrategy");
                let error = rolling.invalid("only allowed for updateStrategy 'RollingUpdate'");
                errors.push(FieldError { shown: Some(shown), ..error });
            }
        }
        "RollingUpdate" => {
            nonnegative(&rolling.child("partition"), errors);
            let unavailable = rolling.child("maxUnavailable");
            if unavailable.is_set() {
                validate_int_or_percent(&unavailable, errors);
                if int_or_percent(&unavailable) == 0 {
                    errors.push(unavailable.invalid("cannot be 0"));
                }
                validate_at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let shown = compact(at.value(), "apps/v1.StatefulSetUpdateStrategy");
            errors.push(FieldError { shown: Some(shown), ..at.invalid("must be 'RollingUpdate' or 'OnDelete'") });
        }
    }
}
