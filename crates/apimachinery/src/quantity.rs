//! `Quantity`: fixed-point numbers with suffixes (`100m`, `1.5Gi`, `2e3`), in canonical form.
//!
//! Follows: apimachinery/pkg/api/resource (v0.35): three formats, at most nano precision (finer values round up), values
//! beyond 2^63-1 are capped.

use crate::Str;
use std::cmp::Ordering;

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`.
    BinarySi,
    /// `12M`.
    DecimalSi,
}

/// Why a text is no quantity, in upstream's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number part is none.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// There is no such suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An amount: `nanos` billionths, with the format it was written in.
///
/// `i128` billionths hold every value that upstream keeps exactly (up to 2^63 with nine decimals).
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

const NANO: i128 = 1_000_000_000;
/// Upstream caps at 2^63-1 when it writes.
const NANOS_MAX: i128 = (i64::MAX as i128) * NANO;

impl Quantity {
    /// Zero.
    pub const ZERO: Quantity = Quantity { nanos: 0, format: Format::DecimalSi };

    /// `value` whole units.
    pub const fn from_i64(value: i64, format: Format) -> Quantity {
        Quantity { nanos: (value as i128) * NANO, format }
    }

    /// `value` thousandths.
    pub const fn from_millis(value: i64, format: Format) -> Quantity {
        Quantity { nanos: (value as i128) * 1_000_000, format }
    }

    /// Reads a quantity.
    ///
    /// # Errors
    /// [`QuantityError`] when `text` is none.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (is_negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let int_len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (int_digits, rest) = rest.split_at(int_len);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", rest),
        };
        if !is_suffix_shaped(suffix) {
            return Err(QuantityError::Format);
        }
        if int_digits.is_empty() && fraction.is_empty() {
            return Err(if suffix.is_empty() { QuantityError::Format } else { QuantityError::Numeric });
        }
        let (base, exponent, format) = interpret_suffix(suffix)?;
        let magnitude = magnitude(int_digits, fraction, base, exponent);
        Ok(Quantity { nanos: if is_negative { -magnitude } else { magnitude }, format })
    }

    /// The format it was written in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The same amount in another format.
    #[must_use]
    pub fn with_format(self, format: Format) -> Quantity {
        Quantity { format, ..self }
    }

    /// Whole units, rounded away from zero.
    pub fn value(&self) -> i64 {
        clamp(div_away(self.nanos, NANO))
    }

    /// Thousandths, rounded away from zero.
    pub fn milli_value(&self) -> i64 {
        clamp(div_away(self.nanos, 1_000_000))
    }

    /// The amount as a float.
    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
    pub fn as_f64(&self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// Whole units, if it is a whole number that fits.
    pub fn as_i64(&self) -> Option<i64> {
        if self.nanos % NANO == 0 { i64::try_from(self.nanos / NANO).ok() } else { None }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i32 {
        match self.nanos.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// The sum, in the format of `self` (of `other` when `self` is zero).
    #[must_use]
    pub fn plus(self, other: Quantity) -> Quantity {
        let format = if self.is_zero() { other.format } else { self.format };
        Quantity { nanos: self.nanos.saturating_add(other.nanos), format }
    }

    /// The difference, in the format of `self` (of `other` when `self` is zero).
    #[must_use]
    pub fn minus(self, other: Quantity) -> Quantity {
        let format = if self.is_zero() { other.format } else { self.format };
        Quantity { nanos: self.nanos.saturating_sub(other.nanos), format }
    }

    /// The product with a whole number.
    #[must_use]
    pub fn times(self, factor: i64) -> Quantity {
        Quantity { nanos: self.nanos.saturating_mul(i128::from(factor)), ..self }
    }

    /// The canonical text: the largest suffix with which no fraction is needed.
    pub fn canonical(&self) -> Str {
        let nanos = self.nanos.clamp(-NANOS_MAX, NANOS_MAX);
        if nanos == 0 {
            return Str::const_new("0");
        }
        let format = match self.format {
            // upstream falls back to decimal between -1024 and 1024 and for fractions
            Format::BinarySi if nanos.abs() < 1024 * NANO || nanos % NANO != 0 => Format::DecimalSi,
            other => other,
        };
        match format {
            Format::BinarySi => {
                let mut value = nanos / NANO;
                let mut power = 0;
                while value % 1024 == 0 && power < 6 {
                    value /= 1024;
                    power += 1;
                }
                compact_str::format_compact!("{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
            }
            Format::DecimalSi | Format::DecimalExponent => {
                let (mut value, mut exponent) = (nanos, -9);
                while value % 1000 == 0 && exponent < 18 {
                    value /= 1000;
                    exponent += 3;
                }
                let suffix = match format {
                    Format::DecimalExponent if exponent == 0 => String::new(),
                    Format::DecimalExponent => format!("e{exponent}"),
                    Format::DecimalSi | Format::BinarySi => {
                        let names = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                        names[usize::try_from(exponent / 3 + 3).unwrap_or_default()].to_owned()
                    }
                };
                compact_str::format_compact!("{value}{suffix}")
            }
        }
    }
}

impl PartialEq for Quantity {
    /// Equal amounts are equal, whatever their formats.
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.canonical())
    }
}

fn is_suffix_shaped(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    rest.bytes().all(|b| b.is_ascii_digit())
}

fn interpret_suffix(suffix: &str) -> Result<(u32, i32, Format), QuantityError> {
    let found = match suffix {
        "" => (10, 0, Format::DecimalSi),
        "n" => (10, -9, Format::DecimalSi),
        "u" => (10, -6, Format::DecimalSi),
        "m" => (10, -3, Format::DecimalSi),
        "k" => (10, 3, Format::DecimalSi),
        "M" => (10, 6, Format::DecimalSi),
        "G" => (10, 9, Format::DecimalSi),
        "T" => (10, 12, Format::DecimalSi),
        "P" => (10, 15, Format::DecimalSi),
        "E" => (10, 18, Format::DecimalSi),
        "Ki" => (2, 10, Format::BinarySi),
        "Mi" => (2, 20, Format::BinarySi),
        "Gi" => (2, 30, Format::BinarySi),
        "Ti" => (2, 40, Format::BinarySi),
        "Pi" => (2, 50, Format::BinarySi),
        "Ei" => (2, 60, Format::BinarySi),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).filter(|d| !d.is_empty()).ok_or(QuantityError::Suffix)?;
            let exponent: i64 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
            (10, i32::try_from(exponent.clamp(-100, 100)).unwrap_or_default(), Format::DecimalExponent)
        }
    };
    Ok(found)
}

/// `int.fraction * base^exponent` in billionths, rounded up, capped.
fn magnitude(int_digits: &str, fraction: &str, base: u32, exponent: i32) -> i128 {
    // 60 digits are more than the cap needs; what is cut off matters only for rounding up.
    let digits: String = int_digits.chars().chain(fraction.chars()).collect();
    let mut scale = -i32::try_from(fraction.len()).unwrap_or(i32::MAX) + 9;
    let trimmed = digits.trim_start_matches('0');
    let mut number: i128 = 0;
    let mut is_inexact = false;
    for (idx, digit) in trimmed.bytes().enumerate() {
        if idx < 30 {
            number = number * 10 + i128::from(digit - b'0');
        } else {
            scale += 1;
            is_inexact |= digit != b'0';
        }
    }
    if number == 0 {
        return 0;
    }
    let cap = NANOS_MAX;
    if base == 2 {
        let Some(shifted) = number.checked_mul(1i128 << exponent) else {
            return cap_scaled(number, exponent, scale, cap);
        };
        return scale_decimal(shifted, scale, is_inexact, cap);
    }
    scale_decimal(number, scale + exponent, is_inexact, cap)
}

/// The value of a number too large to shift exactly: scaled down first, at the price of digits beyond all precision.
fn cap_scaled(number: i128, shift: i32, scale: i32, cap: i128) -> i128 {
    let reduced = scale_decimal(number, scale, false, i128::MAX);
    reduced.checked_mul(1i128 << shift).map_or(cap, |n| n.min(cap))
}

fn scale_decimal(mut number: i128, mut scale: i32, mut is_inexact: bool, cap: i128) -> i128 {
    while scale > 0 {
        number = match number.checked_mul(10) {
            Some(n) => n,
            None => return cap,
        };
        scale -= 1;
    }
    while scale < 0 && number > 0 {
        is_inexact |= number % 10 != 0;
        number /= 10;
        scale += 1;
    }
    (number + i128::from(is_inexact)).min(cap)
}

fn div_away(n: i128, d: i128) -> i128 {
    let q = n / d;
    match n % d {
        0 => q,
        r if r > 0 => q + 1,
        _ => q - 1,
    }
}

fn clamp(n: i128) -> i64 {
    i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, want) in [
            ("0", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1500", "1500"),
            ("1.5Gi", "1536Mi"),
            ("1Gi", "1Gi"),
            ("1024Mi", "1Gi"),
            ("1023", "1023"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1000e0", "1e3"),
            ("1E", "1E"),
            ("100Ei", "9223372036854775807"),
            ("1e100", "9223372036854775807e0"),
            ("12345678901234567890", "9223372036854775807"),
            ("0.0000000001", "1n"),
            ("-1.5", "-1500m"),
            ("+1", "1"),
            (".5", "500m"),
            ("5.", "5"),
            ("1M", "1M"),
            ("1000k", "1M"),
            ("2048", "2048"),
            ("0.1Mi", "104857600m"),
        ] {
            let got = Quantity::parse(text).unwrap().canonical();
            // upstream writes e0 as nothing
            assert_eq!(got, want.trim_end_matches("e0"), "{text}");
        }
    }

    #[test]
    fn faults() {
        for (text, want) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1Zi", QuantityError::Format),
            ("1ki", QuantityError::Suffix),
            ("1mm", QuantityError::Suffix),
            ("m", QuantityError::Numeric),
        ] {
            assert_eq!(Quantity::parse(text).unwrap_err(), want, "{text}");
        }
    }

    #[test]
    fn arithmetic() {
        let q = |s| Quantity::parse(s).unwrap();
        assert_eq!(q("1Gi").plus(q("512Mi")).canonical(), "1536Mi");
        assert_eq!(q("1").minus(q("250m")).canonical(), "750m");
        assert_eq!(q("1500m").value(), 2);
        assert_eq!(q("1500m").milli_value(), 1500);
        assert!(q("1Ki") > q("1k") && q("1000m") == q("1"));
    }
}
