//! Texts.

use super::format_text;
use crate::eval::{Eval, Failure, Native, Val};
use std::fmt::Write;

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "contains" => |args| test(args, |text, part| text.contains(part)),
        "startsWith" => |args| test(args, |text, part| text.starts_with(part)),
        "endsWith" => |args| test(args, |text, part| text.ends_with(part)),
        "charAt" => char_at,
        "lowerAscii" => |args| text(args, |text| Val::text(text.to_ascii_lowercase())),
        "upperAscii" => |args| text(args, |text| Val::text(text.to_ascii_uppercase())),
        "trim" => |args| text(args, |text| Val::text(text.trim_matches(is_space))),
        "strings.quote" => |args| text(args, |text| Val::text(quoted(text))),
        "replace" => replace,
        "split" => split,
        "substring" => substring,
        "join" => join,
        "format" => |args| match args {
            [Val::String(text), Val::List(list)] => format_text::formatted(text.as_str(), list).map(Val::text),
            _ => Err(Failure::NoOverload),
        },
        _ => return None,
    })
}

fn text<'v>(args: &[Val<'v>], how: impl Fn(&str) -> Val<'v>) -> Eval<Val<'v>> {
    match args {
        [Val::String(text)] => Ok(how(text.as_str())),
        _ => Err(Failure::NoOverload),
    }
}

fn test<'v>(args: &[Val<'v>], how: impl Fn(&str, &str) -> bool) -> Eval<Val<'v>> {
    match args {
        [Val::String(text), Val::String(part)] => Ok(Val::Bool(how(text.as_str(), part.as_str()))),
        _ => Err(Failure::NoOverload),
    }
}

/// What Go takes for space.
const fn is_space(c: char) -> bool {
    c.is_whitespace()
}

fn out_of_range(index: i64) -> Failure {
    Failure::text(format!("index out of range: {index}"))
}

/// Where a character of a text begins; its end for as many as it has.
fn place(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    text.char_indices().map(|(place, _)| place).chain([text.len()]).nth(index)
}

fn char_at<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let [Val::String(text), Val::Int(index)] = args else { return Err(Failure::NoOverload) };
    let text = text.as_str();
    let place = place(text, *index).ok_or_else(|| out_of_range(*index))?;
    Ok(Val::text(text.get(place..).unwrap_or_default().chars().next().map(String::from).unwrap_or_default()))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let escape = match c {
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{b}' => "\\v",
            '\\' => "\\\\",
            '"' => "\\\"",
            c => {
                out.push(c);
                continue;
            }
        };
        out.push_str(escape);
    }
    out.push('"');
    out
}

fn replace<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (text, old, new, count) = match args {
        [Val::String(text), Val::String(old), Val::String(new)] => (text, old, new, -1),
        [Val::String(text), Val::String(old), Val::String(new), Val::Int(count)] => (text, old, new, *count),
        _ => return Err(Failure::NoOverload),
    };
    let (text, old, new) = (text.as_str(), old.as_str(), new.as_str());
    Ok(Val::text(match usize::try_from(count) {
        Ok(count) => text.replacen(old, new, count),
        Err(_) => text.replace(old, new),
    }))
}

fn split<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (text, separator, count) = match args {
        [Val::String(text), Val::String(separator)] => (text, separator, -1),
        [Val::String(text), Val::String(separator), Val::Int(count)] => (text, separator, *count),
        _ => return Err(Failure::NoOverload),
    };
    let (text, separator) = (text.as_str(), separator.as_str());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let parts: Vec<&str> = if separator.is_empty() {
        characters(text, count)
    } else if count == 0 {
        Vec::new()
    } else {
        text.splitn(count, separator).collect()
    };
    Ok(Val::list(parts.into_iter().map(Val::text).collect()))
}

/// The characters of a text, the last part being all that is left.
fn characters(text: &str, count: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let width = if parts.len() + 1 >= count { rest.len() } else { c.len_utf8() };
        let (part, after) = rest.split_at(width);
        if count > 0 {
            parts.push(part);
        }
        rest = after;
    }
    parts
}

fn substring<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (text, start, end) = match args {
        [Val::String(text), Val::Int(start)] => (text.as_str(), *start, None),
        [Val::String(text), Val::Int(start), Val::Int(end)] => (text.as_str(), *start, Some(*end)),
        _ => return Err(Failure::NoOverload),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(Failure::text(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let from = place(text, start).ok_or_else(|| out_of_range(start))?;
    let to = match end {
        Some(end) => place(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    Ok(Val::text(text.get(from..to).unwrap_or_default()))
}

fn join<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let (list, separator) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::String(separator)] => (list, separator.as_str()),
        _ => return Err(Failure::NoOverload),
    };
    let mut out = String::new();
    for (index, part) in list.iter().enumerate() {
        match part? {
            Val::String(part) => {
                let separator = if index > 0 { separator } else { "" };
                let _ = write!(out, "{separator}{}", part.as_str());
            }
            _ if index == 0 => return Err(Failure::NoOverload),
            part => {
                return Err(Failure::text(format!("join: invalid input: {}", super::convert::shown(&part))));
            }
        }
    }
    Ok(Val::text(out))
}

/// Where a text first occurs in another, from a character on; -1 where it does not.
pub(super) fn index_of(text: &str, part: &str, from: i64) -> Eval<i64> {
    if part.is_empty() {
        return Ok(from);
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let Some(start) = place(text, from) else { return Ok(-1) };
    let after = text.get(start..).unwrap_or_default();
    Ok(after.find(part).map_or(-1, |found| count(text, start + found)))
}

/// Where a text last occurs in another, up to a character; -1 where it does not.
pub(super) fn last_index_of(text: &str, part: &str, up_to: Option<i64>) -> Eval<i64> {
    if part.is_empty() {
        return Ok(up_to.unwrap_or_else(|| count(text, text.len())));
    }
    let Some(up_to) = up_to else { return Ok(text.rfind(part).map_or(-1, |found| count(text, found))) };
    if up_to < 0 {
        return Err(out_of_range(up_to));
    }
    let Some(start) = place(text, up_to).filter(|start| *start < text.len()) else { return Ok(-1) };
    let end = (start + part.len()).min(text.len());
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let within = text.get(..end).unwrap_or_default();
    let found = within.rmatch_indices(part).map(|(found, _)| found).find(|found| *found <= start);
    Ok(found.map_or(-1, |found| count(text, found)))
}

fn count(text: &str, place: usize) -> i64 {
    let characters = text.get(..place).unwrap_or_default().chars().count();
    i64::try_from(characters).unwrap_or(i64::MAX)
}
