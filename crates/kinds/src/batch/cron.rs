//! Schedules of cron jobs: five fields (`*/5 8-17 * * mon-fri`), names for the usual ones (`@daily`), intervals
//! (`@every 1h30m`).
//!
//! Follows: robfig/cron v3 (its standard parser and its search for the next time).

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use pintle_apimachinery::field::go_quote;

/// Years that are searched for a time before a schedule counts as never due.
const YEARS_MAX: i16 = 5;

/// When a cron job is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    rule: Rule,
    /// The zone that the schedule itself names (`TZ=Asia/Tokyo ...`), if any.
    zone: Option<TimeZone>,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Fields(Fields),
    /// Every so many seconds.
    Every(i64),
}

/// Bit n of each field says whether n is due.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Days and weekdays must both be due, because one of them was a star; else either will do.
    needs_both_days: bool,
}

/// What one field may hold.
struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MINUTES: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOURS: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAYS: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTHS: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAYS: Bounds = Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Marks a field that was a star.
const STAR: u64 = 1 << 63;

/// A zone of the IANA database by its exact name.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(name).ok().filter(|zone| zone.iana_name() == Some(name))
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// Upstream's text for the first fault.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        let zoned = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match zoned {
            None => (None, text),
            Some(rest) => {
                // what Go says of the index -1
                let (name, rest) = rest.split_once(' ').ok_or_else(|| {
                    let eq = text.find('=').unwrap_or_default() + 1;
                    format!("invalid schedule format: runtime error: slice bounds out of range [{eq}:-1]")
                })?;
                let zone =
                    time_zone(name).ok_or_else(|| format!("provided bad location {name}: unknown time zone {name}"))?;
                (Some(zone), rest.trim())
            }
        };
        let rule = match text.strip_prefix('@') {
            Some(_) => parse_descriptor(text)?,
            None => Rule::Fields(parse_fields(text)?),
        };
        Ok(Schedule { rule, zone })
    }

    /// The first time after `after` that the schedule is due, in the schedule's own zone or else in `zone`. `None` when
    /// there is none within five years.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self.rule {
            Rule::Every(seconds) => {
                let whole = pintle_apimachinery::time::floor_second(after);
                whole.checked_add(SignedDuration::from_secs(seconds)).ok()
            }
            Rule::Fields(fields) => fields.next_after(after, self.zone.as_ref().unwrap_or(zone)),
        }
    }
}

impl Fields {
    fn is_day_due(&self, date: Date) -> bool {
        let is_day = self.days & (1 << date.day()) != 0;
        let is_weekday = self.weekdays & (1 << weekday(date.weekday())) != 0;
        if self.needs_both_days { is_day && is_weekday } else { is_day || is_weekday }
    }

    fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = zone.to_datetime(pintle_apimachinery::time::floor_second(after).checked_add(1.second()).ok()?);
        let mut date = start.date();
        let last_year = date.year() + YEARS_MAX;
        while date.year() <= last_year {
            if self.months & (1 << date.month()) == 0 {
                date = date.first_of_month().checked_add(1.month()).ok()?;
                continue;
            }
            if self.is_day_due(date)
                && let Some(found) = self.first_of_day(date, after, zone)
            {
                return Some(found);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The first due time of a day after `after`. A time that the clocks skip is not due; one that they show twice is
    /// due twice.
    fn first_of_day(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut shown_twice: Option<Timestamp> = None;
        for hour in (0i8..24).filter(|hour| self.hours & (1 << hour) != 0) {
            for minute in (0i8..60).filter(|minute| self.minutes & (1 << minute) != 0) {
                let at: DateTime = date.at(hour, minute, 0, 0);
                let due = |offset: Offset| offset.to_timestamp(at).ok().filter(|due| *due > after);
                match zone.to_ambiguous_timestamp(at).offset() {
                    AmbiguousOffset::Unambiguous { offset } => {
                        if let Some(found) = due(offset) {
                            return Some(shown_twice.map_or(found, |before| before.min(found)));
                        }
                    }
                    AmbiguousOffset::Fold { before, after } => {
                        shown_twice = [shown_twice, due(before), due(after)].into_iter().flatten().min();
                    }
                    AmbiguousOffset::Gap { .. } => {}
                }
            }
        }
        shown_twice
    }
}

fn weekday(day: Weekday) -> i8 {
    day.to_sunday_zero_offset()
}

fn parse_fields(text: &str) -> Result<Fields, String> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = parts[..] else {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", parts.len(), parts.join(" ")));
    };
    let (minutes, hours) = (field(minutes, &MINUTES)?, field(hours, &HOURS)?);
    let (days, months, weekdays) = (field(days, &DAYS)?, field(months, &MONTHS)?, field(weekdays, &WEEKDAYS)?);
    Ok(Fields { minutes, hours, days, months, weekdays, needs_both_days: (days | weekdays) & STAR != 0 })
}

fn field(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let ranges = text.split(',').filter(|range| !range.is_empty());
    ranges.map(|range| bits_of(range, bounds)).try_fold(0, |bits, range| Ok(bits | range?))
}

/// `5`, `1-5`, `*`, each perhaps with `/step`.
fn bits_of(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let range_and_step: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = range_and_step[0].split('-').collect();
    let is_star = matches!(ends[0], "*" | "?");
    let (start, mut end) = match ends[..] {
        _ if is_star => (bounds.min, bounds.max),
        [only] => (number_or_name(only, bounds)?, number_or_name(only, bounds)?),
        [start, end] => (number_or_name(start, bounds)?, number_or_name(end, bounds)?),
        _ => {
            number_or_name(ends[0], bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
    };
    let step = match range_and_step[..] {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.max;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    let star = if is_star && step == 1 { STAR } else { 0 };
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((start..=end).step_by(step).fold(star, |bits, n| bits | 1 << n))
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(idx) => Ok(bounds.min + u32::try_from(idx).unwrap_or_default()),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let parsed = text.parse::<i64>().ok().filter(|_| is_number);
    match parsed {
        Some(n) if n < 0 => Err(format!("negative number ({n}) not allowed: {text}")),
        Some(n) => Ok(u32::try_from(n).unwrap_or(u32::MAX)),
        None => {
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", go_quote(text)))
        }
    }
}

fn parse_descriptor(text: &str) -> Result<Rule, String> {
    let all = |bounds: &Bounds| (bounds.min..=bounds.max).fold(STAR, |bits, n| bits | 1 << n);
    let midnight = Fields {
        minutes: 1,
        hours: 1,
        days: all(&DAYS),
        months: all(&MONTHS),
        weekdays: all(&WEEKDAYS),
        needs_both_days: true,
    };
    let fields = match text {
        "@yearly" | "@annually" => Fields { days: 1 << 1, months: 1 << 1, ..midnight },
        "@monthly" => Fields { days: 1 << 1, ..midnight },
        "@weekly" => Fields { weekdays: 1, ..midnight },
        "@daily" | "@midnight" => midnight,
        "@hourly" => Fields { hours: all(&HOURS), ..midnight },
        _ => {
            let Some(span) = text.strip_prefix("@every ") else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let nanos = go_duration(span).map_err(|why| format!("failed to parse duration {text}: {why}"))?;
            return Ok(Rule::Every(i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX).max(1)));
        }
    };
    Ok(Rule::Fields(fields))
}

/// Nanoseconds of a Go duration such as `1h30m`.
fn go_duration(text: &str) -> Result<i128, String> {
    let invalid = || format!("time: invalid duration {}", go_quote(text));
    let (is_negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let n_number = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, after) = rest.split_at(n_number);
        let n_unit = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(n_unit);
        let has_digits = number.bytes().any(|b| b.is_ascii_digit()) && number.matches('.').count() <= 1;
        if !has_digits {
            return Err(invalid());
        }
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" => return Err(format!("time: missing unit in duration {}", go_quote(text))),
            _ => return Err(format!("time: unknown unit {} in duration {}", go_quote(unit), go_quote(text))),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let fraction = &fraction[..fraction.len().min(18)];
        let digits: i128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| invalid())? };
        let power = 10i128.pow(u32::try_from(fraction.len()).unwrap_or_default());
        total =
            whole.checked_mul(scale).and_then(|n| total.checked_add(n + digits * scale / power)).ok_or_else(invalid)?;
        if total > i128::from(i64::MAX) {
            return Err(invalid());
        }
        rest = after;
    }
    Ok(if is_negative { -total } else { total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn faults() {
        let told: Vec<String> = [
            "",
            "* * * *",
            "60 * * * *",
            "* * 0 * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "x * * * *",
            "-1 * * * *",
            "@often",
            "@every",
            "@every x",
            "@every 5",
            "TZ=Nowhere * * * * *",
            "TZ=UTC",
            "TZ=UTC 0 0 * * *",
            "0 0 * JAN SUN",
        ]
        .iter()
        .map(|text| format!("{text}: {}\n", Schedule::parse(text).err().unwrap_or_default()))
        .collect();
        expect![[r#"
            : empty spec string
            * * * *: expected exactly 5 fields, found 4: [* * * *]
            60 * * * *: end of range (60) above maximum (59): 60
            * * 0 * *: beginning of range (0) below minimum (1): 0
            5-1 * * * *: beginning of range (5) beyond end of range (1): 5-1
            */0 * * * *: step of range should be a positive number: */0
            1-2-3 * * * *: too many hyphens: 1-2-3
            1/2/3 * * * *: too many slashes: 1/2/3
            x * * * *: failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax
            -1 * * * *: failed to parse int from : strconv.Atoi: parsing "": invalid syntax
            @often: unrecognized descriptor: @often
            @every: unrecognized descriptor: @every
            @every x: failed to parse duration @every x: time: invalid duration "x"
            @every 5: failed to parse duration @every 5: time: missing unit in duration "5"
            TZ=Nowhere * * * * *: provided bad location Nowhere: unknown time zone Nowhere
            TZ=UTC: invalid schedule format: runtime error: slice bounds out of range [3:-1]
            TZ=UTC 0 0 * * *: 
            0 0 * JAN SUN: 
        "#]]
        .assert_eq(&told.concat());
    }

    #[test]
    fn next_times() {
        let next = |schedule: &str, after: &str, zone: &str| {
            let zone = time_zone(zone).unwrap();
            let at = Schedule::parse(schedule).unwrap().next_after(after.parse().unwrap(), &zone);
            at.map_or_else(|| "never".to_owned(), |at| at.to_string())
        };
        let told = [
            next("*/15 * * * *", "2026-03-04T05:06:07Z", "UTC"),
            next("0 0 1 * *", "2026-12-31T23:59:59Z", "UTC"),
            next("0 0 29 2 *", "2026-03-01T00:00:00Z", "UTC"),
            next("0 0 30 2 *", "2026-03-01T00:00:00Z", "UTC"),
            next("0 0 13 * fri", "2026-03-01T00:00:00Z", "UTC"),
            next("0 12 * * *", "2026-03-04T12:00:00Z", "UTC"),
            next("@every 1h30m", "2026-03-04T05:06:07.5Z", "UTC"),
            // 02:30 does not exist on one of these days, and is twice on the other
            next("30 2 * * *", "2026-10-25T00:30:00Z", "Europe/Berlin"),
            next("30 2 * * *", "2026-03-29T00:00:00Z", "Europe/Berlin"),
            next("TZ=Asia/Tokyo 0 9 * * *", "2026-03-04T00:00:00Z", "UTC"),
        ];
        expect![[r#"
            2026-03-04T05:15:00Z
            2027-01-01T00:00:00Z
            2028-02-29T00:00:00Z
            never
            2026-03-06T00:00:00Z
            2026-03-05T12:00:00Z
            2026-03-04T06:36:07Z
            2026-10-25T01:30:00Z
            2026-03-30T00:30:00Z
            2026-03-05T00:00:00Z
        "#]]
        .assert_eq(&(told.join("\n") + "\n"));
    }
}
