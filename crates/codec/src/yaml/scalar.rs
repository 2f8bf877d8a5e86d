//! What a plain scalar is, by the rules of YAML 1.1 as Go's reader has them.

use pintle_apimachinery::Value;

/// A scalar's meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// A number beyond `i64`, not above `u64`.
    Unsigned(u64),
    /// Perhaps infinite or NaN, which JSON cannot hold.
    Float(f64),
    /// Looks like a date; stays the text it is, but is quoted when written.
    Timestamp,
    Text,
}

/// Words that are no text.
const WORDS: &[(&[&str], Scalar)] = &[
    (&["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], Scalar::Bool(true)),
    (&["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], Scalar::Bool(false)),
    (&["", "~", "null", "Null", "NULL"], Scalar::Null),
    (&[".nan", ".NaN", ".NAN"], Scalar::Float(f64::NAN)),
    (&[".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], Scalar::Float(f64::INFINITY)),
    (&["-.inf", "-.Inf", "-.INF"], Scalar::Float(f64::NEG_INFINITY)),
];

/// What a plain scalar means.
pub(super) fn resolve(text: &str) -> Scalar {
    // the longest word has five letters
    if text.len() <= 5
        && let Some((_, scalar)) = WORDS.iter().find(|(words, _)| words.contains(&text))
    {
        return scalar.clone();
    }
    match text.as_bytes().first() {
        Some(b'0'..=b'9' | b'+' | b'-') => resolve_number(text),
        Some(b'.') => float(text).map_or(Scalar::Text, Scalar::Float),
        _ => Scalar::Text,
    }
}

fn resolve_number(text: &str) -> Scalar {
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let without_underscores;
    let plain = if text.contains('_') {
        without_underscores = text.replace('_', "");
        &without_underscores
    } else {
        text
    };
    if let Some(scalar) = integer(plain) {
        return scalar;
    }
    float(plain).map_or(Scalar::Text, Scalar::Float)
}

/// An integer with Go's prefixes: `0x`, `0o` or `0`, `0b`.
fn integer(text: &str) -> Option<Scalar> {
    let (is_negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = |prefix: &str| unsigned.get(..2).is_some_and(|p| p.eq_ignore_ascii_case(prefix));
    let (radix, digits) = if lower("0x") {
        (16, &unsigned[2..])
    } else if lower("0b") {
        (2, &unsigned[2..])
    } else if lower("0o") {
        (8, &unsigned[2..])
    } else if unsigned.len() > 1 && unsigned.starts_with('0') {
        (8, &unsigned[1..])
    } else {
        (10, unsigned)
    };
    if digits.is_empty() || !digits.bytes().all(|b| char::from(b).is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    match (i64::try_from(magnitude), is_negative) {
        (Ok(n), false) => Some(Scalar::Int(n)),
        (Ok(n), true) => Some(Scalar::Int(-n)),
        (Err(_), true) if magnitude == i64::MIN.unsigned_abs() => Some(Scalar::Int(i64::MIN)),
        // Go's reader takes no sign on unsigned numbers
        (Err(_), false) if unsigned.len() == text.len() => Some(Scalar::Unsigned(magnitude)),
        (Err(_), _) => None,
    }
}

/// A decimal float: digits, perhaps a point, perhaps an exponent. What overflows is text.
fn float(text: &str) -> Option<f64> {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            is_digits(whole) && is_digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && is_digits(mantissa),
    };
    let is_exponent = exponent.is_none_or(|e| {
        let digits = e.strip_prefix(['-', '+']).unwrap_or(e);
        !digits.is_empty() && is_digits(digits)
    });
    if is_mantissa && is_exponent { text.parse().ok().filter(|f: &f64| f.is_finite()) } else { None }
}

/// Whether the text is a date or a moment: `2001-12-14`, `2001-12-14t21:59:43.10-05:00`, `2001-12-14 21:59:43.10`.
pub(super) fn is_timestamp(text: &str) -> bool {
    let mut rest = Digits(text);
    let Some(year) = rest.number(4, 4) else { return false };
    if !rest.skip("-") {
        return false;
    }
    let Some(month) = rest.number(1, 2).filter(|m| (1..=12).contains(m)) else { return false };
    if !rest.skip("-") {
        return false;
    }
    let days = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let Some(day) = rest.number(1, 2) else { return false };
    if !(1..=days[month as usize - 1]).contains(&day) {
        return false;
    }
    match rest.0.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => rest.time() && rest.zone(),
        Some(b' ') => rest.time() && rest.0.is_empty(),
        Some(_) => false,
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// What is left of a timestamp.
struct Digits<'t>(&'t str);

impl Digits<'_> {
    fn skip(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// A number of `min` to `max` digits.
    fn number(&mut self, min: usize, max: usize) -> Option<u32> {
        let len = self.0.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if len < min {
            return None;
        }
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        digits.parse().ok()
    }

    /// A separator and `21:59:43.1`.
    fn time(&mut self) -> bool {
        self.0 = &self.0[1..];
        let is_clock = self.number(1, 2).is_some_and(|h| h < 24)
            && self.skip(":")
            && self.number(1, 2).is_some_and(|m| m < 60)
            && self.skip(":")
            && self.number(1, 2).is_some_and(|s| s < 60);
        if is_clock && let Some(fraction) = self.0.strip_prefix(['.', ',']) {
            let len = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if len > 0 {
                self.0 = &fraction[len..];
            }
        }
        is_clock
    }

    /// `Z` or `+01:00`, and nothing behind it.
    fn zone(&mut self) -> bool {
        if self.skip("Z") {
            return self.0.is_empty();
        }
        (self.skip("+") || self.skip("-"))
            && self.number(2, 2).is_some_and(|h| h <= 24)
            && self.skip(":")
            && self.number(2, 2).is_some_and(|m| m < 60)
            && self.0.is_empty()
    }
}

/// The value of a scalar; `None` for what JSON has no number for.
pub(super) fn value(scalar: &Scalar, text: &str) -> Option<Value> {
    Some(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(b) => Value::Bool(*b),
        Scalar::Int(i) => Value::Int(*i),
        #[expect(clippy::cast_precision_loss, reason = "values hold no larger integers")]
        Scalar::Unsigned(u) => Value::Float(*u as f64),
        Scalar::Float(f) if f.is_finite() => super::decode::number(*f),
        Scalar::Float(_) => return None,
        Scalar::Timestamp | Scalar::Text => Value::from(text),
    })
}
