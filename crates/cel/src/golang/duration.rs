//! Durations as Go's `time.ParseDuration` reads and `Duration.String` writes them: `1h30m`, `-1.5s`, `100ms`.

use pintle_apimachinery::field::go_quote;
use regex::Regex;
use std::sync::LazyLock;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        _ => return None,
    })
}

/// Reads a duration; the answer is in nanoseconds.
///
/// # Errors
/// Go's text when `text` is no duration or too long a one.
pub fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", go_quote(text));
    let (is_negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let n_whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, after) = rest.split_at(n_whole);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let n_unit = after.bytes().take_while(|b| *b != b'.' && !b.is_ascii_digit()).count();
        let (unit, after) = after.split_at(n_unit);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", go_quote(text)));
        }
        let nanos = unit_nanos(unit)
            .ok_or_else(|| format!("time: unknown unit {} in duration {}", go_quote(unit), go_quote(text)))?;
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let whole = whole.checked_mul(nanos).filter(|n| *n <= 1 << 63).ok_or_else(invalid)?;
        let part = whole + fraction_nanos(fraction, nanos);
        total = total.checked_add(part).filter(|n| *n <= 1 << 63).ok_or_else(invalid)?;
        rest = after;
    }
    if is_negative {
        return Ok(0i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// Units that durations of schemas may be written in beside Go's own, with their length in nanoseconds. The last name
/// of each may also begin a longer word.
const LOOSE_UNITS: &[(&[&str], i64)] = &[
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

static LOOSE_PART: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([0-9]+)[ \t\n\x0c\r]*([A-Za-zµ]+)").ok());

/// Reads a duration as schemas write them: Go's way, or numbers with units in words such as `2 weeks`.
///
/// # Errors
/// Why the text is none.
pub fn parse_loose(text: &str) -> Result<i64, String> {
    if let Ok(nanos) = parse(text) {
        return Ok(nanos);
    }
    let none = || format!("unable to parse {text} as duration");
    let mut total: Option<i64> = None;
    for found in LOOSE_PART.as_ref().into_iter().flat_map(|part| part.captures_iter(text)) {
        let count: i64 = found[1].parse().map_err(|_| none())?;
        let unit = found[2].to_lowercase();
        for (names, nanos) in LOOSE_UNITS {
            let is_it = names.contains(&unit.as_str()) || names.last().is_some_and(|last| unit.starts_with(last));
            if is_it {
                total = Some(total.unwrap_or(0).wrapping_add(count.wrapping_mul(*nanos)));
            }
        }
    }
    total.ok_or_else(none)
}

/// The nanoseconds that digits behind the point stand for.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the product is below 3.6e12 and Go computes it in floats, too"
)]
fn fraction_nanos(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1.0f64);
    for digit in digits.bytes() {
        let Some(next) = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) else { break };
        if next > i64::MAX as u64 {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Writes a duration of nanoseconds: `1h30m0s`, `1.5s`, `100ms`.
pub fn format(nanos: i64) -> String {
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let magnitude = nanos.unsigned_abs();
    if magnitude < NANOS_PER_SECOND {
        let (unit, name) = match magnitude {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{name}", decimal(magnitude, unit));
    }
    let (minutes, rest) = (magnitude / (60 * NANOS_PER_SECOND), magnitude % (60 * NANOS_PER_SECOND));
    let seconds = decimal(rest, NANOS_PER_SECOND);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// `value / unit` without trailing zeros.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, fraction) = (value / unit, value % unit);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = unit.to_string().len() - 1;
    let digits = format!("{fraction:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, nanos, back) in [
            ("1h30m", 5_400_000_000_000, "1h30m0s"),
            ("-1.5s", -1_500_000_000, "-1.5s"),
            ("100ms", 100_000_000, "100ms"),
            ("1.5µs", 1_500, "1.5µs"),
            ("0", 0, "0s"),
            (".5m", 30_000_000_000, "30s"),
            ("1m1ns", 60_000_000_001, "1m0.000000001s"),
        ] {
            assert_eq!(parse(text), Ok(nanos), "{text}");
            assert_eq!(format(nanos), back);
        }
        for (text, want) in [
            ("", "time: invalid duration \"\""),
            ("1", "time: missing unit in duration \"1\""),
            ("1y", "time: unknown unit \"y\" in duration \"1y\""),
            (".s", "time: invalid duration \".s\""),
            ("10000000h", "time: invalid duration \"10000000h\""),
        ] {
            assert_eq!(parse(text).unwrap_err(), want);
        }
    }
}
