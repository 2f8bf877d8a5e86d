//! Operators and sizes.

use crate::decl::{Decl, Keyed, Shape};
use crate::eval::compare::{compare, equal, same_keys};
use crate::eval::map::Map;
use crate::eval::value::List;
use crate::eval::{Eval, Failure, Native, Val};
use std::cmp::Ordering;
use std::rc::Rc;

/// The operator or function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "!_" => |args| match args {
            [Val::Bool(value)] => Ok(Val::Bool(!*value)),
            _ => Err(Failure::NoOverload),
        },
        "-_" => negate,
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "_<_" => |args| ordered(args, Ordering::is_lt),
        "_<=_" => |args| ordered(args, Ordering::is_le),
        "_>_" => |args| ordered(args, Ordering::is_gt),
        "_>=_" => |args| ordered(args, Ordering::is_ge),
        "@in" => contains,
        "@not_strictly_false" => |args| Ok(Val::Bool(!matches!(args, [Val::Bool(false)]))),
        "size" => |args| match args {
            [of @ (Val::String(_) | Val::Bytes(_) | Val::List(_) | Val::Map(_))] => {
                Ok(Val::Int(i64::try_from(of.size()).unwrap_or(i64::MAX)))
            }
            _ => Err(Failure::NoOverload),
        },
        "cel.@mapInsert" => insert,
        _ => return None,
    })
}

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
const DURATION_OVERFLOW: &str = "duration overflow";
const TIMESTAMP_OVERFLOW: &str = "timestamp overflow";

fn int<'v>(result: Option<i64>) -> Eval<Val<'v>> {
    result.map(Val::Int).ok_or_else(|| Failure::text(INT_OVERFLOW))
}

fn uint<'v>(result: Option<u64>) -> Eval<Val<'v>> {
    result.map(Val::Uint).ok_or_else(|| Failure::text(UINT_OVERFLOW))
}

fn duration<'v>(result: Option<i64>) -> Eval<Val<'v>> {
    result.map(Val::Duration).ok_or_else(|| Failure::text(DURATION_OVERFLOW))
}

fn negate<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    match args {
        [Val::Int(value)] => int(value.checked_neg()),
        [Val::Double(value)] => Ok(Val::Double(-*value)),
        [Val::Duration(value)] => duration(value.checked_neg()),
        _ => Err(Failure::NoOverload),
    }
}

