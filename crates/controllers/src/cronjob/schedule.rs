//! Cron schedules: `*/5 9-17 * * MON-FRI`, `@daily`, `@every 90s`. Pure.
//!
//! Follows: robfig/cron v3 ParseStandard. A time that a change of clocks leaves out is left out; one that comes twice
//! counts once.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

/// Days looked through for the next time: a schedule without one in five years has none.
const DAYS_MAX: usize = 5 * 366;

/// When something happens again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    /// At the times that match.
    Times(Times),
    /// After each such pause.
    Every(SignedDuration),
}

/// Minutes, hours, days of the month, months and days of the week, as sets of bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Times {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// One of the two kinds of days is `*`: both must match. Else one of them is enough.
    has_star_day: bool,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Schedule, String> {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("@every ") {
            let pause: SignedDuration =
                rest.trim().parse().map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            // whole seconds, at least one
            return Ok(Schedule::Every(SignedDuration::from_secs(pause.as_secs().max(1))));
        }
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(format!("expected exactly 5 fields, found {}: {fields:?}", fields.len()));
        };
        let is_star = |field: &str| field.split(',').any(|part| part.starts_with(['*', '?']));
        Ok(Schedule::Times(Times {
            minutes: bits(minutes, 0, 59, &[], 0)?,
            hours: bits(hours, 0, 23, &[], 0)?,
            days: bits(days, 1, 31, &[], 0)?,
            months: bits(months, 1, 12, &MONTHS, 1)?,
            weekdays: bits(weekdays, 0, 6, &WEEKDAYS, 0)?,
            has_star_day: is_star(days) || is_star(weekdays),
        }))
    }

    /// The first time after `after`.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Schedule::Every(pause) => Timestamp::from_second(after.as_second()).ok()?.checked_add(*pause).ok(),
            Schedule::Times(times) => times.next(after, zone),
        }
    }
}

impl Times {
    fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = after.to_zoned(zone.clone()).datetime();
        let mut date = start.date();
        for _ in 0..DAYS_MAX {
            if self.has_day(date)
                && let Some(found) = self.first_of_day(date, after, zone)
            {
                return Some(found);
            }
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let has = |set: u64, value: i8| u32::try_from(value).is_ok_and(|value| set & (1 << value) != 0);
        let is_day = has(self.days, date.day());
        let is_weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_either = if self.has_star_day { is_day && is_weekday } else { is_day || is_weekday };
        has(self.months, date.month()) && is_either
    }

    fn first_of_day(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let matching = |set: u64, end: i8| (0..end).filter(move |value| set & (1_u64 << value) != 0);
        for hour in matching(self.hours, 24) {
            for minute in matching(self.minutes, 60) {
                let wanted: DateTime = date.at(hour, minute, 0, 0);
                let Ok(zoned) = wanted.to_zoned(zone.clone()) else { continue };
                if zoned.datetime() == wanted && zoned.timestamp() > after {
                    return Some(zoned.timestamp());
                }
            }
        }
        None
    }
}

/// The set of a field: lists of `*`, `a`, `a-b`, each with `/step`.
fn bits(field: &str, min: u32, max: u32, names: &[&str], first_name: u32) -> Result<u64, String> {
    let mut set = 0;
    for part in field.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let number = |text: &str| -> Result<u32, String> {
            let name = names.iter().position(|name| name.eq_ignore_ascii_case(text));
            let named = name.and_then(|idx| u32::try_from(idx).ok()).map(|idx| idx + first_name);
            named.map_or_else(|| text.parse().map_err(|_| format!("failed to parse int from {text}")), Ok)
        };
        let (first, last) = match range {
            "*" | "?" => (min, max),
            _ => match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                // `5/15` is `5-max/15`
                None if step.is_some() => (number(range)?, max),
                None => (number(range)?, number(range)?),
            },
        };
        let step = step.map_or(Ok(1), number)?;
        if first < min || last > max || first > last || step == 0 {
            return Err(format!("{part} is not within {min} to {max}"));
        }
        for value in (first..=last).step_by(usize::try_from(step).unwrap_or(1)) {
            set |= 1 << value;
        }
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str, zone: &str) -> String {
        let zone = TimeZone::get(zone).unwrap();
        let found = Schedule::parse(schedule).unwrap().next(after.parse().unwrap(), &zone);
        found.map_or_else(|| "never".to_owned(), |found| found.to_string())
    }

    #[test]
    fn next_times() {
        let cases = [
            ("*/5 * * * *", "2026-01-01T00:02:03Z", "UTC", "2026-01-01T00:05:00Z"),
            ("*/5 * * * *", "2026-01-01T00:05:00Z", "UTC", "2026-01-01T00:10:00Z"),
            ("0 9 * * MON-FRI", "2026-01-02T09:00:00Z", "UTC", "2026-01-05T09:00:00Z"),
            ("0 0 13 * FRI", "2026-01-03T00:00:00Z", "UTC", "2026-01-09T00:00:00Z"),
            ("0 0 29 2 *", "2026-01-01T00:00:00Z", "UTC", "2028-02-29T00:00:00Z"),
            ("0 0 30 2 *", "2026-01-01T00:00:00Z", "UTC", "never"),
            ("@daily", "2026-06-01T12:00:00Z", "Europe/Berlin", "2026-06-01T22:00:00Z"),
            // half past two is left out in the night in which clocks go forward
            ("30 2 * * *", "2026-03-28T12:00:00Z", "Europe/Berlin", "2026-03-30T00:30:00Z"),
            ("@every 1m30s", "2026-01-01T00:00:00Z", "UTC", "2026-01-01T00:01:30Z"),
        ];
        for (schedule, after, zone, expected) in cases {
            assert_eq!(next(schedule, after, zone), expected, "{schedule} after {after}");
        }
        for bad in ["", "* * * *", "60 * * * *", "* * * * 8", "a * * * *", "5-1 * * * *", "*/0 * * * *"] {
            assert!(Schedule::parse(bad).is_err(), "{bad}");
        }
    }
}
