//! Texts with clauses such as `%d` in them, filled in from a list.

use super::convert::{special, text_of};
use crate::eval::map::Map;
use crate::eval::value::List;
use crate::eval::{Eval, Failure, Val};
use crate::golang::quote::quoted_bytes;
use pintle_apimachinery::field::go_quote;
use std::fmt::Write;

/// The most digits after the point that a clause yields; it may ask for more.
const PRECISION_MAX: usize = 1000;

/// The digits after the point where a clause does not say.
const PRECISION: usize = 6;

/// A clause of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its letter stands for")]
pub enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex(bool),
    Octal,
}

impl Clause {
    /// What is said of a value that the clause does not take.
    #[must_use]
    pub fn fault(self, type_name: &str) -> String {
        let what = match self {
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex(_) => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{what}, was given {type_name}")
    }
}

/// Goes through a format of `size` values, and puts in for each clause what `fill` says. With `is_size_first` a missing
/// value is told of before a missing letter.
///
/// # Errors
/// What is wrong with the format, or what `fill` says.
pub fn filled(
    format: &str,
    size: usize,
    is_size_first: bool,
    mut fill: impl FnMut(usize, Clause) -> Result<String, String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    let mut index = 0;
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let after = after.get(1..).unwrap_or_default();
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let out_of_range = || format!("index {index} out of range");
        if is_size_first && index >= size {
            return Err(out_of_range());
        }
        if after.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        if index >= size {
            return Err(out_of_range());
        }
        let (clause, after) = clause(after).map_err(|why| format!("could not parse formatting clause: {why}"))?;
        out.push_str(&fill(index, clause).map_err(|why| format!("error during formatting: {why}"))?);
        index += 1;
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// How many values a format asks for, given that it is well formed.
#[must_use]
pub fn count(format: &str) -> usize {
    format.replace("%%", "").matches('%').count()
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    let mut precision = PRECISION;
    let mut rest = text;
    if let Some(after) = text.strip_prefix('.') {
        let width = after.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = after.split_at(width);
        if after.is_empty() {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        }
        let digits: u64 = digits.parse().map_err(|_| {
            let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 {}: {why}",
                go_quote(digits)
            )
        })?;
        precision = usize::try_from(digits).unwrap_or(usize::MAX).min(PRECISION_MAX);
        rest = after;
    }
    let letter = rest.chars().next().unwrap_or_default();
    let clause = match letter {
        's' => Clause::String,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' => Clause::Hex(false),
        'X' => Clause::Hex(true),
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, rest.get(1..).unwrap_or_default()))
}

/// A format filled in with values.
///
/// # Errors
/// What is wrong with the format or the values.
pub fn formatted(format: &str, values: &List<'_>) -> Eval<String> {
    filled(format, values.len(), true, |index, clause| {
        let value = values.get(index).map_err(|why| why.to_string())?.unwrap_or(Val::Null);
        shown(clause, &value)
    })
    .map_err(Failure::text)
}

fn shown(clause: Clause, value: &Val<'_>) -> Result<String, String> {
    let text = match (clause, value) {
        (Clause::String, _) => return string(value),
        (Clause::Decimal, Val::Int(int)) => Some(int.to_string()),
        (Clause::Decimal, Val::Uint(uint)) => Some(uint.to_string()),
        (Clause::Fixed(precision), _) => double(value).map(|double| fixed(double, precision)),
        (Clause::Scientific(precision), _) => double(value).map(|double| scientific(double, precision)),
        (Clause::Binary, Val::Bool(bool)) => Some(u8::from(*bool).to_string()),
        (Clause::Binary, _) => magnitude(value).map(|(sign, size)| format!("{sign}{size:b}")),
        (Clause::Octal, _) => magnitude(value).map(|(sign, size)| format!("{sign}{size:o}")),
        (Clause::Hex(is_upper), Val::String(text)) => Some(hex(text.as_str().as_bytes(), is_upper)),
        (Clause::Hex(is_upper), Val::Bytes(bytes)) => Some(hex(bytes, is_upper)),
        (Clause::Hex(false), _) => magnitude(value).map(|(sign, size)| format!("{sign}{size:x}")),
        (Clause::Hex(true), _) => magnitude(value).map(|(sign, size)| format!("{sign}{size:X}")),
        (Clause::Decimal, _) => None,
    };
    text.ok_or_else(|| clause.fault(value.type_name()))
}

