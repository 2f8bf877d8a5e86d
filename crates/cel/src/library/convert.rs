//! Conversions between types, and values as texts show them.

use crate::eval::map::Map;
use crate::eval::value::{Library, List};
use crate::eval::{Eval, Failure, Native, Val};
use crate::golang::duration;
use crate::time::{Timestamp, parse_rfc3339};
use pintle_apimachinery::value::{go_float, go_g};

/// The conversion of a name.
pub fn native(name: &str) -> Option<Native> {
    Some(match name {
        "bool" => |args| convert(args, "bool", to_bool),
        "bytes" => |args| convert(args, "bytes", to_bytes),
        "double" => |args| convert(args, "double", to_double),
        "duration" => |args| convert(args, "google.protobuf.Duration", to_duration),
        "int" => |args| convert(args, "int", to_int),
        "string" => |args| convert(args, "string", to_string),
        "timestamp" => |args| convert(args, "google.protobuf.Timestamp", to_timestamp),
        "uint" => |args| convert(args, "uint", to_uint),
        "dyn" => |args| args.first().cloned().ok_or(Failure::NoOverload),
        "type" => |args| args.first().map(|of| Val::Type(of.type_name().into())).ok_or(Failure::NoOverload),
        _ => return None,
    })
}

/// Why a conversion fails.
enum Misfit {
    /// The type cannot be converted.
    Type,
    /// This value of the type cannot be.
    Value,
    /// For a reason of its own.
    Other(&'static str),
}

type Converted<'v> = Result<Val<'v>, Misfit>;

fn convert<'v>(args: &[Val<'v>], to: &str, how: fn(&Val<'v>) -> Converted<'v>) -> Eval<Val<'v>> {
    let [from] = args else { return Err(Failure::NoOverload) };
    how(from).map_err(|misfit| match misfit {
        Misfit::Type => Failure::NoOverload,
        Misfit::Value => Failure::text(format!("type conversion error from '{}' to '{to}'", from.type_name())),
        Misfit::Other(why) => Failure::text(why),
    })
}

fn to_bool<'v>(from: &Val<'v>) -> Converted<'v> {
    match from {
        Val::Bool(_) => Ok(from.clone()),
        Val::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(Misfit::Value),
        },
        _ => Err(Misfit::Type),
    }
}

fn to_bytes<'v>(from: &Val<'v>) -> Converted<'v> {
    match from {
        Val::Bytes(_) => Ok(from.clone()),
        Val::String(text) => Ok(Val::Bytes(text.as_str().as_bytes().into())),
        _ => Err(Misfit::Type),
    }
}

fn to_double<'v>(from: &Val<'v>) -> Converted<'v> {
    match from {
        Val::Double(_) => Ok(from.clone()),
        Val::Int(int) => Ok(Val::Double(*int as f64)),
        Val::Uint(uint) => Ok(Val::Double(*uint as f64)),
        Val::String(text) => go_double(text.as_str()).map(Val::Double).ok_or(Misfit::Value),
        _ => Err(Misfit::Type),
    }
}

/// Reads a number as Go does: underscores are not allowed, hexadecimal is, overflow is a fault.
fn go_double(text: &str) -> Option<f64> {
    let bare = text.trim_start_matches(['+', '-']);
    if text.len() - bare.len() > 1 || bare.is_empty() {
        return None;
    }
    let is_word = bare.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_infinite = is_word && ["inf", "infinity"].iter().any(|word| bare.eq_ignore_ascii_case(word));
    let is_nan = text.eq_ignore_ascii_case("nan");
    if is_word && !is_infinite && !is_nan {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite() || is_word)
}

fn to_duration<'v>(from: &Val<'v>) -> Converted<'v> {
    match from {
        Val::Duration(_) => Ok(from.clone()),
        Val::String(text) => duration::parse(text.as_str()).map(Val::Duration).map_err(|_| Misfit::Value),
        Val::Int(_) => Err(Misfit::Value),
        _ => Err(Misfit::Type),
    }
}

fn to_int<'v>(from: &Val<'v>) -> Converted<'v> {
    const OVERFLOW: Misfit = Misfit::Other("integer overflow");
    match from {
        Val::Int(_) => Ok(from.clone()),
        Val::Uint(uint) => i64::try_from(*uint).map(Val::Int).map_err(|_| OVERFLOW),
        Val::Double(double) if double.abs() < 9_223_372_036_854_775_807.0 => Ok(Val::Int(*double as i64)),
        Val::Double(_) => Err(OVERFLOW),
        Val::Duration(nanos) => Ok(Val::Int(*nanos)),
        Val::Timestamp(at) => Ok(Val::Int(at.seconds())),
        Val::String(text) => text.as_str().parse().map(Val::Int).map_err(|_| Misfit::Value),
        _ => Err(Misfit::Type),
    }
}

