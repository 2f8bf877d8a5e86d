//! Validation of values by the value part of a schema: types, formats, bounds, enumerations, junctors. Messages, their
//! order and what junctors tell of their branches are those of the OpenAPI validator that Kubernetes uses.
//!
//! With an old object, errors of what did not change are dropped (ratcheting).
//!
//! Follows: kube-openapi/pkg/validation/validate and apiextensions-apiserver/pkg/apiserver/validation (v0.35); differs:
//! properties are visited in the order of their names.

mod fault;
mod scalar;

use super::correlate::Correlated;
use super::{Additional, Checks, Structural, Type};
use fault::{Fault, Outcome, Place};
use pintle_apimachinery::{ErrorList, Object, Value};
use pintle_cel::strfmt::{self, Check};

/// Which form of the schema counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of custom resources: int-or-string is a type.
    Served,
    /// Of defaults in a definition: int-or-string says nothing by itself.
    Structural,
}

/// The errors of `value`; `at` is the path of the value itself, empty for a whole object.
pub fn validate(value: &Value, schema: &Structural, form: Form, at: &str) -> ErrorList {
    let outcome = Validator { form }.check(schema, value, None, &Place::Root);
    outcome.faults.into_iter().map(|fault| fault.into_error(at)).collect()
}

/// [`validate`] of an update: errors of values that are as they were in `correlated.old` are left out.
pub fn validate_update(value: &Value, schema: &Structural, correlated: Option<Correlated<'_>>, at: &str) -> ErrorList {
    let outcome = Validator { form: Form::Served }.check(schema, value, correlated, &Place::Root);
    outcome.faults.into_iter().map(|fault| fault.into_error(at)).collect()
}

struct Validator {
    form: Form,
}

/// The format's check where the format is known; unknown formats are as none at all.
fn known_format(checks: &Checks) -> Option<Check> {
    strfmt::check_of(&checks.format)
}

