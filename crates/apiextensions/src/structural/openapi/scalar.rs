//! Checks of single values: strings, numbers, enumerations, counts.

use super::fault::{Fault, Outcome, Place};
use crate::structural::Checks;
use pintle_apimachinery::Value;
use pintle_apimachinery::value::go_g;
use pintle_cel::strfmt::Check;

/// Length and pattern; only the first fault is told.
pub(super) fn check_string(checks: &Checks, text: &str, place: &Place<'_>) -> Outcome {
    let n_chars = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = checks.max_length {
        // the count of bytes is at least that of characters
        let is_surely_fit = i64::try_from(text.len()).is_ok_and(|len| len <= max);
        if !is_surely_fit && n_chars() > max {
            return Outcome::of(Fault::too_long(place, max));
        }
    }
    if let Some(min) = checks.min_length.filter(|min| n_chars() < *min) {
        return Outcome::of(Fault::bound(place, text, format!("should be at least {min} chars long")));
    }
    let Some(pattern) = &checks.pattern else { return Outcome::default() };
    match &pattern.compiled {
        Ok(regexp) if regexp.is_match(text) => Outcome::default(),
        Ok(_) => Outcome::of(Fault::bound(place, text, format!("should match '{}'", pattern.text))),
        Err(why) => {
            let rule = format!("should match '{}, but pattern is invalid: {why}'", pattern.text);
            Outcome::of(Fault::bound(place, text, rule))
        }
    }
}

/// A string's format.
pub(super) fn check_format(checks: &Checks, check: Check, text: &str, place: &Place<'_>) -> Outcome {
    if check(text) { Outcome::default() } else { Outcome::of(Fault::wrong_type(place, &checks.format, text)) }
}

/// Bounds and multiples. Integers are compared with bounds cut to integers, as upstream does.
pub(super) fn check_number(checks: &Checks, value: &Value, place: &Place<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(factor) = checks.multiple_of {
        let shown = bound_text(value, factor);
        match is_multiple(value, factor) {
            None => outcome.add(Fault::bad_factor(place, shown)),
            Some(false) => outcome.add(Fault::bound(place, value, format!("should be a multiple of {shown}"))),
            Some(true) => {}
        }
    }
    if let Some(min) = checks.minimum {
        let (is_below, is_equal) = compare(value, min);
        if is_below || (is_equal && checks.exclusive_minimum) {
            let words = if checks.exclusive_minimum { "greater than" } else { "greater than or equal to" };
            outcome.add(Fault::bound(place, value, format!("should be {words} {}", bound_text(value, min))));
        }
    }
    if let Some(max) = checks.maximum {
        let (is_below, is_equal) = compare(value, max);
        if !is_below && (!is_equal || checks.exclusive_maximum) {
            let words = if checks.exclusive_maximum { "less than" } else { "less than or equal to" };
            outcome.add(Fault::bound(place, value, format!("should be {words} {}", bound_text(value, max))));
        }
    }
    outcome.n_matches += 1;
    outcome
}

#[expect(clippy::cast_possible_truncation, reason = "bounds are cut to integers beside integers, as upstream does")]
fn cut(bound: f64) -> i64 {
    bound as i64
}

/// A bound as it is told beside a value: cut to an integer if the value is one.
fn bound_text(value: &Value, bound: f64) -> String {
    if matches!(value, Value::Int(_)) { cut(bound).to_string() } else { go_g(bound) }
}

/// Whether the value is below the bound, and whether it equals it.
fn compare(value: &Value, bound: f64) -> (bool, bool) {
    match value {
        Value::Int(i) => (*i < cut(bound), *i == cut(bound)),
        other => {
            let f = other.as_f64().unwrap_or_default();
            (f < bound, f == bound)
        }
    }
}

/// Whether the value is a multiple; `None` where the factor is not positive.
fn is_multiple(value: &Value, factor: f64) -> Option<bool> {
    if let Value::Int(i) = value {
        let factor = cut(factor);
        return (factor > 0).then(|| i % factor == 0);
    }
    if factor <= 0.0 {
        return None;
    }
    let data = value.as_f64().unwrap_or_default();
    let quotient = if factor < 1.0 { 1.0 / factor * data } else { data / factor };
    Some(is_json_integer(quotient))
}

/// Whether a float is a whole number but for rounding, within what JSON holds exactly.
pub(super) fn is_json_integer(f: f64) -> bool {
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !f.is_finite() || f.abs() > EXACT_MAX {
        return false;
    }
    let whole = f.trunc();
    let diff = (f - whole).abs();
    if f == whole || f < 0.0 {
        return f == whole;
    }
    if f == 0.0 || whole == 0.0 || diff < f64::MIN_POSITIVE {
        return diff < EPSILON * f64::MIN_POSITIVE;
    }
    diff / (f.abs() + whole.abs()).min(f64::MAX) < EPSILON
}

/// Membership in an enumeration.
pub(super) fn check_enum(checks: &Checks, value: &Value, place: &Place<'_>) -> Outcome {
    let is_member =
        checks.enumeration.is_empty() || checks.enumeration.iter().any(|member| is_enum_equal(value, member));
    if is_member { Outcome::default() } else { Outcome::of(Fault::not_supported(place, value, &checks.enumeration)) }
}

/// Equality after conversion to the member's type. Null equals nothing.
fn is_enum_equal(value: &Value, member: &Value) -> bool {
    match (value, member) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Float(f), Value::Int(i)) => cut(*f) == *i,
        #[expect(clippy::cast_precision_loss, reason = "the conversion that upstream makes")]
        (Value::Int(i), Value::Float(f)) => *i as f64 == *f,
        (value, member) => value == member,
    }
}

/// How many items, and whether each is there once.
pub(super) fn check_item_count(checks: &Checks, items: &[Value], place: &Place<'_>, outcome: &mut Outcome) {
    let n_items = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(min) = checks.min_items.filter(|min| n_items < *min) {
        outcome.add(Fault::bound(place, n_items, format!("should have at least {min} items")));
    }
    if let Some(max) = checks.max_items.filter(|max| n_items > *max) {
        outcome.add(Fault::too_many(place, n_items, max));
    }
    if checks.unique_items && items.iter().enumerate().any(|(idx, item)| items[..idx].contains(item)) {
        outcome.add(Fault::bound(place, "", "shouldn't contain duplicates"));
    }
}
