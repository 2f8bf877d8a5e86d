//! The parts of moments and durations.

use crate::eval::{Eval, Failure, Native, Val};
use crate::time;
use jiff::civil::DateTime;

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "getFullYear" => |args| part(args, |at| i64::from(at.year()), None),
        "getMonth" => |args| part(args, |at| i64::from(at.month()) - 1, None),
        "getDayOfYear" => |args| part(args, |at| i64::from(at.day_of_year()) - 1, None),
        "getDayOfMonth" => |args| part(args, |at| i64::from(at.day()) - 1, None),
        "getDate" => |args| part(args, |at| i64::from(at.day()), None),
        "getDayOfWeek" => |args| part(args, |at| i64::from(at.weekday().to_sunday_zero_offset()), None),
        "getHours" => |args| part(args, |at| i64::from(at.hour()), Some(3_600_000_000_000)),
        "getMinutes" => |args| part(args, |at| i64::from(at.minute()), Some(60_000_000_000)),
        "getSeconds" => |args| part(args, |at| i64::from(at.second()), Some(1_000_000_000)),
        "getMilliseconds" => |args| part(args, |at| i64::from(at.millisecond()), Some(1_000_000)),
        _ => return None,
    })
}

/// A part of a moment in UTC or another zone, or how often a unit fits into a duration.
fn part<'v>(args: &[Val<'v>], of: fn(DateTime) -> i64, unit: Option<i64>) -> Eval<Val<'v>> {
    match (args, unit) {
        ([Val::Timestamp(at)], _) => Ok(Val::Int(of(at.utc()))),
        ([Val::Timestamp(at), Val::String(zone)], _) => {
            let zone = time::zone(zone.as_str()).map_err(Failure::text)?;
            Ok(Val::Int(of(at.clock(&zone))))
        }
        ([Val::Duration(nanos)], Some(unit)) => Ok(Val::Int(nanos / unit)),
        _ => Err(Failure::NoOverload),
    }
}
