//! ResourceClaims and their status.

use super::claimvalidation::{validate_spec, validate_status};
use crate::common::{At, immutable};
use crate::prepare::{clear_status, keep, keep_metadata};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::{ErrorList, Value};

/// The strategy of ResourceClaims.
#[derive(Debug)]
pub struct ResourceClaim;

impl UpdateStrategy for ResourceClaim {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        drop_disabled_spec_fields(object.make("spec"), &old["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        immutable(&At::top(object, "spec"), &old["spec"], "resource/v1.ResourceClaimSpec", &mut errors);
        errors
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for ResourceClaim {
    fn set_defaults(&self, object: &mut Value) {
        set_spec_defaults(object.make("spec"));
    }

    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "resource/v1.ResourceClaimStatus");
        drop_disabled_spec_fields(object.make("spec"), &Value::NULL);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&At::top(object, "spec"), &mut errors);
        errors
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }
}

/// The requests of a claim, alternatives included.
fn requests(spec: &Value) -> impl Iterator<Item = &Value> {
    spec.at("devices.requests").items().iter().flat_map(|request| {
        let exactly = Some(&request["exactly"]).filter(|exactly| !exactly.is_null());
        exactly.into_iter().chain(request["firstAvailable"].items())
    })
}

fn for_each_request(spec: &mut Value, change: impl Fn(&mut Value)) {
    for request in spec.at_mut("devices.requests").map_or(&mut [][..], Value::items_mut) {
        if let Some(exactly) = request.get_mut("exactly").filter(|exactly| !exactly.is_null()) {
            change(exactly);
        }
        request.get_mut("firstAvailable").map_or(&mut [][..], Value::items_mut).iter_mut().for_each(&change);
    }
}

/// Defaults of a claim's spec, wherever it stands.
pub(super) fn set_spec_defaults(spec: &mut Value) {
    for_each_request(spec, |request| {
        request.set_default("allocationMode", "ExactCount");
        if request["allocationMode"].as_str() == Some("ExactCount") && request["count"].is_empty() {
            request.set("count", 1);
        }
        for toleration in request.get_mut("tolerations").map_or(&mut [][..], Value::items_mut) {
            toleration.set_default("operator", "Equal");
        }
    });
}

/// Fields of features that are off are kept where they are in use, not added.
pub(super) fn drop_disabled_spec_fields(spec: &mut Value, old_spec: &Value) {
    if !requests(old_spec).any(|request| !request["tolerations"].items().is_empty()) {
        for_each_request(spec, |request| {
            request.remove("tolerations");
        });
    }
    let has_distinct = |constraint: &Value| !constraint["distinctAttribute"].is_null();
    let is_consumable = old_spec.at("devices.constraints").items().iter().any(has_distinct)
        || requests(old_spec).any(|request| !request["capacity"].is_null());
    if !is_consumable {
        for constraint in spec.at_mut("devices.constraints").map_or(&mut [][..], Value::items_mut) {
            constraint.remove("distinctAttribute");
        }
        for_each_request(spec, |request| {
            request.remove("capacity");
        });
    }
}

/// `resourceclaims/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        keep_metadata(object, old);
        drop_disabled_status_fields(object, old);
        drop_deallocated_devices(object, old);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_status(object, old, &mut errors);
        errors
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["metadata", "spec"]
    }
}

fn drop_disabled_status_fields(object: &mut Value, old: &Value) {
    let results = old.at("status.allocation.devices.results").items();
    let is_set = |items: &[Value], fields: &[&str]| items.iter().any(|i| fields.iter().any(|f| !i[*f].is_null()));
    let is_consumable = {
        let constraints = old.at("spec.devices.constraints").items();
        is_set(constraints, &["distinctAttribute"])
            || requests(&old["spec"]).any(|request| !request["capacity"].is_null())
            || is_set(results, &["shareID", "consumedCapacity"])
            || is_set(old.at("status.devices").items(), &["shareID"])
    };
    let is_bindable = is_set(results, &["bindingConditions", "bindingFailureConditions"]);
    let mut remove = |list: &str, fields: &[&str]| {
        for item in object.at_mut(list).map_or(&mut [][..], Value::items_mut) {
            for field in fields {
                item.remove(field);
            }
        }
    };
    if !is_consumable {
        remove("status.allocation.devices.results", &["shareID", "consumedCapacity"]);
        remove("status.devices", &["shareID"]);
    }
    if !is_bindable {
        remove("status.allocation.devices.results", &["bindingConditions", "bindingFailureConditions"]);
    }
}

/// What tells devices apart.
pub(super) fn device_id(device: &Value) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| device[field].str_or_empty())
}

/// The status of devices that are not allocated any more goes with the allocation.
fn drop_deallocated_devices(object: &mut Value, old: &Value) {
    let allocated = |claim: &Value, id: [&str; 4]| {
        claim.at("status.allocation.devices.results").items().iter().any(|result| device_id(result) == id)
    };
    let is_gone = |device: &Value| {
        let id = device_id(device);
        allocated(old, id) && !allocated(object, id)
    };
    let devices = object.at("status.devices").items();
    if !devices.iter().any(is_gone) {
        return;
    }
    let left: Vec<Value> = devices.iter().filter(|device| !is_gone(device)).cloned().collect();
    if left.is_empty() {
        object.remove_at("status.devices");
    } else {
        object.make("status").set("devices", left);
    }
}
