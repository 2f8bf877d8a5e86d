//! Regular expressions.

use crate::eval::{Eval, Failure, Native, Val};
use crate::regexp::Regexp;

/// The function of a name.
pub fn native(name: &str) -> Option<Native> {
    Some(match name {
        "matches" => |args| compiled("matches", args, ""),
        "find" => |args| compiled("find", args, "Illegal regex: "),
        "findAll" => |args| compiled("findAll", args, "Illegal regex: "),
        _ => return None,
    })
}

fn compiled<'v>(name: &str, args: &[Val<'v>], prefix: &str) -> Eval<Val<'v>> {
    let [Val::String(_), Val::String(pattern), ..] = args else { return Err(Failure::NoOverload) };
    let pattern = Regexp::new(pattern.as_str()).map_err(|why| Failure::text(format!("{prefix}{why}")))?;
    with_pattern(name, &pattern, args)
}

/// Applies a function to its arguments with its pattern, which is the second of them.
///
/// # Errors
/// When the arguments are of other types.
pub fn with_pattern<'v>(name: &str, pattern: &Regexp, args: &[Val<'v>]) -> Eval<Val<'v>> {
    let [Val::String(text), Val::String(_), rest @ ..] = args else { return Err(Failure::NoOverload) };
    let text = text.as_str();
    match (name, rest) {
        ("matches", []) => Ok(Val::Bool(pattern.is_match(text))),
        ("find", []) => Ok(Val::text(pattern.find(text).unwrap_or_default())),
        ("findAll", []) => Ok(Val::list(pattern.find_iter(text).map(Val::text).collect())),
        ("findAll", [Val::Int(count)]) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            Ok(Val::list(pattern.find_iter(text).take(count).map(Val::text).collect()))
        }
        _ => Err(Failure::NoOverload),
    }
}
