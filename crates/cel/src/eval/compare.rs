//! Which values are equal, and which is the lesser.

use super::map::Map;
use super::value::{Eval, Failure, Library, List, Val};
use crate::decl::{Decl, Keyed, Shape};
use std::cmp::Ordering;

/// Whether two values are equal.
///
/// # Errors
/// When they cannot be compared.
pub fn equal(one: &Val<'_>, other: &Val<'_>) -> Eval<bool> {
    Ok(match (one, other) {
        (Val::Null, other) => matches!(other, Val::Null),
        (_, Val::Null) => false,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::String(a), Val::String(b)) => a.as_str() == b.as_str(),
        (Val::Bytes(a), Val::Bytes(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::Timestamp(a), Val::Timestamp(b)) => a.instant() == b.instant(),
        (Val::Type(a), Val::Type(b)) => a == b,
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
            numbers(one, other) == Some(Ordering::Equal)
        }
        (Val::List(a), _) => return lists(a, other),
        (Val::Map(a), _) => return maps(a, other),
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal(a, b),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Val::Preserved(a), other) => is_json(a, other),
        (Val::Library(a), Val::Library(b)) => return libraries(a, b),
        (Val::Library(_), _) => return Err(Failure::NoOverload),
        _ => false,
    })
}

fn is_json(json: &pintle_apimachinery::Value, other: &Val<'_>) -> bool {
    match other {
        Val::Preserved(other) => json == *other,
        _ => equal(&Val::json(json), other).unwrap_or(false),
    }
}

fn libraries(one: &Library<'_>, other: &Library<'_>) -> Eval<bool> {
    Ok(match (one, other) {
        (Library::Url(a), Library::Url(b)) => a == b,
        (Library::Ip(a), Library::Ip(b)) => a == b,
        (Library::Cidr(a), Library::Cidr(b)) => a == b,
        (Library::Quantity(a), Library::Quantity(b)) => a.cmp(b) == Ordering::Equal,
        (Library::Semver(a), Library::Semver(b)) => a.order(b) == Ordering::Equal,
        (Library::Format(a), Library::Format(b)) => a.name == b.name,
        _ => return Err(Failure::NoOverload),
    })
}

fn lists(one: &List<'_>, other: &Val<'_>) -> Eval<bool> {
    let Val::List(other) = other else {
        return if one.decl().is_some() { Err(Failure::NoOverload) } else { Ok(false) };
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    match one.decl().map(|decl| &decl.shape) {
        Some(Shape::List(_, Keyed::Set)) => {
            let ours = one.to_vec()?;
            for element in other.iter() {
                if !holds(&ours, &element?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Some(Shape::List(_, Keyed::Map(keys))) => keyed_lists(one, other, keys),
        _ => {
            for (ours, theirs) in one.iter().zip(other.iter()) {
                if !equal(&ours?, &theirs?)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

fn keyed_lists(one: &List<'_>, other: &List<'_>, keys: &[compact_str::CompactString]) -> Eval<bool> {
    let ours = one.to_vec()?;
    for theirs in other.iter() {
        let theirs = theirs?;
        let mut found = None;
        for mine in &ours {
            if same_keys(mine, &theirs, keys)? {
                found = Some(mine);
            }
        }
        match found {
            Some(mine) if equal(mine, &theirs)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether two elements of a list agree in the members the list is keyed by.
///
/// # Errors
/// When they cannot be compared.
pub fn same_keys(one: &Val<'_>, other: &Val<'_>, keys: &[compact_str::CompactString]) -> Eval<bool> {
    let (Val::Map(one), Val::Map(other)) = (one, other) else { return Ok(false) };
    for key in keys {
        let name = crate::decl::escape(key).unwrap_or_else(|| key.clone());
        let is_same = match (one.find_str(&name)?, other.find_str(&name)?) {
            (Some(a), Some(b)) => equal(&a, &b)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether one of some values equals another.
///
/// # Errors
/// When none does and one cannot be compared.
pub fn holds(values: &[Val<'_>], wanted: &Val<'_>) -> Eval<bool> {
    let mut failure = None;
    for value in values {
        match equal(value, wanted) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    failure.map_or(Ok(false), Err)
}

fn maps(one: &Map<'_>, other: &Val<'_>) -> Eval<bool> {
    let Val::Map(other) = other else {
        return if matches!(one, Map::Json(_, Some(_))) { Err(Failure::NoOverload) } else { Ok(false) };
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    if let (Map::Json(ours, Some(decl)), Map::Json(theirs, Some(_))) = (one, other)
        && !undeclared_equal(ours, theirs, decl)
    {
        return Ok(false);
    }
    for key in one.keys() {
        let is_same = match (one.find(&key)?, other.find(&key)?) {
            (Some(a), Some(b)) => equal(&a, &b)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the members that no type is declared for are equal where both objects have them.
fn undeclared_equal(
    ours: &pintle_apimachinery::value::Object,
    theirs: &pintle_apimachinery::value::Object,
    decl: &Decl,
) -> bool {
    let Shape::Object(members) = &decl.shape else { return true };
    ours.iter()
        .filter(|(key, _)| !members.by_key.contains_key(key.as_str()))
        .all(|(key, value)| theirs.get(key).is_none_or(|other| value == other))
}

/// Which of two values is the lesser.
///
/// # Errors
/// When they have no order.
pub fn compare(one: &Val<'_>, other: &Val<'_>) -> Eval<Ordering> {
    Ok(match (one, other) {
        (Val::Bool(a), Val::Bool(b)) => a.cmp(b),
        (Val::Int(a), Val::Int(b)) => a.cmp(b),
        (Val::String(a), Val::String(b)) => a.as_str().cmp(b.as_str()),
        (Val::Bytes(a), Val::Bytes(b)) => a.cmp(b),
        (Val::Duration(a), Val::Duration(b)) => a.cmp(b),
        (Val::Timestamp(a), Val::Timestamp(b)) => a.instant().cmp(&b.instant()),
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
            return numbers(one, other).ok_or_else(|| Failure::text("NaN values cannot be ordered"));
        }
        _ => return Err(Failure::NoOverload),
    })
}

/// The order of two numbers; none with one that is not a number.
fn numbers(one: &Val<'_>, other: &Val<'_>) -> Option<Ordering> {
    Some(match (one, other) {
        (Val::Int(a), Val::Int(b)) => a.cmp(b),
        (Val::Uint(a), Val::Uint(b)) => a.cmp(b),
        (Val::Int(a), Val::Uint(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Val::Uint(a), Val::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Val::Double(a), Val::Double(b)) => return a.partial_cmp(b),
        (Val::Double(a), Val::Int(b)) => return a.partial_cmp(&(*b as f64)),
        (Val::Double(a), Val::Uint(b)) => return a.partial_cmp(&(*b as f64)),
        (Val::Int(a), Val::Double(b)) => return (*a as f64).partial_cmp(b),
        (Val::Uint(a), Val::Double(b)) => return (*a as f64).partial_cmp(b),
        _ => return None,
    })
}
