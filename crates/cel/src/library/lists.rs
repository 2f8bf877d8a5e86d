//! Lists.

use super::strings;
use crate::eval::compare::{compare, equal};
use crate::eval::value::List;
use crate::eval::{Eval, Failure, Native, Val};
use std::cmp::Ordering;

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "isSorted" => is_sorted,
        "sum" => |args| sum(args, Val::Int(0)),
        "min" => |args| best(args, "min", Ordering::is_gt),
        "max" => |args| best(args, "max", Ordering::is_lt),
        "indexOf" => index_of,
        "lastIndexOf" => last_index_of,
        "slice" => slice,
        "flatten" => flatten,
        "sort" => |args| match args {
            [Val::List(list)] => sorted(&list.to_vec()?, &list.to_vec()?),
            _ => Err(Failure::NoOverload),
        },
        "@sortByAssociatedKeys" => |args| match args {
            [Val::List(list), Val::List(keys)] => sorted(&list.to_vec()?, &keys.to_vec()?),
            _ => Err(Failure::NoOverload),
        },
        "lists.range" => |args| match args {
            [Val::Int(count)] => range(*count),
            _ => Err(Failure::NoOverload),
        },
        "reverse" => |args| list(args, |list| list.iter().rev().collect()),
        "distinct" => |args| list(args, distinct),
        "first" => |args| end(args, |_| 0),
        "last" => |args| end(args, |length| length.saturating_sub(1)),
        "optional.of" => |args| args.first().cloned().map(Val::some).ok_or(Failure::NoOverload),
        "optional.none" => |_| Ok(Val::NONE),
        "optional.ofNonZeroValue" => |args| {
            let value = args.first().ok_or(Failure::NoOverload)?;
            Ok(if is_zero(value) { Val::NONE } else { Val::some(value.clone()) })
        },
        "optional.unwrap" | "unwrapOpt" => |args| list(args, unwrap),
        "hasValue" => |args| match args {
            [Val::Optional(held)] => Ok(Val::Bool(held.is_some())),
            _ => Err(Failure::NoOverload),
        },
        "value" => |args| match args {
            [Val::Optional(Some(held))] => Ok(held.as_ref().clone()),
            [Val::Optional(None)] => Err(Failure::text("optional.none() dereference")),
            _ => Err(Failure::NoOverload),
        },
        _ => return None,
    })
}

/// What an overload does, where that depends on the type of elements that are not there.
pub(super) fn of_overload(overload: &str) -> Option<Native> {
    Some(match overload {
        "list_uint_sum_uint" => |args| sum(args, Val::Uint(0)),
        "list_double_sum_double" => |args| sum(args, Val::Double(0.0)),
        "list_duration_sum_duration" => |args| sum(args, Val::Duration(0)),
        _ => return None,
    })
}

/// The most elements that a range may have.
const RANGE_MAX: i64 = 10_000_000;

fn range<'v>(count: i64) -> Eval<Val<'v>> {
    if count > RANGE_MAX {
        return Err(Failure::CostExceeded);
    }
    Ok(Val::list((0..count).map(Val::Int).collect()))
}

fn list<'v>(args: &[Val<'v>], how: impl Fn(&List<'v>) -> Eval<Vec<Val<'v>>>) -> Eval<Val<'v>> {
    match args {
        [Val::List(list)] => how(list).map(Val::list),
        _ => Err(Failure::NoOverload),
    }
}

fn is_sorted<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let [Val::List(list)] = args else { return Err(Failure::NoOverload) };
    let values = list.to_vec()?;
    if let [one] = values.as_slice() {
        compare(one, one)?;
    }
    for pair in values.windows(2) {
        if let [one, other] = pair
            && compare(one, other)?.is_gt()
        {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn sum<'v>(args: &[Val<'v>], zero: Val<'v>) -> Eval<Val<'v>> {
    let [Val::List(list)] = args else { return Err(Failure::NoOverload) };
    let mut total: Option<Val<'v>> = None;
    for value in list.iter() {
        let value = value?;
        if !matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_)) {
            return Err(Failure::NoOverload);
        }
        total = Some(match total {
            Some(total) => {
                let add = super::standard::native("_+_").ok_or(Failure::NoOverload)?;
                add(&mut [total, value]).map_err(|why| match why {
                    Failure::NoOverload => Failure::text("no such overload"),
                    why => why,
                })?
            }
            None => value,
        });
    }
    Ok(total.unwrap_or(zero))
}

fn best<'v>(args: &[Val<'v>], name: &str, is_better: fn(Ordering) -> bool) -> Eval<Val<'v>> {
    let [Val::List(list)] = args else { return Err(Failure::NoOverload) };
    let mut best: Option<Val<'v>> = None;
    for value in list.iter() {
        let value = value?;
        best = Some(match best {
            Some(best) if !is_better(compare(&best, &value)?) => best,
            Some(_) => value,
            None => {
                compare(&value, &value)?;
                value
            }
        });
    }
    best.ok_or_else(|| Failure::text(format!("{name} called on empty list")))
}

