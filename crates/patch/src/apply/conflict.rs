//! Conflicts of an apply: fields that it would change and others own.

use super::element;
use super::managed::{Entry, Operation};
use super::set::FieldSet;
use pintle_apimachinery::Str;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Status;
use std::fmt::Write as _;

/// A field that would change and is owned by another.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    /// The owner's identifier, which sorts.
    identifier: String,
    /// The owner as messages show it.
    owner: String,
    path: Vec<Str>,
}

/// Conflicts, sorted by owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts(Vec<Conflict>);

impl Conflicts {
    /// Adds the fields of one owner.
    pub(super) fn add(&mut self, owner: &Entry, fields: &FieldSet) {
        let (identifier, shown) = (owner.identifier(), shown(owner));
        self.0.extend(fields.paths().into_iter().map(|path| Conflict {
            identifier: identifier.clone(),
            owner: shown.clone(),
            path,
        }));
        self.0.sort_by(|a, b| a.identifier.cmp(&b.identifier));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Without those about fields in `allowed`.
    pub(super) fn without(mut self, allowed: &FieldSet) -> Conflicts {
        self.0.retain(|conflict| !allowed.has(&conflict.path));
        self
    }

    /// 409 with one cause a conflict.
    pub(super) fn status(&self) -> Box<Status> {
        let mut status = Status::failure(409, "Conflict", self.message());
        for conflict in &self.0 {
            let message = format!("conflict with {}", conflict.owner);
            status = status.with_cause("FieldManagerConflict", message, path_text(&conflict.path));
        }
        Box::new(status)
    }

    fn message(&self) -> String {
        if let [only] = &self.0[..] {
            let path = path_text(&only.path);
            return format!("Apply failed with 1 conflict: conflict with {}: {path}", only.owner);
        }
        let mut text = format!("Apply failed with {} conflicts:", self.0.len());
        let mut last = None;
        for conflict in &self.0 {
            let separator = if last.is_none() { ' ' } else { '\n' };
            if last != Some(&conflict.identifier) {
                write!(text, "{separator}conflicts with {}:", conflict.owner).expect("writing to a String cannot fail");
                last = Some(&conflict.identifier);
            }
            write!(text, "\n- {}", path_text(&conflict.path)).expect("writing to a String cannot fail");
        }
        text
    }
}

/// A path as messages show it: `.spec.containers[name="a"].image`.
pub(super) fn path_text(path: &[Str]) -> String {
    path.iter().map(|element| element::shown(element)).collect()
}

fn shown(owner: &Entry) -> String {
    let mut text = go_quote(&owner.manager);
    if !owner.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", go_quote(&owner.subresource)));
    }
    if owner.operation == Operation::Update {
        text.push_str(&format!(" using {}", owner.api_version));
    }
    text
}