fn to_uint<'v>(from: &Val<'v>) -> Converted<'v> {
    const OVERFLOW: Misfit = Misfit::Other("unsigned integer overflow");
    match from {
        Val::Uint(_) => Ok(from.clone()),
        Val::Int(int) => u64::try_from(*int).map(Val::Uint).map_err(|_| OVERFLOW),
        Val::Double(double) if *double >= 0.0 && *double < 18_446_744_073_709_551_615.0 => {
            Ok(Val::Uint(*double as u64))
        }
        Val::Double(_) => Err(OVERFLOW),
        Val::String(text) if !text.as_str().starts_with('+') => {
            text.as_str().parse().map(Val::Uint).map_err(|_| Misfit::Value)
        }
        Val::String(_) => Err(Misfit::Value),
        _ => Err(Misfit::Type),
    }
}

fn to_timestamp<'v>(from: &Val<'v>) -> Converted<'v> {
    const OVERFLOW: Misfit = Misfit::Other("timestamp overflow");
    match from {
        Val::Timestamp(_) => Ok(from.clone()),
        Val::Int(seconds) => Timestamp::of_seconds(*seconds).map(Val::Timestamp).ok_or(OVERFLOW),
        Val::String(text) => match parse_rfc3339(text.as_str()) {
            Some(at) if at.is_in_range() => Ok(Val::Timestamp(at)),
            Some(_) => Err(OVERFLOW),
            None => Err(Misfit::Value),
        },
        _ => Err(Misfit::Type),
    }
}

fn to_string<'v>(from: &Val<'v>) -> Converted<'v> {
    match from {
        Val::String(_) => Ok(from.clone()),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Val::text(text)),
            Err(_) => Err(Misfit::Other("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Val::Library(library) => match library.as_ref() {
            Library::Ip(addr) => Ok(Val::text(addr.to_string())),
            Library::Cidr(prefix) => Ok(Val::text(prefix.to_string())),
            _ => Err(Misfit::Type),
        },
        _ => text_of(from).map(Val::text).ok_or(Misfit::Type),
    }
}

/// A simple value as text.
#[must_use]
pub fn text_of(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(bool) => bool.to_string(),
        Val::Int(int) => int.to_string(),
        Val::Uint(uint) => uint.to_string(),
        Val::Double(double) => special(*double).map_or_else(|| go_g(*double), str::to_owned),
        Val::Duration(nanos) => format!("{}s", go_fixed(*nanos as f64 / 1e9)),
        Val::Timestamp(at) => at.to_string(),
        _ => return None,
    })
}

/// How Go writes what is no number or not finite.
#[must_use]
pub fn special(double: f64) -> Option<&'static str> {
    if double.is_nan() {
        return Some("NaN");
    }
    double.is_infinite().then_some(if double > 0.0 { "+Inf" } else { "-Inf" })
}

/// A number without exponent, with as many digits as it needs.
fn go_fixed(double: f64) -> String {
    let text = format!("{double}");
    if text.contains('e') { go_float(double) } else { text }
}

/// A value as it is shown within texts of failures.
#[must_use]
pub fn shown(value: &Val<'_>) -> String {
    match value {
        Val::String(text) => text.as_str().to_owned(),
        Val::Null => "0".to_owned(),
        Val::Type(name) => name.to_string(),
        Val::Optional(Some(held)) => format!("optional({})", shown(held)),
        Val::Optional(None) => "optional.none()".to_owned(),
        Val::List(list) => {
            let items: Vec<String> =
                list.iter().map(|item| item.map_or_else(|why| why.to_string(), |i| shown(&i))).collect();
            format!("[{}]", items.join(", "))
        }
        Val::Duration(nanos) => duration::format(*nanos),
        _ => text_of(value).unwrap_or_else(|| value.type_name().to_owned()),
    }
}

/// How Go calls a value's type.
#[must_use]
pub fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::String(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::Type(_) => "*types.Type",
        Val::Optional(_) => "*types.Optional",
        Val::List(List::Json(_, Some(_))) => "*common.unstructuredList",
        Val::List(_) => "*types.baseList",
        Val::Map(Map::Json(_, Some(_))) => "*common.unstructuredMap",
        Val::Map(_) => "*types.baseMap",
        Val::Preserved(_) => "*common.unknownPreserved",
        Val::Library(_) => "cel.Val",
    }
}

/// The index that a value is; none for a negative one.
///
/// # Errors
/// When it is no index.
pub fn index(key: &Val<'_>) -> Eval<Option<usize>> {
    let value = || Failure::text(format!("unsupported index value {} in list", shown(key)));
    let index = match key {
        Val::Int(index) => *index,
        Val::Uint(index) => i64::try_from(*index).map_err(|_| value())?,
        Val::Double(index) if index.fract() == 0.0 && index.abs() < 9.2e18 => *index as i64,
        Val::Double(_) => return Err(value()),
        _ => return Err(Failure::text(format!("unsupported index type '{}' in list", key.type_name()))),
    };
    Ok(usize::try_from(index).ok())
}
