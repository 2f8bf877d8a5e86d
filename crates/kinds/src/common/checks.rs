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

/// A name that can stand as one segment of a path.
pub fn path_segment(at: &At<'_>, errors: &mut ErrorList) {
    push_faults(at, names::path_segment(at.text(), false), errors);
}

/// A count or a percentage.
pub fn int_or_percent(at: &At<'_>, errors: &mut ErrorList) {
    match at.as_str() {
        Some(text) => push_faults(at, names::percent(text), errors),
        None => nonnegative(at, errors),
    }
}

/// A percentage that is more than the whole; counts pass.
pub fn at_most_100_percent(at: &At<'_>, errors: &mut ErrorList) {
    if at.as_str().and_then(pintle_apimachinery::intstr::percent).is_some_and(|percent| percent > 100) {
        errors.push(at.invalid("must not be greater than 100%"));
    }
}

/// A DNS subdomain of at least `n_segments` names (upstream spells the number as `word`), all faults in one error.
fn domain_of(at: &At<'_>, name: &str, n_segments: usize, word: &str, errors: &mut ErrorList) -> bool {
    let faults = names::dns1123_subdomain(name);
    let rule = if !faults.is_empty() {
        faults.join(",")
    } else if name.split('.').count() < n_segments {
        format!("should be a domain with at least {word} segments separated by dots")
    } else {
        return true;
    };
    errors.push(at.invalid_showing(name, rule));
    false
}

/// A name of at least three segments (webhooks have such).
pub fn fully_qualified_name(at: &At<'_>, errors: &mut ErrorList) {
    if required(at, errors) {
        domain_of(at, at.text(), 3, "three", errors);
    }
}

/// A domain name of at least two labels; a dot at the end is fine.
pub fn fully_qualified_domain_name(at: &At<'_>, errors: &mut ErrorList) {
    if !required(at, errors) {
        return;
    }
    let name = at.text().strip_suffix('.').unwrap_or_else(|| at.text());
    if !domain_of(at, name, 2, "two", errors) {
        return;
    }
    for label in name.split('.') {
        let faults = names::dns1123_label(label);
        if !faults.is_empty() {
            errors.push(at.invalid_showing(label, faults.join(",")));
            return;
        }
    }
}

/// `example.com/path`.
pub fn domain_prefixed_path(at: &At<'_>, errors: &mut ErrorList) {
    if !required(at, errors) {
        return;
    }
    let (host, path) = match at.text().split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => (host, path),
        _ => {
            errors.push(at.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")"));
            return;
        }
    };
    errors.extend(names::dns1123_subdomain(host).into_iter().map(|fault| at.invalid_showing(host, fault)));
    if !path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let fault = names::regex_fault("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push(at.invalid_showing(path, fault));
    }
}

/// `example.com/name`.
pub fn domain_prefixed_key(at: &At<'_>, errors: &mut ErrorList) {
    if !required(at, errors) {
        return;
    }
    let faults = names::qualified_name(at.text());
    if faults.is_empty() && !at.text().contains('/') {
        errors.push(at.invalid("must be a domain-prefixed key (such as \"acme.io/foo\")"));
    }
    push_faults(at, faults, errors);
}

/// The name of a CSI driver; upper case is ignored.
pub fn csi_driver_name(at: &At<'_>, errors: &mut ErrorList) {
    /// A driver's name may have this many bytes.
    const DRIVER_BYTES_MAX: usize = 63;
    if !required(at, errors) {
        return;
    }
    if at.text().len() > DRIVER_BYTES_MAX {
        errors.push(at.too_long(DRIVER_BYTES_MAX));
    }
    push_faults(at, names::dns1123_subdomain(&at.text().to_lowercase()), errors);
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
