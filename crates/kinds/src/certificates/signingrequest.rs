//! CertificateSigningRequests, their status and their approval.

use super::validation::{self, Entrance};
use crate::core::label_not_supported;
use crate::prepare::{clear_status, keep};
use crate::{FieldTable, RequestInfo, Strategy, UpdateStrategy, UserInfo};
use jiff::Timestamp;
use pintle_apimachinery::names::Faults;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{ErrorList, Str, Value};
use std::borrow::Cow;

/// The strategy of CertificateSigningRequests.
#[derive(Debug)]
pub struct CertificateSigningRequest;

impl UpdateStrategy for CertificateSigningRequest {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        keep(object, old, "status");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_update(object, old, Entrance::Whole, &mut errors);
        errors
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "status"]
    }
}

impl Strategy for CertificateSigningRequest {
    fn name_faults(&self, _: &str, _: bool) -> Faults {
        Faults::new()
    }

    fn prepare_for_create(&self, request: RequestInfo<'_>, object: &mut Value) {
        set_requester(object.make("spec"), request.user);
        clear_status(object, "certificates/v1.CertificateSigningRequestStatus");
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate(object, &mut errors);
        errors
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        match name {
            "status" => Some(&Status),
            "approval" => Some(&Approval),
            _ => None,
        }
    }

    fn selectable_fields(&self) -> FieldTable {
        &[("spec.signerName", |object| Cow::Borrowed(object.at("spec.signerName").str_or_empty()))]
    }

    fn unknown_field_message(&self, field: &str) -> String {
        label_not_supported(field)
    }
}

/// Who asks is what the server knows, not what the request says.
fn set_requester(spec: &mut Value, user: &UserInfo) {
    let mut set = |field: &str, value: Value| {
        if value.is_empty() {
            spec.remove(field);
        } else {
            spec.set(field, value);
        }
    };
    let list = |texts: &[Str]| texts.iter().map(Value::from).collect::<Value>();
    set("username", Value::from(&user.name));
    set("uid", Value::from(&user.uid));
    set("groups", list(&user.groups));
    let mut extra = Value::object();
    for (key, values) in &user.extra {
        extra.set(key, list(values));
    }
    set("extra", extra);
}

/// `certificatesigningrequests/x/status`: the certificate and conditions other than the decision.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
        keep_conditions(object, old, "Approved");
        keep_conditions(object, old, "Denied");
        set_condition_times(object, old, request.now);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_update(object, old, Entrance::Status, &mut errors);
        errors
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "status.conditions"]
    }
}

/// `certificatesigningrequests/x/approval`: the conditions alone.
#[derive(Debug)]
struct Approval;

impl UpdateStrategy for Approval {
    fn prepare_for_update(&self, request: RequestInfo<'_>, object: &mut Value, old: &Value) {
        set_condition_times(object, old, request.now);
        let conditions = object["status"]["conditions"].take();
        keep(object, old, "spec");
        keep(object, old, "status");
        let status = object.make("status");
        if conditions.is_null() {
            status.remove("conditions");
        } else {
            status.set("conditions", conditions);
        }
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validation::validate_update(object, old, Entrance::Approval, &mut errors);
        errors
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec", "status.certificate"]
    }
}

/// Puts conditions of this type back, if there are as many as before; else validation tells.
fn keep_conditions(object: &mut Value, old: &Value, condition_type: &str) {
    let is_it = |condition: &&Value| condition["type"].as_str() == Some(condition_type);
    let kept: Vec<&Value> = old.at("status.conditions").items().iter().filter(is_it).collect();
    if object.at("status.conditions").items().iter().filter(is_it).count() != kept.len() {
        return;
    }
    let conditions = object.at_mut("status.conditions").map_or(&mut [][..], Value::items_mut);
    let places = conditions.iter_mut().filter(|condition| condition["type"].as_str() == Some(condition_type));
    for (place, kept) in places.zip(kept) {
        *place = kept.clone();
    }
}

/// Fills in times that conditions lack.
fn set_condition_times(object: &mut Value, old: &Value, now: Timestamp) {
    let old_conditions = old.at("status.conditions").items();
    for condition in object.at_mut("status.conditions").map_or(&mut [][..], Value::items_mut) {
        condition.set_default("lastUpdateTime", time_value(now));
        if condition["lastTransitionTime"].is_null() {
            let is_same = |old: &&Value| {
                old["type"] == condition["type"]
                    && old["status"] == condition["status"]
                    && !old["lastTransitionTime"].is_null()
            };
            let time = old_conditions.iter().find(is_same).map(|old| old["lastTransitionTime"].clone());
            condition.set("lastTransitionTime", time.unwrap_or_else(|| time_value(now)));
        }
    }
}
