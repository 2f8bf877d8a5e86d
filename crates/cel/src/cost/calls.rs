//! What applying a function can cost, and how large its value can be.

use super::{Estimator, Path, Range};
use crate::ast::{Call, Constant, Expr, Kind};
use crate::eval::cost::{CHARACTER, CHECK, LIST, OBJECT, PATTERN};
use crate::types::Type;

/// The longest pattern that a format of names has, in characters.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest format, in characters.
const FORMAT_SIZE: u64 = 64;

/// What a call costs itself, and how large its value is if that is known.
type Cost = (Range, Option<Range>);

impl<'e> Estimator<'e> {
    /// The cost of a call by one of its overloads, its arguments included.
    pub(super) fn overload(&mut self, expr: &Expr, call: &'e Call, overload: &str, costs: &[Range]) -> Cost {
        let args = costs.iter().fold(Range::ZERO, |sum, cost| sum.plus(*cost));
        let own = self.collection(call, overload).or_else(|| self.library(call, overload));
        if let Some((cost, size)) = own {
            return (cost.plus(args), size);
        }
        match (overload, costs, call.args.as_slice()) {
            ("logical_or" | "logical_and", [left, right], _) => {
                (Range { min: left.min, max: left.plus(*right).max }, None)
            }
            ("conditional", [condition, yes, no], [_, then, otherwise]) => {
                let size = self.size_or_unknown(then).or(self.size_or_unknown(otherwise));
                let entries = self.entry_sizes(then).zip(self.entry_sizes(otherwise));
                self.set_entry_sizes(expr.id, entries.map(|(a, b)| a.or(b)));
                (condition.plus(yes.or(*no)), Some(size))
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = self.size_or_unknown(left).plus(self.size_or_unknown(right));
                let entries = self.entry_sizes(left).zip(self.entry_sizes(right));
                self.set_entry_sizes(expr.id, entries.map(|(a, b)| a.or(b)));
                let cost = if overload == "add_list" { Range::fixed(1) } else { size.scaled(CHARACTER) };
                (cost.plus(args), Some(size))
            }
            _ => {
                let (cost, size) = self.standard(call, overload);
                (cost.plus(args), size)
            }
        }
    }

    fn sizes<const N: usize>(&mut self, call: &'e Call) -> Option<[Range; N]> {
        let args: &'e [Expr; N] = call.args.as_slice().try_into().ok()?;
        Some(std::array::from_fn(|index| args.get(index).map_or(Range::UNKNOWN, |arg| self.size_or_unknown(arg))))
    }

    fn target_size(&mut self, call: &'e Call) -> Range {
        call.target.as_ref().map_or(Range::UNKNOWN, |target| self.size_or_unknown(target))
    }

    /// The functions of the language.
    fn standard(&mut self, call: &'e Call, overload: &str) -> Cost {
        let one = call.args.first().map_or(Range::UNKNOWN, |arg| self.size_or_unknown(arg));
        let read = one.scaled(CHARACTER);
        match overload {
            "string_format" => (self.target_size(call).scaled(CHARACTER), None),
            "string_to_bytes" => (read, Some(Range { min: one.min, max: one.max.wrapping_mul(4) })),
            "bytes_to_string" => (read, Some(Range { min: one.min / 4, max: one.max })),
            "strings_quote" => {
                let max = one.max.wrapping_mul(2).wrapping_add(2);
                (read, Some(Range { min: one.min.wrapping_add(2), max }))
            }
            "starts_with_string" | "ends_with_string" => (read, None),
            "in_list" => match self.sizes::<2>(call) {
                Some([_, list]) => (list, None),
                None => (Range::fixed(1), None),
            },
            "matches_string" => {
                let text = self.target_size(call).plus(Range::fixed(1)).scaled(CHARACTER);
                (text.times(one.scaled(PATTERN)), None)
            }
            "contains_string" => (self.target_size(call).scaled(CHARACTER).times(read), None),
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => {
                let max = self.sizes::<2>(call).map_or(u64::MAX, |[left, right]| left.max.min(right.max));
                (Range { min: u64::from(max > 0), max }.scaled(CHARACTER), None)
            }
            _ => (Range::fixed(1), None),
        }
    }

