//! Counts that are numbers or percentages.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pintle_apimachinery::intstr::percent;

/// The count that `value` asks for out of `total`. `None` for a text that is no percentage.
pub(crate) fn scaled(value: &IntOrString, total: i32, rounds_up: bool) -> Option<i32> {
    match value {
        IntOrString::Int(count) => Some(*count),
        IntOrString::String(text) => {
            let share = percent(text)?.checked_mul(i64::from(total))?;
            let rounded = share.div_euclid(100) + i64::from(rounds_up && share.rem_euclid(100) != 0);
            i32::try_from(rounded).ok()
        }
    }
}
