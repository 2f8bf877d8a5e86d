//! Lists taken as sets.

use crate::eval::compare::holds;
use crate::eval::value::List;
use crate::eval::{Eval, Failure, Native, Val};

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "sets.contains" => |args| pair(args, |one, other| contains(&one.to_vec()?, &other.to_vec()?)),
        "sets.equivalent" => |args| {
            pair(args, |one, other| {
                let (one, other) = (one.to_vec()?, other.to_vec()?);
                Ok(contains(&one, &other)? && contains(&other, &one)?)
            })
        },
        "sets.intersects" => |args| {
            pair(args, |one, other| {
                let (one, other) = (one.to_vec()?, other.to_vec()?);
                Ok(one.iter().any(|value| holds(&other, value).unwrap_or(false)))
            })
        },
        _ => return None,
    })
}

fn pair<'v>(args: &[Val<'v>], how: impl Fn(&List<'v>, &List<'v>) -> Eval<bool>) -> Eval<Val<'v>> {
    match args {
        [Val::List(one), Val::List(other)] => how(one, other).map(Val::Bool),
        _ => Err(Failure::NoOverload),
    }
}

fn contains(all: &[Val<'_>], some: &[Val<'_>]) -> Eval<bool> {
    for value in some {
        if !holds(all, value)? {
            return Ok(false);
        }
    }
    Ok(true)
}
