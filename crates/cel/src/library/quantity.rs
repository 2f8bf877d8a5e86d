//! Quantities, and what they share with semantic versions: being compared.

use super::semver;
use crate::eval::value::Library;
use crate::eval::{Eval, Failure, Native, Val};
use pintle_apimachinery::quantity::{Format, Quantity};
use std::cmp::Ordering;

/// The function of a name.
pub fn native(name: &str) -> Option<Native> {
    Some(match name {
        "quantity" => |args| {
            let [Val::String(text)] = args else { return Err(Failure::NoOverload) };
            Quantity::parse(text.as_str()).map(value).map_err(|why| Failure::text(why.to_string()))
        },
        "isQuantity" => |args| {
            let [Val::String(text)] = args else { return Err(Failure::NoOverload) };
            Ok(Val::Bool(Quantity::parse(text.as_str()).is_ok()))
        },
        "sign" => |args| one(args, |quantity| Ok(Val::Int(i64::from(quantity.sign())))),
        "isInteger" => |args| one(args, |quantity| Ok(Val::Bool(quantity.as_i64().is_some()))),
        "asInteger" => |args| {
            let misfit = || Failure::text("cannot convert value to integer");
            one(args, |quantity| quantity.as_i64().map(Val::Int).ok_or_else(misfit))
        },
        "asApproximateFloat" => |args| one(args, |quantity| Ok(Val::Double(quantity.as_f64()))),
        "isGreaterThan" => |args| Ok(Val::Bool(compared(args)?.is_gt())),
        "isLessThan" => |args| Ok(Val::Bool(compared(args)?.is_lt())),
        "compareTo" => |args| Ok(Val::Int(compared(args)? as i64)),
        "add" => |args| two(args, Quantity::plus),
        "sub" => |args| two(args, Quantity::minus),
        _ => return None,
    })
}

fn value<'v>(quantity: Quantity) -> Val<'v> {
    Val::library(Library::Quantity(quantity))
}

fn of(value: &Val<'_>) -> Option<Quantity> {
    match value {
        Val::Library(library) => match library.as_ref() {
            Library::Quantity(quantity) => Some(*quantity),
            _ => None,
        },
        _ => None,
    }
}

fn one<'v>(args: &[Val<'v>], how: impl Fn(&Quantity) -> Eval<Val<'v>>) -> Eval<Val<'v>> {
    match args {
        [quantity] => how(&of(quantity).ok_or(Failure::NoOverload)?),
        _ => Err(Failure::NoOverload),
    }
}

fn two<'v>(args: &[Val<'v>], how: fn(Quantity, Quantity) -> Quantity) -> Eval<Val<'v>> {
    let [first, second] = args else { return Err(Failure::NoOverload) };
    let second = match second {
        Val::Int(int) => Quantity::from_i64(*int, Format::DecimalExponent),
        second => of(second).ok_or(Failure::NoOverload)?,
    };
    Ok(value(how(of(first).ok_or(Failure::NoOverload)?, second)))
}

fn compared(args: &[Val<'_>]) -> Eval<Ordering> {
    let [one, other] = args else { return Err(Failure::NoOverload) };
    if let (Some(one), Some(other)) = (semver::of(one), semver::of(other)) {
        return Ok(one.order(other));
    }
    match (of(one), of(other)) {
        (Some(one), Some(other)) => Ok(one.cmp(&other)),
        _ => Err(Failure::NoOverload),
    }
}