impl Validator {
    /// The type names of a node as messages list them; empty for none.
    fn type_names<'s>(&self, schema: &'s Structural) -> &'s str {
        if schema.is_int_or_string && self.form == Form::Served { "integer,string" } else { schema.ty.as_str() }
    }

    fn has_type(&self, schema: &Structural, ty: &Type) -> bool {
        if schema.is_int_or_string && self.form == Form::Served {
            return matches!(ty, Type::Integer | Type::String);
        }
        schema.ty == *ty
    }

    /// Everything about one value. `old` is there while the old value of the place is known.
    fn check(&self, schema: &Structural, value: &Value, old: Option<Correlated<'_>>, place: &Place<'_>) -> Outcome {
        let mut outcome = self.check_all(schema, value, old, place);
        if !outcome.faults.is_empty() && old.is_some_and(|old| old.is_unchanged()) {
            outcome.faults.clear();
        }
        outcome
    }

    fn check_all(&self, schema: &Structural, value: &Value, old: Option<Correlated<'_>>, place: &Place<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let checks = schema.checks();
        if value.is_null() {
            outcome.merge(self.check_type(schema, value, place));
            outcome.merge(scalar::check_enum(checks, value, place));
            return outcome;
        }
        let format = known_format(checks);
        if !self.type_names(schema).is_empty() || format.is_some() {
            outcome.merge(self.check_type(schema, value, place));
            outcome.n_matches += 1;
        }
        outcome.merge(self.check_junctors(checks, value, old, place));
        outcome.n_matches += 1;
        match value {
            Value::String(text) => {
                outcome.merge(scalar::check_string(checks, text, place));
                outcome.n_matches += 1;
                if let Some(check) = format {
                    outcome.merge(scalar::check_format(checks, check, text, place));
                    outcome.n_matches += 1;
                }
            }
            Value::Int(_) | Value::Float(_) => {
                outcome.merge(scalar::check_number(checks, value, place));
                outcome.n_matches += 1;
            }
            Value::Array(items) => {
                outcome.merge(self.check_list(schema, items, old, place));
                outcome.n_matches += 1;
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        outcome.merge(scalar::check_enum(checks, value, place));
        outcome.n_matches += 1;
        if let Value::Object(object) = value {
            outcome.merge(self.check_object(schema, object, old, place));
            outcome.n_matches += 1;
        }
        outcome.n_matches += 1;
        outcome
    }

    fn check_type(&self, schema: &Structural, value: &Value, place: &Place<'_>) -> Outcome {
        let names = self.type_names(schema);
        let is_string_like = matches!(value, Value::String(_) | Value::Array(_));
        let (ty, format) = match value {
            Value::Null => {
                if names.is_empty() || schema.is_nullable {
                    return Outcome::matched();
                }
                return Outcome::of(Fault::wrong_type(place, names, "null"));
            }
            Value::Bool(_) => (Type::Boolean, ""),
            Value::Int(_) => (Type::Integer, "int64"),
            Value::Float(_) => (Type::Number, "float64"),
            Value::String(_) => (Type::String, ""),
            Value::Array(_) => (Type::Array, ""),
            Value::Object(_) => (Type::Object, ""),
        };
        let is_whole_float = matches!(value, Value::Float(f) if scalar::is_json_integer(*f));
        let is_convertible = (is_whole_float && self.has_type(schema, &Type::Integer))
            || (ty == Type::Integer && self.has_type(schema, &Type::Number));
        let is_fit = self.has_type(schema, &ty) || is_convertible;
        let checks = schema.checks();
        if known_format(checks).is_some() {
            if !is_string_like && !is_fit {
                return Outcome::of(Fault::wrong_type(place, &checks.format, format));
            }
            let is_numeric = self.has_type(schema, &Type::Number) || self.has_type(schema, &Type::Integer);
            if !is_numeric && is_string_like {
                return Outcome::matched();
            }
        }
        if is_fit { Outcome::matched() } else { Outcome::of(Fault::wrong_type(place, names, ty.as_str())) }
    }

    fn check_junctors(
        &self,
        checks: &Checks,
        value: &Value,
        old: Option<Correlated<'_>>,
        place: &Place<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        // branches are no places of their own: nothing is dropped there as unchanged
        let check = |branch: &Structural| self.check_all(branch, value, old, place);
        self.check_any_of(checks, &check, place, &mut outcome);
        self.check_one_of(checks, &check, place, &mut outcome);
        let results: Vec<Outcome> = checks.all_of.iter().map(check).collect();
        let n_valid = results.iter().filter(|result| result.is_valid()).count();
        results.into_iter().for_each(|result| outcome.merge(result));
        if n_valid != checks.all_of.len() {
            let none = if n_valid == 0 { ". None validated" } else { "" };
            outcome.add(Fault::junctor(place, &format!("must validate all the schemas (allOf){none}")));
        }
        if checks.not.as_deref().is_some_and(|not| check(not).is_valid()) {
            outcome.add(Fault::junctor(place, "must not validate the schema (not)"));
        }
        outcome.n_matches += 1;
        outcome
    }

    fn check_any_of(
        &self,
        checks: &Checks,
        check: &impl Fn(&Structural) -> Outcome,
        place: &Place<'_>,
        outcome: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        for branch in &checks.any_of {
            let result = check(branch);
            if result.is_valid() {
                outcome.merge(result);
                return;
            }
            if best.as_ref().is_none_or(|best| result.n_matches > best.n_matches) {
                best = Some(result);
            }
        }
        if let Some(best) = best {
            outcome.add(Fault::junctor(place, "must validate at least one schema (anyOf)"));
            outcome.merge(best);
        }
    }

    fn check_one_of(
        &self,
        checks: &Checks,
        check: &impl Fn(&Structural) -> Outcome,
        place: &Place<'_>,
        outcome: &mut Outcome,
    ) {
        if checks.one_of.is_empty() {
            return;
        }
        let (mut best, mut first_valid): (Option<Outcome>, Option<Outcome>) = (None, None);
        let mut n_valid = 0;
        for branch in &checks.one_of {
            let result = check(branch);
            if result.is_valid() {
                n_valid += 1;
                best = None;
                first_valid.get_or_insert(result);
            } else if n_valid == 0 && best.as_ref().is_none_or(|best| result.n_matches > best.n_matches) {
                best = Some(result);
            }
        }
        if n_valid == 1 {
            first_valid.into_iter().for_each(|result| outcome.merge(result));
            return;
        }
        let found =
            if n_valid == 0 { "Found none valid".to_owned() } else { format!("Found {n_valid} valid alternatives") };
        outcome.add(Fault::junctor(place, &format!("must validate one and only one schema (oneOf). {found}")));
        best.into_iter().for_each(|result| outcome.merge(result));
    }

    fn check_list(
        &self,
        schema: &Structural,
        items: &[Value],
        old: Option<Correlated<'_>>,
        place: &Place<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(schema) = schema.items.as_deref() {
            for (idx, item) in items.iter().enumerate() {
                let old = old.and_then(|old| old.index(idx));
                outcome.merge(self.check(schema, item, old, &Place::Index(place, idx)));
            }
        }
        scalar::check_item_count(schema.checks(), items, place, &mut outcome);
        outcome.n_matches += 1;
        outcome
    }

    fn check_object(
        &self,
        schema: &Structural,
        object: &Object,
        old: Option<Correlated<'_>>,
        place: &Place<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let checks = schema.checks();
        let n_members = i64::try_from(object.len()).unwrap_or(i64::MAX);
        if let Some(min) = checks.min_properties.filter(|min| n_members < *min) {
            outcome.add(Fault::bound(place, n_members, format!("should have at least {min} properties")));
        }
        if let Some(max) = checks.max_properties.filter(|max| n_members > *max) {
            outcome.add(Fault::too_many(place, n_members, max));
        }
        let is_root = matches!(place, Place::Root);
        let old_member = |key: &str| old.filter(|_| !(is_root && matches!(key, "kind" | "apiVersion")))?.key(key);
        for (key, member) in object.iter().filter(|(key, _)| schema.property(key).is_none()) {
            match &schema.additional {
                Additional::Schema(schema) => {
                    outcome.merge(self.check(schema, member, old_member(key), &Place::Additional(place, key)));
                }
                Additional::Bool(false) => outcome.add(Fault::forbidden_property(place, key)),
                Additional::Unset | Additional::Bool(true) => {}
            }
        }
        for (name, property) in &schema.properties {
            if let Some(member) = object.get(name) {
                outcome.merge(self.check(property, member, old_member(name), &Place::Property(place, name)));
            }
        }
        for name in checks.required.iter().filter(|name| !object.contains_key(name)) {
            outcome.add(Fault::required(place, name));
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
