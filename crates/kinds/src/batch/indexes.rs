//! Sets of completion indexes as Jobs write them: `0-2,5,7-9`.
//!
//! Follows: pkg/apis/batch/validation/validation.go (v1.35).

use pintle_apimachinery::field::go_quote;

/// How many indexes `text` names, all below `completions` and in ascending order.
///
/// # Errors
/// Upstream's text for the first fault.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last = None;
    let mut total = 0;
    for fragment in text.split(',') {
        let (first, end) = interval(fragment, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(out_of_order(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn out_of_order(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

fn interval(fragment: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = fragment.split('-').collect();
    if parts.len() > 2 {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            go_quote(fragment)
        ));
    }
    let index = |part: &str| {
        let digits = part.strip_prefix('+').unwrap_or(part);
        let number = digits.parse::<i64>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        match number {
            None => Err(format!("cannot convert string to integer for index: {}", go_quote(part))),
            Some(number) if number >= completions => Err(format!("too large index: {}", go_quote(part))),
            Some(number) => Ok(number),
        }
    };
    let first = index(parts[0])?;
    match parts.get(1) {
        None => Ok((first, first)),
        Some(end) => match index(end)? {
            end if first >= end => Err(out_of_order(first, end)),
            end => Ok((first, end)),
        },
    }
}

/// The first index that both sets name. Malformed parts are skipped.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    if completed.is_empty() || failed.is_empty() {
        return None;
    }
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|fragment| interval(fragment, completions).ok()).collect()
    };
    let (completed, failed) = (intervals(completed), intervals(failed));
    let (mut c, mut f) = (0, 0);
    while let (Some(a), Some(b)) = (completed.get(c), failed.get(f)) {
        if a.0 <= b.1 && b.0 <= a.1 {
            return Some(a.0.max(b.0));
        }
        if a.0 <= b.0 { c += 1 } else { f += 1 }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_indexes() {
        assert_eq!(count("0-2,5,7-9", 10), Ok(7));
        assert_eq!(count("", 10), Ok(0));
        for (text, fault) in [
            ("10", "too large index: \"10\""),
            ("2,1", "non-increasing order, previous: 2, current: 1"),
            ("3-3", "non-increasing order, previous: 3, current: 3"),
            ("a", "cannot convert string to integer for index: \"a\""),
            ("1,", "cannot convert string to integer for index: \"\""),
        ] {
            assert_eq!(count(text, 10), Err(fault.to_owned()), "{text}");
        }
        assert!(count("1-2-3", 10).unwrap_err().starts_with("the fragment \"1-2-3\" violates"));
        assert_eq!(overlap("0-2,6", "3,5-7", 10), Some(6));
        assert_eq!(overlap("0-2", "3,x", 10), None);
    }
}