fn found(index: Option<usize>) -> i64 {
    index.map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX))
}

fn index_of<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let index = match args {
        [Val::String(text), Val::String(part)] => strings::index_of(text.as_str(), part.as_str(), 0)?,
        [Val::String(text), Val::String(part), Val::Int(from)] => {
            strings::index_of(text.as_str(), part.as_str(), *from)?
        }
        [Val::List(list), wanted] => {
            found(list.to_vec()?.iter().position(|value| equal(value, wanted).unwrap_or(false)))
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(Val::Int(index))
}

fn last_index_of<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let index = match args {
        [Val::String(text), Val::String(part)] => strings::last_index_of(text.as_str(), part.as_str(), None)?,
        [Val::String(text), Val::String(part), Val::Int(up_to)] => {
            strings::last_index_of(text.as_str(), part.as_str(), Some(*up_to))?
        }
        [Val::List(list), wanted] => {
            found(list.to_vec()?.iter().rposition(|value| equal(value, wanted).unwrap_or(false)))
        }
        _ => return Err(Failure::NoOverload),
    };
    Ok(Val::Int(index))
}

fn slice<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else { return Err(Failure::NoOverload) };
    let fault = |why: String| Failure::text(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(fault("negative indexes not supported".to_owned()));
    };
    if from > to {
        return Err(fault("start index must be less than or equal to end index".to_owned()));
    }
    if list.len() < to {
        return Err(fault(format!("list is length {}", list.len())));
    }
    list.iter().skip(from).take(to - from).collect::<Eval<_>>().map(Val::list)
}

fn flatten<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (list, depth) = match args {
        [Val::List(list)] => (list, 1),
        [Val::List(list), Val::Int(depth)] => (list, *depth),
        _ => return Err(Failure::NoOverload),
    };
    if depth < 0 {
        return Err(Failure::text("level must be non-negative"));
    }
    let mut out = Vec::new();
    flat(list, depth, &mut out)?;
    Ok(Val::list(out))
}

fn flat<'v>(list: &List<'v>, depth: i64, out: &mut Vec<Val<'v>>) -> Eval<()> {
    for value in list.iter() {
        match value? {
            Val::List(inner) if depth > 0 => flat(&inner, depth - 1, out)?,
            value => out.push(value),
        }
    }
    Ok(())
}

fn sorted<'v>(values: &[Val<'v>], keys: &[Val<'v>]) -> Eval<Val<'v>> {
    if values.len() != keys.len() {
        return Err(Failure::text(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            values.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else { return Ok(Val::list(Vec::new())) };
    if compare(first, first) == Err(Failure::NoOverload) {
        return Err(Failure::text("list elements must be comparable"));
    }
    if keys.len() > 1 && keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Failure::text("list elements must have the same type"));
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| match (keys.get(*a), keys.get(*b)) {
        (Some(a), Some(b)) => compare(a, b).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    });
    Ok(Val::list(order.into_iter().filter_map(|index| values.get(index).cloned()).collect()))
}

fn distinct<'v>(list: &List<'v>) -> Eval<Vec<Val<'v>>> {
    let mut out: Vec<Val<'v>> = Vec::new();
    for value in list.iter() {
        let value = value?;
        if !out.iter().any(|known| equal(&value, known).unwrap_or(false)) {
            out.push(value);
        }
    }
    Ok(out)
}

fn end<'v>(args: &[Val<'v>], which: fn(usize) -> usize) -> Eval<Val<'v>> {
    match args {
        [Val::List(list)] => Ok(list.get(which(list.len()))?.map_or(Val::NONE, Val::some)),
        _ => Err(Failure::NoOverload),
    }
}

fn unwrap<'v>(list: &List<'v>) -> Eval<Vec<Val<'v>>> {
    let mut out = Vec::new();
    for value in list.iter() {
        match value? {
            Val::Optional(held) => out.extend(held.map(|held| held.as_ref().clone())),
            other => return Err(Failure::text(format!("value {} is not optional", super::convert::shown(&other)))),
        }
    }
    Ok(out)
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(value) => !value,
        Val::Int(value) => *value == 0,
        Val::Uint(value) => *value == 0,
        Val::Double(value) => *value == 0.0,
        Val::String(text) => text.as_str().is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::Duration(nanos) => *nanos == 0,
        Val::Timestamp(at) => at.instant() == (-62_135_596_800, 0),
        Val::List(list) => list.is_empty(),
        Val::Map(map) => map.is_empty(),
        Val::Optional(held) => held.is_none(),
        Val::Type(_) | Val::Preserved(_) | Val::Library(_) => false,
    }
}
