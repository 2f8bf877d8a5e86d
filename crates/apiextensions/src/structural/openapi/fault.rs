//! What the validator finds, and where.

use pintle_apimachinery::field::{ErrorType, Shown, go_quote};
use pintle_apimachinery::{FieldError, Value};
use std::fmt;

/// A place in the value, as messages write it.
pub(super) enum Place<'p> {
    /// The value itself: written as nothing.
    Root,
    /// A declared member; without a dot at the root.
    Property(&'p Place<'p>, &'p str),
    /// A member by `additionalProperties`; with a dot even at the root.
    Additional(&'p Place<'p>, &'p str),
    /// An item.
    Index(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Property(Place::Root, name) => f.write_str(name),
            Place::Property(parent, name) | Place::Additional(parent, name) => write!(f, "{parent}.{name}"),
            Place::Index(parent, idx) => write!(f, "{parent}[{idx}]"),
        }
    }
}

/// One thing found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    kind: ErrorType,
    /// The place as written; empty also for what has no place of its own.
    name: String,
    shown: Option<String>,
    detail: String,
}

impl Fault {
    fn at(place: &Place<'_>, kind: ErrorType, shown: Option<String>, rule: impl fmt::Display) -> Fault {
        let name = place.to_string();
        let detail = format!("{name} in body {rule}");
        Fault { kind, name, shown, detail }
    }

    /// A value of the wrong type, or of the wrong format where `found` is the value itself.
    pub(super) fn wrong_type(place: &Place<'_>, wanted: &str, found: &str) -> Fault {
        let rule = format!("must be of type {wanted}: {}", go_quote(found));
        Fault::at(place, ErrorType::TypeInvalid, Some(found.shown()), rule)
    }

    /// A value out of bounds.
    pub(super) fn bound(place: &Place<'_>, value: impl Shown, rule: impl fmt::Display) -> Fault {
        Fault::at(place, ErrorType::Invalid, Some(value.shown()), rule)
    }

    /// A `multipleOf` that is none.
    pub(super) fn bad_factor(place: &Place<'_>, shown_factor: String) -> Fault {
        let name = place.to_string();
        let detail = format!("factor MultipleOf declared for {name} must be positive: {shown_factor}");
        Fault { kind: ErrorType::Invalid, name, shown: Some(shown_factor), detail }
    }

    /// A string that is too long.
    pub(super) fn too_long(place: &Place<'_>, max: i64) -> Fault {
        let unit = if max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {max} {unit}");
        Fault { kind: ErrorType::TooLong, name: place.to_string(), shown: None, detail }
    }

    /// Too many items or members.
    pub(super) fn too_many(place: &Place<'_>, actual: i64, max: i64) -> Fault {
        let unit = if max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {max} {unit}");
        Fault { kind: ErrorType::TooMany, name: place.to_string(), shown: Some(actual.to_string()), detail }
    }

    /// A value that an enumeration does not have.
    pub(super) fn not_supported(place: &Place<'_>, value: &Value, supported: &[Value]) -> Fault {
        let told: Vec<String> = supported
            .iter()
            .map(|value| go_quote(&value.as_str().map_or_else(|| value.to_json_string(), str::to_owned)))
            .collect();
        let detail = format!("supported values: {}", told.join(", "));
        Fault { kind: ErrorType::NotSupported, name: place.to_string(), shown: Some(value.shown()), detail }
    }

    /// A required member that is absent.
    pub(super) fn required(place: &Place<'_>, name: &str) -> Fault {
        let name = format!("{place}.{name}");
        Fault { kind: ErrorType::Required, name, shown: None, detail: String::new() }
    }

    /// A member where no further ones may stand.
    pub(super) fn forbidden_property(place: &Place<'_>, name: &str) -> Fault {
        let parent = place.to_string();
        let detail = format!("{parent}.{name} in body is a forbidden property");
        Fault { kind: ErrorType::Invalid, name: parent, shown: Some(name.shown()), detail }
    }

    /// What a junctor says; it has no field.
    pub(super) fn junctor(place: &Place<'_>, rule: &str) -> Fault {
        let detail = format!("{} {rule}", go_quote(&place.to_string()));
        Fault { kind: ErrorType::Invalid, name: String::new(), shown: Some(go_quote("")), detail }
    }

    /// The error, for a value that stands at `at` (empty for a whole object).
    pub(super) fn into_error(self, at: &str) -> FieldError {
        let name = self.name.strip_prefix('.').unwrap_or(&self.name);
        let field = match (at, name) {
            ("", "") => "<nil>".to_owned(),
            (at, "") => at.to_owned(),
            ("", name) => name.to_owned(),
            (at, name) => format!("{at}.{name}"),
        };
        FieldError { kind: self.kind, field, shown: self.shown, detail: self.detail }
    }
}

/// What came of a check.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What was found, each thing once.
    pub(super) faults: Vec<Fault>,
    /// How many checks passed: of several failing branches, that with the most is told of.
    pub(super) n_matches: usize,
}

impl Outcome {
    /// One fault.
    pub(super) fn of(fault: Fault) -> Outcome {
        Outcome { faults: vec![fault], n_matches: 0 }
    }

    /// One passed check.
    pub(super) fn matched() -> Outcome {
        Outcome { faults: Vec::new(), n_matches: 1 }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    pub(super) fn add(&mut self, fault: Fault) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.n_matches += other.n_matches;
        for fault in other.faults {
            self.add(fault);
        }
    }
}
