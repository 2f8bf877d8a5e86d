//! What the functions do: those of the language, of its extensions, and of the Kubernetes libraries.

mod access;
pub mod convert;
pub mod format_text;
pub mod formats;
mod lists;
mod net;
pub mod quantity;
pub mod regex;
pub mod semver;
mod sets;
pub mod signatures;
mod standard;
mod strings;
mod times;
mod urls;

use crate::eval::{Failure, Native, Val};
use std::fmt::Write;

/// What the function of a name does; none for those that the evaluator knows itself.
#[must_use]
pub fn native(name: &str) -> Option<Native> {
    [
        standard::native,
        convert::native,
        strings::native,
        lists::native,
        times::native,
        sets::native,
        regex::native,
        net::native,
        urls::native,
        quantity::native,
        semver::native,
        formats::native,
        access::native,
    ]
    .iter()
    .find_map(|of| of(name))
}

/// What an overload does, where that is not what the function does with values of all types.
#[must_use]
pub fn of_overload(overload: Option<&str>) -> Option<Native> {
    lists::of_overload(overload?)
}

/// Functions that ask their first argument what they mean to it, and what they say when it means nothing.
const ASKING: &[&str] = &["contains", "startsWith", "endsWith", "@in", "_?_:_", "!_", "@not_strictly_false"];

/// Operators, and functions that need their first argument to be able to do something.
const ABLE: &[&str] = &[
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "-_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "size",
    "sort",
    "@sortByAssociatedKeys",
    "matches",
];

/// What is said when a function is applied to values it does not take.
#[must_use]
pub fn no_overload(name: &str, has_pattern: bool, args: &[Val<'_>]) -> Failure {
    let bare = || Failure::text("no such overload");
    if ASKING.contains(&name) || (has_pattern && matches!(name, "matches" | "find" | "findAll")) {
        return bare();
    }
    if ABLE.contains(&name) {
        return if args.first().is_some_and(|arg| is_able(name, arg)) {
            bare()
        } else {
            Failure::text(format!("no such overload: {name}"))
        };
    }
    let mut text = format!("no such overload: {name}(");
    for (index, arg) in args.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{}", arg.type_name());
    }
    text.push(')');
    Failure::text(text)
}

/// Whether a value can do what an operator asks of it with values of some type, or answers for itself.
fn is_able(name: &str, value: &Val<'_>) -> bool {
    let is_number = matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_));
    match value {
        Val::String(_) | Val::Duration(_) | Val::Timestamp(_) => true,
        Val::Bool(_) => matches!(name, "_<_" | "_<=_" | "_>_" | "_>=_" | "-_"),
        Val::Bytes(_) => matches!(name, "_+_" | "_<_" | "_<=_" | "_>_" | "_>=_"),
        Val::List(_) => name == "_+_",
        Val::Double(_) => name != "_%_" && !matches!(name, "size" | "matches" | "sort"),
        _ => is_number && !matches!(name, "size" | "matches" | "sort"),
    }
}