fn magnitude(value: &Val<'_>) -> Option<(&'static str, u64)> {
    match value {
        Val::Int(int) => Some((if *int < 0 { "-" } else { "" }, int.unsigned_abs())),
        Val::Uint(uint) => Some(("", *uint)),
        _ => None,
    }
}

fn hex(bytes: &[u8], is_upper: bool) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = if is_upper { write!(out, "{byte:02X}") } else { write!(out, "{byte:02x}") };
        out
    })
}

fn double(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(double) => Some(*double),
        Val::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// How numbers that are none, or not finite, are shown to people.
fn odd(double: f64) -> Option<&'static str> {
    if double.is_nan() {
        return Some("NaN");
    }
    double.is_infinite().then_some(if double > 0.0 { "∞" } else { "-∞" })
}

/// A number as people of the United States write it: thousands apart.
fn fixed(double: f64, precision: usize) -> String {
    if let Some(text) = odd(double) {
        return text.to_owned();
    }
    let text = format!("{double:.precision$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(fraction);
    out
}

fn scientific(double: f64, precision: usize) -> String {
    if let Some(text) = odd(double) {
        return text.to_owned();
    }
    let text = format!("{double:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("\u{207b}", digits));
    let raised: String = format!("{digits:0>2}").chars().map(raise).collect();
    format!("{mantissa}×10{sign}{raised}")
}

const fn raise(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

fn string(value: &Val<'_>) -> Result<String, String> {
    Ok(match value {
        Val::List(values) => list(values)?,
        Val::Map(entries) => map(entries)?,
        Val::Null => "null".to_owned(),
        Val::String(text) => text.as_str().to_owned(),
        Val::Type(name) => name.to_string(),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let why = "invalid UTF-8 in bytes, cannot convert to string";
                return Err(format!("could not convert argument {} to string", go_quote(why)));
            }
        },
        _ => text_of(value).ok_or_else(|| Clause::String.fault(value.type_name()))?,
    })
}

/// A value within a list or map, as an expression would write it.
fn nested(value: &Val<'_>) -> Result<String, String> {
    Ok(match value {
        Val::String(text) => go_quote(text.as_str()),
        Val::Bytes(bytes) => format!("b{}", quoted_bytes(bytes)),
        Val::Double(double) => match special(*double) {
            Some(text) => go_quote(text),
            None => format!("{double:.PRECISION$}"),
        },
        Val::Timestamp(_) => format!("timestamp({})", go_quote(&text_of(value).unwrap_or_default())),
        Val::Duration(_) => format!("duration({})", go_quote(&text_of(value).unwrap_or_default())),
        Val::Optional(_) | Val::Preserved(_) | Val::Library(_) => {
            return Err(format!("no formatting function for {}", value.type_name()));
        }
        _ => string(value)?,
    })
}

fn list(values: &List<'_>) -> Result<String, String> {
    let mut parts = Vec::with_capacity(values.len());
    for value in values.iter() {
        parts.push(nested(&value.map_err(|why| why.to_string())?)?);
    }
    Ok(format!("[{}]", parts.join(", ")))
}

fn map(entries: &Map<'_>) -> Result<String, String> {
    let mut parts = Vec::with_capacity(entries.len());
    for key in entries.keys() {
        if !matches!(key, Val::String(_) | Val::Bool(_) | Val::Int(_) | Val::Uint(_)) {
            return Err(format!("no formatting function for map key of type {}", key.type_name()));
        }
        let value = entries.find(&key).map_err(|why| why.to_string())?.unwrap_or(Val::Null);
        parts.push((nested(&key)?, nested(&value)?));
    }
    parts.sort();
    let parts: Vec<String> = parts.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", parts.join(", ")))
}
