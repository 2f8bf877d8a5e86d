//! `Time` and `MicroTime`: the two spellings of a moment on the wire.

use crate::{Str, Value};
use jiff::Timestamp;

/// A moment as `Time` spells it: whole seconds, UTC, `2026-01-01T00:00:00Z`.
pub fn format_time(at: Timestamp) -> Str {
    let at = floor_second(at);
    // jiff prints no fraction for whole seconds
    Str::from(at.to_string())
}

/// A moment as `MicroTime` spells it: always six digits of fraction.
pub fn format_micro_time(at: Timestamp) -> Str {
    Str::from(format!("{at:.6}"))
}

/// [`format_time`] as a value.
pub fn time_value(at: Timestamp) -> Value {
    Value::String(format_time(at))
}

/// [`format_micro_time`] as a value.
pub fn micro_time_value(at: Timestamp) -> Value {
    Value::String(format_micro_time(at))
}

/// Reads RFC 3339. `None` for anything else.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    // Go's RFC3339 wants the capital T, seconds, and a zone; jiff is more lenient.
    let bytes = text.as_bytes();
    let is_shaped = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':'
        && !text.contains(['[', 't', 'z', ' ']);
    if is_shaped { text.parse().ok() } else { None }
}

/// The moment without its fraction of a second.
pub fn floor_second(at: Timestamp) -> Timestamp {
    let nanos = at.subsec_nanosecond();
    let second = if nanos < 0 { at.as_second() - 1 } else { at.as_second() };
    Timestamp::from_second(second).unwrap_or(at)
}

/// Seconds from `earlier` to `later`, negative when they are the other way round.
pub fn seconds_between(earlier: Timestamp, later: Timestamp) -> i64 {
    later.as_second() - earlier.as_second()
}

/// A span of time as `kubectl get` shows ages: the two most significant units while they matter (`45s`, `3m12s`,
/// `5h3m`, `2d4h`, `12d`, `2y35d`). Negative spans show as `<invalid>`, those within two seconds of now as `0s`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3_600;
    const DAY: i64 = 86_400;
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    if seconds < 0 {
        return "0s".to_owned();
    }
    let two = |big: i64, big_unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
    };
    let (minutes, hours, days) = (seconds / MINUTE, seconds / HOUR, seconds / DAY);
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if minutes < 10 {
        two(minutes, 'm', seconds % MINUTE, 's')
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, 'd', hours % 24, 'h')
    } else if days < 2 * 365 {
        format!("{days}d")
    } else if days < 8 * 365 {
        two(days / 365, 'y', days % 365, 'd')
    } else {
        format!("{}y", days / 365)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let at: Timestamp = "2026-03-04T05:06:07.891234567Z".parse().unwrap();
        assert_eq!(format_time(at), "2026-03-04T05:06:07Z");
        assert_eq!(format_micro_time(at), "2026-03-04T05:06:07.891234Z");
        assert_eq!(format_micro_time(floor_second(at)), "2026-03-04T05:06:07.000000Z");
        assert_eq!(parse_time("2026-03-04T05:06:07+01:00").map(format_time).as_deref(), Some("2026-03-04T04:06:07Z"));
        for bad in ["", "2026-03-04", "2026-03-04T05:06Z", "2026-03-04 05:06:07Z", "yesterday", "2026-13-04T05:06:07Z"]
        {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn ages() {
        let got: Vec<String> =
            [-5, -1, 0, 119, 120, 599, 600, 10_799, 10_800, 28_800, 172_800, 180_000, 700_000, 63_072_000, 63_158_400]
                .map(human_duration)
                .to_vec();
        assert_eq!(
            got,
            [
                "<invalid>",
                "0s",
                "0s",
                "119s",
                "2m",
                "9m59s",
                "10m",
                "179m",
                "3h",
                "8h",
                "2d",
                "2d2h",
                "8d",
                "2y",
                "2y1d"
            ]
        );
    }
}
