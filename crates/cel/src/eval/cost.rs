//! What applying a function costs, by the sizes of what it is applied to.

use super::value::{Library, List, Val};

/// The cost of reading a variable, a member or an element.
pub const READ: u64 = 1;
/// The cost of making a list.
pub const LIST: u64 = 10;
/// The cost of making a map.
pub const MAP: u64 = 30;
/// The cost of making an object.
pub const OBJECT: u64 = 40;
/// The cost of asking for permission: few fit into what an expression may cost.
pub const CHECK: u64 = 350_000;
/// The cost of each character of a text that is read through.
pub const CHARACTER: f64 = 0.1;
/// The cost of each character of a pattern.
pub const PATTERN: f64 = 0.25;

/// A size times a factor, rounded up.
#[must_use]
pub fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// How a function is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// A fixed amount.
    Fixed(u64),
    /// By the first argument's characters.
    Read,
    /// By the first argument's characters, twice.
    ReadTwice,
    /// By the result's characters, twice.
    Joined,
    /// By everything in the first argument.
    Walked,
    /// By the length of a selector.
    Selector,
    /// By the characters of both arguments.
    Both,
    /// By the characters of the lesser argument.
    Lesser,
    /// By the product of two texts.
    Contains,
    /// By the product of text and pattern.
    Matched,
    /// By the product of text and the format's pattern.
    Format,
    /// By the elements of the second argument.
    Elements,
    /// By the size of addresses; the flags say whether networks are compared and whether the other is a text.
    Address(bool, bool),
    /// By the product of two lists, times a factor.
    Sets(u64),
    /// By the elements of the resulting list.
    Made,
    /// By the elements of the first argument, times the depth.
    Flat,
    /// By comparing the elements of an argument with each other.
    Compared(usize),
}

impl Charge {
    /// How a function is charged for; the overload is known only where types are.
    #[must_use]
    pub fn of(name: &str, overload: Option<&str>) -> Self {
        if let Some(charge) = overload.and_then(Self::of_overload) {
            return charge;
        }
        match name {
            "check" => Self::Fixed(CHECK),
            "fieldSelector" | "labelSelector" => Self::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Self::Walked,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR" | "quantity"
            | "isQuantity" | "semver" | "isSemver" => Self::Read,
            "ip" if overload != Some("cidr_ip") => Self::Read,
            "replace" | "split" | "ip.isCanonical" => Self::ReadTwice,
            "join" => Self::Joined,
            "find" | "findAll" => Self::Matched,
            "containsIP" => Self::Address(false, overload == Some("cidr_contains_ip_string")),
            "containsCIDR" => Self::Address(true, overload == Some("cidr_contains_cidr_string")),
            "validate" => Self::Format,
            _ => Self::Fixed(1),
        }
    }

    fn of_overload(overload: &str) -> Option<Self> {
        Some(match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => Self::Sets(1),
            "list_sets_equivalent_list" => Self::Sets(2),
            "list_slice" | "lists_range" | "list_reverse" => Self::Made,
            "list_flatten" | "list_flatten_int" => Self::Flat,
            "list_distinct" => Self::Compared(0),
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string" | "strings_quote"
            | "string_format" => Self::Read,
            "in_list" => Self::Elements,
            "add_string" | "add_bytes" => Self::Both,
            "matches_string" => Self::Matched,
            "contains_string" => Self::Contains,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => Self::Lesser,
            _ if overload.starts_with("list_") && overload.ends_with("_sort") => Self::Compared(0),
            _ if overload.ends_with("_sortByAssociatedKeys") => Self::Compared(1),
            _ => return None,
        })
    }

    /// What applying the function to some arguments costs.
    #[must_use]
    pub fn amount(self, args: &[Val<'_>], result: Option<&Val<'_>>) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, Val::size);
        let made = |count: u64| count + 1 + LIST;
        match self {
            Self::Fixed(amount) => amount,
            Self::Read => scaled(size(0), CHARACTER),
            Self::ReadTwice => scaled(size(0), 2.0 * CHARACTER),
            Self::Joined => scaled(result.map_or(1, Val::size), 2.0 * CHARACTER),
            Self::Walked => args.first().map_or(0, walked),
            Self::Selector => selector(size(1)),
            Self::Both => scaled(size(0) + size(1), CHARACTER),
            Self::Lesser => scaled(size(0).min(size(1)), CHARACTER),
            Self::Contains => scaled(size(0), CHARACTER) * scaled(size(1), CHARACTER),
            Self::Matched => scaled(1 + size(0), CHARACTER) * scaled(size(1), PATTERN),
            Self::Format => {
                let pattern = match args.first() {
                    Some(Val::Library(library)) => match library.as_ref() {
                        Library::Format(format) => format.pattern_length,
                        _ => 0,
                    },
                    _ => 0,
                };
                scaled(1 + size(1), CHARACTER) * scaled(pattern, PATTERN)
            }
            Self::Elements => size(1),
            Self::Address(are_networks, is_text) => {
                let compared = scaled(2 * size(0), CHARACTER);
                let masked = if are_networks { scaled(size(0), CHARACTER) + 1 } else { 0 };
                let read = if is_text { scaled(size(1), CHARACTER) } else { 0 };
                compared + masked + read
            }
            Self::Sets(factor) => 1 + size(0) * size(1) * factor,
            Self::Made => made(result.map_or(1, Val::size)),
            Self::Flat => {
                let depth = match args.get(1) {
                    Some(Val::Int(depth)) => u64::try_from(*depth).unwrap_or_default(),
                    _ => 1,
                };
                made(size(0).saturating_mul(depth))
            }
            Self::Compared(index) => match args.get(index) {
                Some(Val::List(list)) => made(compared(list)),
                _ => made(0),
            },
        }
    }
}

/// What comparing the elements of a list with each other costs.
fn compared(list: &List<'_>) -> u64 {
    let count = list.len() as u64;
    let is_text = matches!(list.get(0), Ok(Some(Val::String(_) | Val::Bytes(_))));
    let factor = if is_text { 2.0 + CHARACTER } else { 2.0 };
    ((count * count) as f64 * factor) as u64
}

/// What parsing a selector of a length costs.
#[must_use]
pub fn selector(length: u64) -> u64 {
    LIST + scaled(length, CHARACTER) + scaled(scaled(length, 0.5), (LIST + OBJECT) as f64)
}

/// What walking through a value and everything in it costs.
fn walked(value: &Val<'_>) -> u64 {
    match value {
        Val::String(text) => (text.as_str().len() as f64 * CHARACTER) as u64,
        Val::Bytes(bytes) => (bytes.len() as f64 * CHARACTER) as u64,
        Val::List(list) => list.iter().map(|item| item.as_ref().map_or(1, walked)).sum(),
        Val::Map(map) => {
            map.keys().iter().map(|key| walked(key) + map.find(key).ok().flatten().as_ref().map_or(1, walked)).sum()
        }
        _ => 1,
    }
}
