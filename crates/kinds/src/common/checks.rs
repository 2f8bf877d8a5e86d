//! Checks of single values: presence, numbers, enumerations, names, ports, immutability.

use super::At;
use super::equality;
use crate::meta::IMMUTABLE;
use pintle_apimachinery::names::{self, Faults};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// What upstream says of a number that must not be negative.
pub const NEGATIVE: &str = "must be greater than or equal to 0";
/// What upstream says of a number that must be positive.
pub const NOT_POSITIVE: &str = "must be greater than zero";

/// A string that must not be empty. Answers whether it is there.
pub fn required(at: &At<'_>, errors: &mut ErrorList) -> bool {
    let is_there = !at.text().is_empty();
    if !is_there {
        errors.push(at.required(""));
    }
    is_there
}

/// A number (0 when absent) that must not be negative.
pub fn nonnegative(at: &At<'_>, errors: &mut ErrorList) {
    if at.int() < 0 {
        errors.push(at.invalid_int(NEGATIVE));
    }
}

/// A number (0 when absent) that must be positive.
pub fn positive(at: &At<'_>, errors: &mut ErrorList) {
    if at.int() <= 0 {
        errors.push(at.invalid_int(NOT_POSITIVE));
    }
}

/// A string that must be one of `supported`, which upstream tells in this order.
pub fn one_of(at: &At<'_>, supported: &[&str], errors: &mut ErrorList) {
    if !supported.contains(&at.text()) {
        errors.push(at.not_supported(supported));
    }
}

/// [`one_of`] where an empty string is "required" instead.
pub fn one_of_required(at: &At<'_>, supported: &[&str], errors: &mut ErrorList) {
    if required(at, errors) {
        one_of(at, supported, errors);
    }
}

/// One error per fault that a rule of [`names`] found in the string.
pub fn push_faults(at: &At<'_>, faults: Faults, errors: &mut ErrorList) {
    errors.extend(faults.into_iter().map(|fault| at.invalid(fault)));
}

/// A DNS label.
pub fn dns1123_label(at: &At<'_>, errors: &mut ErrorList) {
    push_faults(at, names::dns1123_label(at.text()), errors);
}

/// A DNS subdomain.
pub fn dns1123_subdomain(at: &At<'_>, errors: &mut ErrorList) {
    push_faults(at, names::dns1123_subdomain(at.text()), errors);
}

/// A label key or what is built like one.
pub fn qualified_name(at: &At<'_>, errors: &mut ErrorList) {
    push_faults(at, names::qualified_name(at.text()), errors);
}

/// A port number.
pub fn port_number(at: &At<'_>, errors: &mut ErrorList) {
    errors.extend(names::port_number(at.int()).into_iter().map(|fault| at.invalid_int(fault)));
}

/// A port by number or by name.
pub fn port_number_or_name(at: &At<'_>, errors: &mut ErrorList) {
    match at.as_str() {
        Some(name) => push_faults(at, names::port_name(name), errors),
        None => port_number(at, errors),
    }
}

/// A field that must stay as it was. `type_name` is the field's type where that is a struct (as `core/v1.PodSpec`),
/// else `""`; it decides what counts as equal and how the message shows the value.
pub fn immutable(new: &At<'_>, old: &Value, type_name: &str, errors: &mut ErrorList) {
    if !equality::semantic(new.value(), old, type_name) {
        errors.push(changed(new, type_name));
    }
}

/// The error of a field that changed and must not.
pub fn changed(new: &At<'_>, type_name: &str) -> FieldError {
    let shown = super::goform::compact(new.value(), type_name);
    FieldError { shown: Some(shown), ..new.invalid(IMMUTABLE) }
}