    /// The functions that make lists, and those of sets.
    fn collection(&mut self, call: &'e Call, overload: &str) -> Option<Cost> {
        let made = |factor: f64, size: Range| Some((size.scaled(factor).plus(Range::fixed(1 + LIST)), Some(size)));
        match overload {
            "list_slice" => {
                let [start, end] = call.args.as_slice() else { return None };
                let size = self.target_size(call);
                let (start, end) = (written_int(start).unwrap_or(0), written_int(end).unwrap_or(size.max));
                made(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            "lists_range" => made(1.0, Range::fixed(call.args.first().and_then(written_int).unwrap_or(u64::MAX))),
            "list_reverse" => made(1.0, self.target_size(call)),
            "list_flatten" => made(1.0, self.target_size(call)),
            "list_flatten_int" => {
                let depth = call.args.first().and_then(written_int).unwrap_or(u64::MAX);
                made(depth as f64, self.target_size(call))
            }
            "list_distinct" => {
                let size = self.target_size(call);
                made(2.0, size.times(size))
            }
            "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list" => {
                let [left, right] = self.sizes::<2>(call)?;
                let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
                Some((left.times(right).scaled(factor).plus(Range::fixed(1)), None))
            }
            _ => {
                let kind = overload.strip_prefix("list_")?;
                let (kind, size) = match kind.strip_suffix("_sort") {
                    Some(kind) => (kind, self.target_size(call)),
                    None => {
                        let kind = kind.strip_suffix("_sortByAssociatedKeys")?;
                        (kind, self.sizes::<1>(call)?[0])
                    }
                };
                let is_text = matches!(kind, "string" | "bytes");
                made(if is_text { 2.0 + CHARACTER } else { 2.0 }, size.times(size))
            }
        }
    }

    /// The functions of the Kubernetes libraries.
    fn library(&mut self, call: &'e Call, overload: &str) -> Option<Cost> {
        let one = Some((Range::fixed(1), None));
        let read = |size: Range, factor: f64| Some((size.scaled(factor * CHARACTER), None));
        let arg = |own: &mut Self, index: usize| call.args.get(index).map(|arg| own.size_or_unknown(arg));
        match call.function.as_str() {
            "check" => Some((Range::fixed(CHECK), None)),
            "fieldSelector" | "labelSelector" => {
                let length = arg(self, 0)?;
                let requirements = length.scaled(0.5).scaled((LIST + OBJECT) as f64);
                Some((Range::fixed(LIST).plus(length.scaled(CHARACTER)).plus(requirements), None))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => self.walked(call),
            "url" => arg(self, 0).map(|size| (size.scaled(CHARACTER), Some(size))),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = self.target_size(call);
                Some((size.scaled(CHARACTER), Some(size)))
            }
            "replace" => self.replaced(call),
            "split" => {
                let size = self.target_size(call);
                let max = call.args.get(1).and_then(written).map_or(size.max, i64::cast_unsigned);
                Some((size.scaled(2.0 * CHARACTER), Some(Range { min: 0, max })))
            }
            "join" => self.joined(call),
            "find" | "findAll" => {
                let size = self.target_size(call);
                let text = size.plus(Range::fixed(1)).scaled(CHARACTER);
                let pattern = arg(self, 0)?.scaled(PATTERN);
                Some((text.times(pattern), Some(Range { min: 0, max: size.max })))
            }
            "ip" if overload == "cidr_ip" => one,
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                read(arg(self, 0)?, 1.0)
            }
            "ip.isCanonical" => read(arg(self, 0)?, 2.0),
            "containsIP" | "containsCIDR" => {
                let address = Range { min: 4, max: 16 };
                let mut cost = address.plus(address).scaled(CHARACTER);
                if call.function == "containsCIDR" {
                    cost = cost.plus(address.scaled(CHARACTER)).plus(Range::fixed(1));
                }
                if matches!(overload, "cidr_contains_ip_string" | "cidr_contains_cidr_string") {
                    cost = cost.plus(arg(self, 0)?.scaled(CHARACTER));
                }
                Some((cost, None))
            }
            "validate" => {
                let size = arg(self, 0)?;
                Some((size.scaled(CHARACTER).scaled(FORMAT_PATTERN * PATTERN), None))
            }
            "_==_" => self.library_equality(call),
            _ => NOMINAL.contains(&call.function.as_str()).then_some((Range::fixed(1), None)),
        }
    }

    /// The type of a list's elements, and where they come from.
    fn elements(&self, list: &Expr) -> Option<(&'e Type, Path)> {
        let of = *self.checked.type_of(list.id).params().first()?;
        let mut path = self.source(list);
        if !path.is_empty() {
            path.push("@items".into());
        }
        Some((of, path))
    }

    fn walked(&mut self, call: &'e Call) -> Option<Cost> {
        let target = call.target.as_ref()?;
        let size = self.size_or_unknown(target);
        let Some((of, path)) = self.elements(target) else { return Some((size.scaled(CHARACTER), None)) };
        let mut element = Range::fixed(1);
        if matches!(of, Type::String | Type::Bytes) {
            element = element.plus(self.size_at(&path).unwrap_or(Range::UNKNOWN).scaled(CHARACTER));
        }
        Some((size.times(element), None))
    }

    fn joined(&mut self, call: &'e Call) -> Option<Cost> {
        let target = call.target.as_ref()?;
        let count = self.size_or_unknown(target);
        let mut size = match self.elements(target) {
            Some((_, path)) => count.times(self.size_at(&path).unwrap_or(Range::UNKNOWN)),
            None => Range::ZERO,
        };
        if let Some(separator) = call.args.first() {
            let between = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            size = size.plus(self.size_or_unknown(separator).times(between));
        }
        Some((size.scaled(CHARACTER), Some(size)))
    }

    fn replaced(&mut self, call: &'e Call) -> Option<Cost> {
        let size = self.target_size(call);
        let old = self.size_or_unknown(call.args.first()?);
        let new = self.size_or_unknown(call.args.get(1)?);
        let times = |length: u64, part: u64| (length as f64 / part as f64).ceil() as u64;
        let (most, kept_most) = match old.min {
            0 => (size.max.saturating_add(1), size.max),
            part if new.max <= part => (0, size.max),
            part => (times(size.max, part), 0),
        };
        let (least, kept_least) = match old.max {
            0 => (size.min.saturating_add(1), size.min),
            part if part <= new.min => (0, size.min),
            part => (times(size.min, part), 0),
        };
        let count = Range { min: least, max: most };
        let kept = Range { min: kept_least, max: kept_most };
        Some((size.scaled(2.0 * CHARACTER), Some(count.times(new).plus(kept))))
    }

    fn library_equality(&mut self, call: &'e Call) -> Option<Cost> {
        let [left, right] = call.args.as_slice() else { return None };
        let of = self.checked.type_of(left.id);
        if of != self.checked.type_of(right.id) {
            return None;
        }
        match of {
            Type::Opaque(name, _) if name == "net.IP" || name == "net.CIDR" => Some((Range::fixed(1), None)),
            Type::Object(object) => match object.name.as_str() {
                "kubernetes.NamedFormat" => Some((Range { min: 1, max: FORMAT_SIZE }.scaled(CHARACTER), None)),
                "kubernetes.URL" => {
                    let max = self.size(right).map_or(1, |size| size.max);
                    Some((Range { min: 1, max }.scaled(CHARACTER), None))
                }
                name if name.starts_with("kubernetes.") => Some((Range::fixed(1), None)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Functions that cost next to nothing whatever they are applied to.
const NOMINAL: &[&str] = &[
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
];

fn written(expr: &Expr) -> Option<i64> {
    match expr.kind {
        Kind::Constant(Constant::Int(value)) => Some(value),
        _ => None,
    }
}

/// A number that is written out; none below zero.
fn written_int(expr: &Expr) -> Option<u64> {
    written(expr).map(|value| u64::try_from(value).unwrap_or(0))
}
