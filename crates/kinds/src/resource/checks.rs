//! What the kinds of this group share: bounded lists, names of devices, pools and requests, selectors and opaque
//! configuration.
//!
//! Not here: the rules of features that are off, whose fields are dropped before anything is checked.

use crate::common::checks::{csi_driver_name, dns1123_label, push_faults, required};
use crate::common::expression::{self, Expression, Scope, Wanted};
use crate::common::{At, Seen};
use pintle_apimachinery::names::{self, SUBDOMAIN_BYTES_MAX};
use pintle_apimachinery::{ErrorList, FieldError, Value};

/// More selectors than these are refused.
const SELECTORS_MAX: usize = 32;
/// More configurations of a class or claim than these are refused.
pub(super) const CONFIGS_MAX: usize = 32;
/// An expression may have this many bytes.
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
/// Opaque parameters may have this many bytes.
const RAW_BYTES_MAX: usize = 10 * 1024;
/// The name of an attribute may have this many bytes, without its domain.
const IDENTIFIER_BYTES_MAX: usize = 32;

/// Checks a list of at most `max` items; of a longer one nothing else is told.
pub(super) fn validate_list(
    list: &At<'_>,
    max: Option<usize>,
    mut validate: impl FnMut(&At<'_>, &mut ErrorList),
    errors: &mut ErrorList,
) -> bool {
    let n_items = list.items().len();
    if let Some(max) = max.filter(|max| n_items > *max) {
        errors.push(FieldError::too_many(list.path(), n_items, max));
        return false;
    }
    list.each().for_each(|item| validate(&item, errors));
    true
}

/// [`validate_list`] of items that differ in what `key` takes from them.
pub(super) fn validate_set(
    list: &At<'_>,
    max: Option<usize>,
    validate: impl FnMut(&At<'_>, &mut ErrorList),
    key: impl for<'v> Fn(&'v Value) -> &'v str,
    errors: &mut ErrorList,
) {
    if !validate_list(list, max, validate, errors) {
        return;
    }
    let mut seen = Seen::new();
    for item in list.each() {
        let key = key(item.value());
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(item.path(), key));
        }
    }
}

/// The name of a pool of devices: subdomains between slashes.
pub(super) fn validate_pool_name(at: &At<'_>, errors: &mut ErrorList) {
    if !required(at, errors) {
        return;
    }
    if at.text().len() > SUBDOMAIN_BYTES_MAX {
        errors.push(at.too_long(SUBDOMAIN_BYTES_MAX));
    }
    for part in at.text().split('/') {
        errors.extend(names::dns1123_subdomain(part).into_iter().map(|fault| at.invalid_showing(part, fault)));
    }
}

/// The selectors of a class or request. `is_stored` tells that the old object held the same ones.
pub(super) fn validate_selectors(list: &At<'_>, is_stored: bool, errors: &mut ErrorList) {
    let validate = |selector: &At<'_>, errors: &mut ErrorList| {
        let cel = selector.child("cel");
        let text = cel.child("expression");
        if !cel.is_set() {
            errors.push(cel.required(""));
        } else if text.text().len() > EXPRESSION_BYTES_MAX {
            errors.push(text.too_long(EXPRESSION_BYTES_MAX));
        } else {
            let scope = Scope { is_device: true, ..Scope::default() };
            let (wanted, shown) = (Wanted::Bool, text.text());
            expression::validate(&text, &Expression { text: shown, shown, wanted, scope, is_stored }, errors);
        }
    };
    validate_list(list, Some(SELECTORS_MAX), validate, errors);
}

/// What a driver alone understands.
pub(super) fn validate_configuration(at: &At<'_>, is_stored: bool, errors: &mut ErrorList) {
    let opaque = at.child("opaque");
    if !opaque.is_set() {
        errors.push(opaque.required(""));
        return;
    }
    csi_driver_name(&opaque.child("driver"), errors);
    validate_raw(&opaque.child("parameters"), is_stored, errors);
}

/// An object that the server does not look into. A stored one may be longer than new ones.
pub(super) fn validate_raw(at: &At<'_>, is_stored: bool, errors: &mut ErrorList) {
    if !at.is_set() {
        errors.push(at.required(""));
    } else if !is_stored && at.to_json().len() > RAW_BYTES_MAX {
        errors.push(at.too_long(RAW_BYTES_MAX));
    } else if at.as_object().is_none() {
        errors.push(at.invalid_showing("<value omitted>", "must be a valid JSON object"));
    }
}

/// The name of an attribute: an identifier, perhaps behind a domain. Messages are about the place `at`.
pub(super) fn validate_qualified_name(at: &At<'_>, name: &str, errors: &mut ErrorList) {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(identifier), None, _) => validate_identifier(at, identifier, errors),
        (Some(domain), Some(identifier), None) => {
            if domain.is_empty() {
                errors.push(at.invalid_showing("", "the domain must not be empty"));
            } else {
                let domain = Value::from(domain);
                csi_driver_name(&At::new(&domain, *at.path()), errors);
            }
            if identifier.is_empty() {
                errors.push(at.invalid_showing("", "the name must not be empty"));
            } else {
                validate_identifier(at, identifier, errors);
            }
        }
        _ => {}
    }
}

fn validate_identifier(at: &At<'_>, identifier: &str, errors: &mut ErrorList) {
    if identifier.len() > IDENTIFIER_BYTES_MAX {
        errors.push(at.too_long(IDENTIFIER_BYTES_MAX));
    }
    let is_word = identifier.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
    if identifier.is_empty() || !is_word || identifier.as_bytes()[0].is_ascii_digit() {
        let fault = names::regex_fault(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
             characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*",
            &["my_name", "MY_NAME", "MyName"],
        );
        errors.push(at.invalid_showing(identifier, fault));
    }
}

/// The requests of a claim by name, each with its alternatives.
pub(super) struct Requests<'v>(pub(super) &'v [Value]);

impl Requests<'_> {
    /// Checks a reference to a request or to one of its alternatives.
    pub(super) fn validate_reference(&self, at: &At<'_>, errors: &mut ErrorList) {
        const RULE: &str =
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
        if at.text().split('/').nth(2).is_some() {
            errors.push(at.invalid(RULE));
            return;
        }
        for segment in at.text().split('/') {
            errors.extend(names::dns1123_label(segment).into_iter().map(|fault| at.invalid_showing(segment, fault)));
        }
        if !self.has(at.text()) {
            errors.push(at.invalid(RULE));
        }
    }

    fn has(&self, reference: &str) -> bool {
        let (name, alternative) = match reference.split_once('/') {
            Some((name, alternative)) => (name, Some(alternative)),
            None => (reference, None),
        };
        let is_named = |value: &Value, name: &str| value["name"].str_or_empty() == name;
        self.0.iter().rev().find(|request| is_named(request, name)).is_some_and(|request| {
            alternative.is_none_or(|name| request["firstAvailable"].items().iter().any(|it| is_named(it, name)))
        })
    }
}

/// The name of a node, if it is one.
pub(super) fn validate_node_name(at: &At<'_>, errors: &mut ErrorList) {
    push_faults(at, names::dns1123_subdomain(at.text()), errors);
}

/// Driver, pool and name of a device.
pub(super) fn validate_device_id(at: &At<'_>, errors: &mut ErrorList) {
    csi_driver_name(&at.child("driver"), errors);
    validate_pool_name(&at.child("pool"), errors);
    dns1123_label(&at.child("device"), errors);
}
