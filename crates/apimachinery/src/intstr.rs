//! Int-or-string fields: ports by number or name, counts as numbers or percentages.

use crate::Value;

/// The percentage of `"25%"`; `None` for any other text.
pub fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The count that `value` asks for out of `total`: itself if it is a number, a share of `total` if it is a percentage.
/// `None` when it is neither.
pub fn scaled(value: &Value, total: i64, round_up: bool) -> Option<i64> {
    match value {
        Value::Int(i) => Some(*i),
        Value::String(s) => {
            let share = percent(s)?.checked_mul(total)?;
            Some(if round_up {
                share.div_euclid(100) + i64::from(share.rem_euclid(100) != 0)
            } else {
                share.div_euclid(100)
            })
        }
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_as_asked() {
        assert_eq!(scaled(&"25%".into(), 10, true), Some(3));
        assert_eq!(scaled(&"25%".into(), 10, false), Some(2));
        assert_eq!(scaled(&7.into(), 10, false), Some(7));
        assert_eq!(scaled(&"x".into(), 10, false), None);
        assert_eq!(percent("%"), None);
        assert_eq!(percent("-5%"), None);
    }
}
