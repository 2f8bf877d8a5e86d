//! CSIDrivers.

use crate::common::checks::one_of;
use crate::common::{At, Seen, equality, goform};
use crate::meta::IMMUTABLE;
use crate::prepare::raise_generation;
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, FieldError, Value, json};

const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

/// The strategy of CSIDrivers.
#[derive(Debug)]
pub struct CsiDriver;

impl UpdateStrategy for CsiDriver {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let (spec, old_spec) = (At::top(object, "spec"), &old["spec"]);
        validate(&spec, &mut errors);
        // upstream calls the first field so
        for (field, called, kind) in [
            ("attachRequired", "attachedRequired", "*bool"),
            ("volumeLifecycleModes", "volumeLifecycleModes", "[]string"),
        ] {
            let at = spec.child_called(field, called);
            if !equality::semantic(at.value(), &old_spec[field], "") {
                let shown = goform::compact(at.value(), kind);
                errors.push(FieldError { shown: Some(shown), ..at.invalid(IMMUTABLE) });
            }
        }
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> Vec<String> {
        let is_changed = object.at("spec.tokenRequests") != old.at("spec.tokenRequests");
        if is_changed { warnings(object) } else { Vec::new() }
    }
}

impl Strategy for CsiDriver {
    fn set_defaults(&self, object: &mut Value) {
        let spec = object.make("spec");
        spec.set_default("attachRequired", true);
        for off in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
            spec.set_default(off, false);
        }
        spec.set_default("fsGroupPolicy", "ReadWriteOnceWithFSType");
        if spec["volumeLifecycleModes"].items().is_empty() {
            spec.set("volumeLifecycleModes", json!(["Persistent"]));
        }
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(&At::top(object, "spec"), &mut errors);
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

fn warnings(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let has_tokens = !spec["tokenRequests"].items().is_empty();
    if has_tokens && spec["serviceAccountTokenInSecrets"].is_null() {
        vec![TOKENS_IN_SECRETS.to_owned()]
    } else {
        Vec::new()
    }
}

/// Shortest life of a token that a driver may ask for.
const TOKEN_SECONDS_MIN: i64 = 600;
/// Longest life of a token that a driver may ask for.
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
/// Shortest time between updates of what can be allocated on a node.
const UPDATE_PERIOD_SECONDS_MIN: i64 = 10;

fn validate(spec: &At<'_>, errors: &mut ErrorList) {
    let policy = spec.child("fsGroupPolicy");
    if policy.is_set() {
        one_of(&policy, &["File", "None", "ReadWriteOnceWithFSType"], errors);
    }
    let tokens = spec.child("tokenRequests");
    validate_tokens(&tokens, errors);
    let modes = spec.child("volumeLifecycleModes");
    for mode in modes.items() {
        // upstream names the list, not the item
        one_of(&At::new(mode, *modes.path()), &["Persistent", "Ephemeral"], errors);
    }
    let period = spec.child("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < UPDATE_PERIOD_SECONDS_MIN {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let in_secrets = spec.child("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && tokens.items().is_empty() {
        errors.push(in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified"));
    }
}

fn validate_tokens(tokens: &At<'_>, errors: &mut ErrorList) {
    let mut seen = Seen::new();
    for token in tokens.each() {
        let (audience, life) = (token.child("audience"), token.child("expirationSeconds"));
        if !seen.insert(token.value()["audience"].str_or_empty()) {
            errors.push(audience.duplicate());
            continue;
        }
        if life.is_set() && life.int() < TOKEN_SECONDS_MIN {
            errors.push(life.invalid("may not specify a duration less than 10 minutes"));
        }
        if life.int() > TOKEN_SECONDS_MAX {
            errors.push(life.invalid("may not specify a duration larger than 2^32 seconds"));
        }
    }
}
