//! Selectors of lists and watches over records: labels, and the fields that the kind lets be selected.

use crate::options::ListOptions;
use crate::resource::{Resource, Store};
use pintle_apimachinery::fieldselector::FieldSelector;
use pintle_apimachinery::labels::Selector;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Str};
use pintle_storage::{Filter, Record};
use std::sync::Arc;

/// What a request selects.
#[derive(Clone, Debug)]
pub struct Selection<'o> {
    labels: &'o Selector,
    fields: &'o FieldSelector,
    /// The position of each term's field in the kind's table; `None` for name and namespace.
    positions: Vec<Option<usize>>,
}

impl<'o> Selection<'o> {
    /// The selection of a request.
    ///
    /// # Errors
    /// 400 for a field that the kind does not let be selected.
    pub fn new(resource: &Resource, options: &'o ListOptions) -> Result<Selection<'o>> {
        let is_known = |field: &str| {
            matches!(field, "metadata.name" | "metadata.namespace") || resource.field_position(field).is_some()
        };
        if let Some(field) = options.fields.terms.iter().map(|term| term.field.as_str()).find(|field| !is_known(field))
        {
            let text = match &resource.definition {
                crate::resource::Definition::Builtin(_) => resource.strategy.unknown_field_message(field),
                crate::resource::Definition::Custom(_) => format!("field label not supported: {field}"),
            };
            return Err(Box::new(Status::bad_request(text)));
        }
        let positions = options.fields.terms.iter().map(|term| resource.field_position(&term.field)).collect();
        Ok(Selection { labels: &options.labels, fields: &options.fields, positions })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The one name that a selected object can have, if the selector says so.
    pub fn single_name(&self) -> Option<&'o str> {
        self.fields.requires_exact("metadata.name")
    }

    /// Whether a record is selected.
    pub fn matches(&self, store: &Store, record: &Record) -> bool {
        matches(self.labels, self.fields, &self.positions, store, record)
    }
}

fn matches(
    labels: &Selector,
    fields: &FieldSelector,
    positions: &[Option<usize>],
    store: &Store,
    record: &Record,
) -> bool {
    if labels.is_everything() && fields.is_everything() {
        return true;
    }
    let (namespace, name) = store.names(&record.key);
    let needs_head = !labels.is_everything() || positions.iter().any(Option::is_some);
    let head = needs_head.then(|| store.head(record));
    let is_field = fields.terms.iter().zip(positions).all(|(term, position)| {
        let value = match position {
            Some(idx) => head.as_ref().map_or("", |head| head.field(*idx)),
            None if term.field == "metadata.name" => name,
            None => namespace,
        };
        (value == term.value) != term.is_negated
    });
    is_field && head.as_ref().is_none_or(|head| labels.matches(&**head))
}

/// A selection that a watch carries along.
#[derive(Debug)]
pub struct OwnedSelection {
    labels: Selector,
    fields: FieldSelector,
    positions: Vec<Option<usize>>,
    store: Arc<Store>,
    /// The field of the trigger index that a term pins, and its value.
    trigger: Option<(Str, Str)>,
}

impl OwnedSelection {
    /// The selection of a watch.
    ///
    /// # Errors
    /// 400 for a field that the kind does not let be selected.
    pub fn new(resource: &Resource, options: &ListOptions) -> Result<OwnedSelection> {
        let selection = Selection::new(resource, options)?;
        let trigger = TRIGGER_FIELDS.iter().find_map(|field| {
            options.fields.requires_exact(field).map(|value| (Str::const_new(field), Str::new(value)))
        });
        Ok(OwnedSelection {
            labels: options.labels.clone(),
            fields: options.fields.clone(),
            positions: selection.positions,
            store: resource.store.clone(),
            trigger,
        })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

/// Fields that watchers pin so often that events are indexed by them.
pub const TRIGGER_FIELDS: &[&str] = &["metadata.name", "spec.nodeName"];

impl Filter for OwnedSelection {
    fn matches(&self, record: &Record) -> bool {
        matches(&self.labels, &self.fields, &self.positions, &self.store, record)
    }

    fn trigger(&self) -> Option<(&str, &str)> {
        self.trigger.as_ref().map(|(field, value)| (field.as_str(), value.as_str()))
    }
}
