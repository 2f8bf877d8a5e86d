//! Conditions as `meta/v1` has them.
//!
//! Follows: apimachinery/pkg/apis/meta/v1/validation (v0.35).

use super::At;
use super::checks::{one_of, qualified_name, required};
use pintle_apimachinery::{ErrorList, Value, names};

/// A condition's reason may have this many bytes.
pub const REASON_BYTES_MAX: usize = 1024;

/// A condition's message may have this many bytes.
pub const MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// A list of conditions, each type once.
pub fn validate_conditions(conditions: &At<'_>, errors: &mut ErrorList) {
    for (idx, condition) in conditions.each().enumerate() {
        let is_same = |other: &Value| other["type"] == condition["type"];
        if conditions.items()[..idx].iter().any(is_same) {
            errors.push(condition.child("type").duplicate());
        }
        validate_condition(&condition, errors);
    }
}

fn validate_condition(condition: &At<'_>, errors: &mut ErrorList) {
    qualified_name(&condition.child("type"), errors);
    one_of(&condition.child("status"), &["False", "True", "Unknown"], errors);
    let generation = condition.child("observedGeneration");
    if generation.int() < 0 {
        errors.push(generation.invalid_int("must be greater than or equal to zero"));
    }
    let time = condition.child("lastTransitionTime");
    if !time.is_set() {
        errors.push(time.required(""));
    }
    let (reason, message) = (condition.child("reason"), condition.child("message"));
    if required(&reason, errors) {
        if !is_reason(reason.text()) {
            errors.push(reason.invalid(names::regex_fault(
                "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
                "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
            )));
        }
        if reason.text().len() > REASON_BYTES_MAX {
            errors.push(reason.too_long(REASON_BYTES_MAX));
        }
    }
    if message.text().len() > MESSAGE_BYTES_MAX {
        errors.push(message.too_long(MESSAGE_BYTES_MAX));
    }
}

fn is_reason(text: &str) -> bool {
    let is_inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(is_inner)
        && bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}
