//! Arithmetic on amounts by resource name.

use crate::pod::ResourceList;
use pintle_apimachinery::Str;
use pintle_apimachinery::quantity::{Format, Quantity};

/// `count` pieces.
pub(super) fn pieces(count: usize) -> Quantity {
    Quantity::from_i64(i64::try_from(count).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// The members of `list` that `keep` wants.
pub(super) fn mask(list: &ResourceList, keep: impl Fn(&str) -> bool) -> ResourceList {
    list.iter().filter(|(name, _)| keep(name)).map(|(name, amount)| (name.clone(), *amount)).collect()
}

/// `list` less `other`, nothing below zero.
pub(super) fn minus(list: &ResourceList, other: &ResourceList) -> ResourceList {
    let mut result = ResourceList::new();
    for (name, amount) in list {
        let rest = other.get(name).map_or(*amount, |other| amount.minus(*other));
        result.insert(name.clone(), if rest.sign() > 0 { rest } else { Quantity::ZERO });
    }
    for name in other.keys() {
        result.entry(name.clone()).or_insert(Quantity::ZERO);
    }
    result
}

/// The names whose amount in `list` is greater than in `bounds`.
pub(super) fn exceeding(list: &ResourceList, bounds: &ResourceList) -> Vec<Str> {
    let is_over = |name: &Str| list.get(name).is_some_and(|amount| *amount > bounds[name]);
    bounds.keys().filter(|name| is_over(name)).cloned().collect()
}

/// `a=1,b=2`, sorted by name.
pub(super) fn printed(list: &ResourceList) -> String {
    let parts: Vec<String> = list.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    parts.join(",")
}

/// `a,b`, sorted.
pub(super) fn printed_names(names: &[Str]) -> String {
    let mut names: Vec<&str> = names.iter().map(Str::as_str).collect();
    names.sort_unstable();
    names.join(",")
}
