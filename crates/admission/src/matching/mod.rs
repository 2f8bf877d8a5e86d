//! Which operations a webhook or a policy is for, and in which form it sees the object.

mod forms;
mod rules;
mod selectors;

pub(crate) use forms::{Form, Pair, in_form};
pub use forms::{Forms, SingleForms};
pub(crate) use rules::{Rule, Subject, is_exempt, namespace_of};
pub(crate) use selectors::{Selection, Selectors, namespace};

use crate::attributes::Attributes;

/// The first form of the operation for which one of `rules` is: that in which it came before all others, which count
/// only if `is_equivalent`.
pub(crate) fn matching_form(
    forms: &dyn Forms,
    rules: &[Rule],
    is_equivalent: bool,
    attributes: &Attributes<'_>,
) -> Option<Form> {
    let subject = Subject::of(attributes);
    if rules.iter().any(|rule| rule.matches(subject)) {
        return Some(Form::of(attributes));
    }
    if !is_equivalent || rules.is_empty() {
        return None;
    }
    let equivalents = forms.equivalents(attributes.resource, attributes.subresource);
    let mut others = rules.iter().flat_map(|rule| {
        let others = equivalents.iter().filter(|(resource, _)| resource != attributes.resource);
        others.filter(move |(resource, _)| rule.matches(Subject { resource, ..subject }))
    });
    others.next().map(|(resource, kind)| Form { resource: resource.clone(), kind: kind.clone() })
}