fn add<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let moved = |at: &crate::time::Timestamp, by: i64| {
        at.plus(i128::from(by)).map(Val::Timestamp).ok_or_else(|| Failure::text(TIMESTAMP_OVERFLOW))
    };
    match args {
        [Val::Int(a), Val::Int(b)] => int(a.checked_add(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_add(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(*a + *b)),
        [Val::String(a), Val::String(b)] => Ok(Val::text([a.as_str(), b.as_str()].concat())),
        [Val::Bytes(a), Val::Bytes(b)] => Ok(Val::Bytes([a.as_ref(), b.as_ref()].concat().into())),
        [Val::Duration(a), Val::Duration(b)] => duration(a.checked_add(*b)),
        [Val::Timestamp(at), Val::Duration(by)] | [Val::Duration(by), Val::Timestamp(at)] => moved(at, *by),
        [a @ Val::List(_), Val::List(b)] => joined(a, b),
        _ => Err(Failure::NoOverload),
    }
}

/// Two lists as one. A list of the input keeps what its elements are told apart by.
fn joined<'v>(one: &mut Val<'v>, other: &List<'v>) -> Eval<Val<'v>> {
    let Val::List(one) = std::mem::replace(one, Val::Null) else { return Err(Failure::NoOverload) };
    let decl = one.decl();
    let mut values = match one {
        List::Made(values, _) => values,
        list => Rc::new(list.to_vec()?),
    };
    let into = Rc::make_mut(&mut values);
    let keyed = decl.and_then(|decl| match decl {
        Decl { shape: Shape::List(_, keyed), .. } => Some(keyed),
        _ => None,
    });
    for value in other.iter() {
        let value = value?;
        let place = match keyed {
            Some(Keyed::Set) => position(into, |known| equal(known, &value))?,
            Some(Keyed::Map(keys)) => position(into, |known| same_keys(known, &value, keys))?,
            Some(Keyed::Atomic) | None => None,
        };
        match place.and_then(|place| into.get_mut(place)) {
            Some(known) => *known = value,
            None => into.push(value),
        }
    }
    Ok(Val::List(List::Made(values, decl)))
}

fn position<'v>(values: &[Val<'v>], is_it: impl Fn(&Val<'v>) -> Eval<bool>) -> Eval<Option<usize>> {
    for (index, value) in values.iter().enumerate() {
        if is_it(value)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn subtract<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    match args {
        [Val::Int(a), Val::Int(b)] => int(a.checked_sub(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_sub(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(*a - *b)),
        [Val::Duration(a), Val::Duration(b)] => duration(a.checked_sub(*b)),
        [Val::Timestamp(a), Val::Timestamp(b)] => duration(a.since(b)),
        [Val::Timestamp(at), Val::Duration(by)] => {
            at.plus(-i128::from(*by)).map(Val::Timestamp).ok_or_else(|| Failure::text(TIMESTAMP_OVERFLOW))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn multiply<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    match args {
        [Val::Int(a), Val::Int(b)] => int(a.checked_mul(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_mul(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(*a * *b)),
        _ => Err(Failure::NoOverload),
    }
}

fn divide<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(Failure::text("division by zero")),
        [Val::Int(a), Val::Int(b)] => int(a.checked_div(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_div(*b)),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(*a / *b)),
        _ => Err(Failure::NoOverload),
    }
}

fn modulo<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(Failure::text("modulus by zero")),
        [Val::Int(a), Val::Int(b)] => int(a.checked_rem(*b)),
        [Val::Uint(a), Val::Uint(b)] => uint(a.checked_rem(*b)),
        _ => Err(Failure::NoOverload),
    }
}

fn ordered<'v>(args: &[Val<'v>], is_it: fn(Ordering) -> bool) -> Eval<Val<'v>> {
    let [one, other] = args else { return Err(Failure::NoOverload) };
    compare(one, other).map(|order| Val::Bool(is_it(order)))
}

fn contains<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    match args {
        [wanted, Val::List(list)] => {
            let mut failure = None;
            for value in list.iter() {
                match value.and_then(|value| equal(&value, wanted)) {
                    Ok(true) => return Ok(Val::Bool(true)),
                    Ok(false) => {}
                    Err(Failure::NoOverload) => failure = failure.or_else(|| Some(Failure::text("no such overload"))),
                    Err(why) => failure = failure.or(Some(why)),
                }
            }
            failure.map_or(Ok(Val::Bool(false)), Err)
        }
        [wanted, Val::Map(map)] => Ok(Val::Bool(map.find(wanted)?.is_some())),
        _ => Err(Failure::NoOverload),
    }
}

fn insert<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    if !matches!(args, [Val::Map(_), _, _] | [Val::Map(_), Val::Map(_)]) {
        return Err(Failure::NoOverload);
    }
    let mut taken = args.iter_mut().map(|arg| std::mem::replace(arg, Val::Null));
    let Some(Val::Map(map)) = taken.next() else { return Err(Failure::NoOverload) };
    match (taken.next(), taken.next()) {
        (Some(key), Some(value)) => map.inserted(key, value).map(Val::Map),
        (Some(Val::Map(more)), None) => {
            let mut map: Map<'v> = map;
            for key in more.keys() {
                let value = more.find(&key)?.unwrap_or(Val::Null);
                map = map.inserted(key, value)?;
            }
            Ok(Val::Map(map))
        }
        _ => Err(Failure::NoOverload),
    }
}
