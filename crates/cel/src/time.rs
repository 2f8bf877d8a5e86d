//! Moments, as the language reads, writes and takes them apart.

use jiff::civil;
use jiff::tz::{Offset, TimeZone};
use pintle_apimachinery::field::go_quote;
use std::fmt::{self, Display, Formatter};

/// The first second a moment can have.
const FIRST_SECOND: i64 = -62_135_596_800;
/// The last second a moment can have.
const LAST_SECOND: i64 = 253_402_300_799;
const NANOS: i128 = 1_000_000_000;

/// A moment, and how far from UTC the clock was that it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    /// In seconds east.
    offset: i32,
}

impl Timestamp {
    /// A moment by the seconds since 1970; none outside the years 1 to 9999.
    #[must_use]
    pub fn of_seconds(seconds: i64) -> Option<Self> {
        Self { seconds, nanos: 0, offset: 0 }.in_range()
    }

    fn in_range(self) -> Option<Self> {
        (FIRST_SECOND..=LAST_SECOND).contains(&self.seconds).then_some(self)
    }

    /// Whether the moment is one the language knows.
    #[must_use]
    pub fn is_in_range(&self) -> bool {
        self.in_range().is_some()
    }

    /// The seconds since 1970.
    #[must_use]
    pub const fn seconds(&self) -> i64 {
        self.seconds
    }

    /// What moments are compared by.
    #[must_use]
    pub const fn instant(&self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }

    fn total(&self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// The moment so many nanoseconds later; none outside the years 1 to 9999.
    #[must_use]
    pub fn plus(&self, nanos: i128) -> Option<Self> {
        let total = self.total() + nanos;
        let seconds = i64::try_from(total.div_euclid(NANOS)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(NANOS)).ok()?;
        Self { seconds, nanos, offset: self.offset }.in_range()
    }

    /// The nanoseconds since another moment; none if they do not fit.
    #[must_use]
    pub fn since(&self, other: &Self) -> Option<i64> {
        i64::try_from(self.total() - other.total()).ok()
    }

    /// What a clock in a zone shows.
    #[must_use]
    pub fn clock(&self, zone: &TimeZone) -> civil::DateTime {
        let at = jiff::Timestamp::new(self.seconds, self.nanos.cast_signed()).unwrap_or_default();
        zone.to_datetime(at)
    }

    /// What a clock in UTC shows.
    #[must_use]
    pub fn utc(&self) -> civil::DateTime {
        self.clock(&TimeZone::UTC)
    }
}

/// RFC 3339, with as much of the fraction as matters.
impl Display for Timestamp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let zone = Offset::from_seconds(self.offset).map_or(TimeZone::UTC, TimeZone::fixed);
        let at = self.clock(&zone);
        write!(f, "{:04}-{:02}-{:02}T", at.year(), at.month(), at.day())?;
        write!(f, "{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.unsigned_abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// Reads RFC 3339.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let (at, rest) = parse_clock(text)?;
    let offset = match rest.as_bytes() {
        b"Z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let hours = two(*h1, *h2).filter(|hours| *hours <= 24)?;
            let minutes = two(*m1, *m2).filter(|minutes| *minutes < 60)?;
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    Some(Timestamp { seconds: at.seconds - i64::from(offset), offset, ..at })
}

/// Reads RFC 3339, or the same without a zone.
#[must_use]
pub fn parse_date_time(text: &str) -> Option<Timestamp> {
    if text.is_empty() {
        return Timestamp::of_seconds(0);
    }
    parse_rfc3339(text).or_else(|| parse_clock(text).filter(|(_, rest)| rest.is_empty()).map(|(at, _)| at))
}

/// Reads a date.
#[must_use]
pub fn parse_date(text: &str) -> Option<Timestamp> {
    let (date, rest) = parse_day(text)?;
    rest.is_empty().then_some(Timestamp { seconds: date, nanos: 0, offset: 0 })
}

/// What Go says of a text that is no moment.
#[must_use]
pub fn go_fault(text: &str) -> String {
    format!("parsing time {}", go_quote(text))
}

const fn two(a: u8, b: u8) -> Option<i32> {
    if a.is_ascii_digit() && b.is_ascii_digit() { Some((a - b'0') as i32 * 10 + (b - b'0') as i32) } else { None }
}

fn parse_day(text: &str) -> Option<(i64, &str)> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, ..] = text.as_bytes() else { return None };
    let year = two(*y1, *y2)? * 100 + two(*y3, *y4)?;
    let month = i8::try_from(two(*m1, *m2)?).ok()?;
    let day = i8::try_from(two(*d1, *d2)?).ok()?;
    let date = civil::Date::new(i16::try_from(year).ok()?, month, day).ok()?;
    let seconds = date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    Some((seconds, text.get(10..)?))
}

/// Reads date and time of day, up to the zone.
fn parse_clock(text: &str) -> Option<(Timestamp, &str)> {
    let (day, rest) = parse_day(text)?;
    let [b'T', h1, h2, b':', m1, m2, b':', s1, s2, ..] = rest.as_bytes() else { return None };
    let hours = two(*h1, *h2).filter(|hours| *hours < 24)?;
    let minutes = two(*m1, *m2).filter(|minutes| *minutes < 60)?;
    let seconds = two(*s1, *s2).filter(|seconds| *seconds < 60)?;
    let mut rest = rest.get(9..)?;
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        let (digits, after) = fraction.split_at(digits);
        let nine: String = digits.chars().chain(std::iter::repeat('0')).take(9).collect();
        nanos = nine.parse().ok()?;
        rest = after;
    }
    let seconds = day + i64::from(hours * 3600 + minutes * 60 + seconds);
    Some((Timestamp { seconds, nanos, offset: 0 }, rest))
}

/// The zone of a name, or of an offset such as `-08:00`.
///
/// # Errors
/// Go's text when there is none.
pub fn zone(text: &str) -> Result<TimeZone, String> {
    let Some((hours, minutes)) = text.split_once(':') else {
        if matches!(text, "" | "UTC" | "Local") {
            return Ok(TimeZone::UTC);
        }
        return TimeZone::get(text).map_err(|_| format!("unknown time zone {text}"));
    };
    let number = |part: &str| {
        part.parse::<i32>().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go_quote(part)))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minutes = if text.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    let offset = Offset::from_seconds(minutes.saturating_mul(60)).unwrap_or(Offset::UTC);
    Ok(TimeZone::fixed(offset))
}
