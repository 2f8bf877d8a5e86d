//! Semantic versions.

use crate::eval::value::Library;
use crate::eval::{Eval, Failure, Native, Val};
use pintle_apimachinery::field::go_quote;
use std::cmp::Ordering;

/// A semantic version. What was built is not part of what versions are compared by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    before: Vec<Before>,
}

/// A part of what marks a version as one before a release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Number(u64),
    Word(String),
}

impl Semver {
    /// Which of two versions is the earlier.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let release = self.before.is_empty().cmp(&other.before.is_empty());
        self.numbers.cmp(&other.numbers).then(release).then_with(|| self.before.cmp(&other.before))
    }
}

/// The function of a name.
pub fn native(name: &str) -> Option<Native> {
    Some(match name {
        "semver" => |args| {
            let version = read(args)?.map_err(Failure::text)?;
            Ok(Val::library(Library::Semver(version)))
        },
        "isSemver" => |args| Ok(Val::Bool(read(args)?.is_ok())),
        "major" => |args| number(args, 0),
        "minor" => |args| number(args, 1),
        "patch" => |args| number(args, 2),
        _ => return None,
    })
}

/// The version that a value is.
pub fn of<'a>(value: &'a Val<'_>) -> Option<&'a Semver> {
    match value {
        Val::Library(library) => match library.as_ref() {
            Library::Semver(version) => Some(version),
            _ => None,
        },
        _ => None,
    }
}

fn number<'v>(args: &[Val<'v>], index: usize) -> Eval<Val<'v>> {
    let version = args.first().and_then(of).ok_or(Failure::NoOverload)?;
    Ok(Val::Int(version.numbers.get(index).copied().unwrap_or_default().cast_signed()))
}

fn read(args: &[Val<'_>]) -> Eval<Result<Semver, String>> {
    match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => Ok(parse(text.as_str())),
        [Val::String(text), Val::Bool(true)] => Ok(normalized(text.as_str()).and_then(|text| parse(&text))),
        _ => Err(Failure::NoOverload),
    }
}

/// Adds what is missing and drops what is too much: a leading `v`, leading zeros, minor and patch numbers.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() < 2 {
                return part.to_owned();
            }
            let bare = part.trim_start_matches('0');
            if bare.starts_with(|c: char| c.is_ascii_digit()) { bare.to_owned() } else { format!("0{bare}") }
        })
        .collect();
    if parts.len() < 3 && parts.last().is_some_and(|part| part.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    while parts.len() < 3 {
        parts.push("0".to_owned());
    }
    Ok(parts.join("."))
}

fn parse(text: &str) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (major, minor) = (part("Major", major)?, part("Minor", minor)?);
    let (rest, built) = rest.split_once('+').map_or((rest, None), |(rest, built)| (rest, Some(built)));
    let (patch, before) = rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
    let patch = part("Patch", patch)?;
    let before = before.map_or(Ok(Vec::new()), |before| before.split('.').map(marker).collect::<Result<_, _>>())?;
    for word in built.into_iter().flat_map(|built| built.split('.')) {
        if word.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_word(word) {
            return Err(format!("Invalid character(s) found in build meta data {}", go_quote(word)));
        }
    }
    Ok(Semver { numbers: [major, minor, patch], before })
}

fn part(name: &str, text: &str) -> Result<u64, String> {
    let quoted = || go_quote(text);
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {} number {}", name.to_lowercase(), quoted()));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {}", quoted()));
    }
    number_of(text)
}

fn number_of(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", go_quote(text)))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn marker(text: &str) -> Result<Before, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|b| b.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", go_quote(text)));
        }
        return number_of(text).map(Before::Number);
    }
    if !is_word(text) {
        return Err(format!("Invalid character(s) found in prerelease {}", go_quote(text)));
    }
    Ok(Before::Word(text.to_owned()))
}
