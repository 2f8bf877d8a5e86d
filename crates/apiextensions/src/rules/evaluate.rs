//! Evaluates rules over an object.

use super::compile::CompiledRule;
use super::{Rules, Versions};
use crate::structural::correlate::{Correlated, old_item};
use crate::structural::{ListType, Rule};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};
use pintle_cel::eval::{Failure, Program, Val};

/// What all rules may cost together for one object (units of the language).
pub const OBJECT_COST_MAX: u64 = 10_000_000;

/// What one evaluation of one rule may cost (units of the language).
pub const RULE_COST_MAX: u64 = 1_000_000;

/// The longest message that an expression may make (bytes). A longer one counts as none.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// What rules find.
#[derive(Debug, Default)]
pub struct Found {
    /// The errors.
    pub errors: ErrorList,
    /// Errors of values that are as they were, which are warnings.
    pub warnings: Vec<String>,
}

/// Where a value's old version is known, for telling what is as it was.
#[derive(Clone, Copy, Default)]
struct Ratchet<'v> {
    current: Option<Correlated<'v>>,
    /// The nearest value around it whose old version is known.
    parent: Option<Correlated<'v>>,
}

impl<'v> Ratchet<'v> {
    fn is_unchanged(&self) -> bool {
        self.current.or(self.parent).is_some_and(|correlated| correlated.is_unchanged())
    }

    fn key(self, key: &str) -> Ratchet<'v> {
        match self.current {
            None => self,
            // both are brought to one version, so these say nothing
            Some(_) if self.parent.is_none() && matches!(key, "apiVersion" | "kind") => Ratchet::default(),
            Some(current) => Ratchet { current: current.key(key), parent: self.current },
        }
    }

    fn index(self, idx: usize) -> Ratchet<'v> {
        match self.current {
            None => self,
            Some(current) => Ratchet { current: current.index(idx), parent: self.current },
        }
    }
}

/// Nothing more is evaluated.
struct Spent;

impl Rules {
    /// Evaluates the rules over a new object, or over one that has an old version. With `correlated`, errors of what did
    /// not change are warnings.
    #[must_use]
    pub fn validate(
        &self,
        path: &Path<'_>,
        new: &Value,
        old: Option<&Value>,
        correlated: Option<Correlated<'_>>,
    ) -> Found {
        let mut run = Run { found: Found::default(), budget: OBJECT_COST_MAX };
        let versions = Versions { new, old };
        let _ = run.node(self, path, versions, Ratchet { current: correlated, parent: None });
        run.found
    }
}

struct Run {
    found: Found,
    budget: u64,
}

impl Run {
    fn node(&mut self, rules: &Rules, path: &Path<'_>, versions: Versions<'_>, at: Ratchet<'_>) -> Result<(), Spent> {
        let old = versions.old.filter(|old| !old.is_null());
        let versions = Versions { old, ..versions };
        if versions.new.is_null() {
            return Ok(());
        }
        if !rules.rules.is_empty() {
            self.rules(rules, path, versions, at)?;
        }
        for branch in &rules.all_of {
            self.node(branch, path, versions, Ratchet { current: None, parent: at.parent })?;
        }
        match versions.new {
            Value::Array(items) => self.items(rules, path, items, versions, at),
            Value::Object(_) => self.members(rules, path, versions, at),
            _ => Ok(()),
        }
    }

    fn items(
        &mut self,
        rules: &Rules,
        path: &Path<'_>,
        items: &[Value],
        versions: Versions<'_>,
        at: Ratchet<'_>,
    ) -> Result<(), Spent> {
        let Some(of) = rules.items.as_deref() else { return Ok(()) };
        let olds = versions.old.and_then(Value::as_array).filter(|_| rules.schema.list_type == ListType::Map);
        for (idx, item) in items.iter().enumerate() {
            let old = olds.and_then(|olds| old_item(&rules.schema, olds, item, idx));
            self.node(of, &path.index(idx), Versions { new: item, old }, at.index(idx))?;
        }
        Ok(())
    }

    fn members(
        &mut self,
        rules: &Rules,
        path: &Path<'_>,
        versions: Versions<'_>,
        at: Ratchet<'_>,
    ) -> Result<(), Spent> {
        let old = versions.old.and_then(Value::as_object).filter(|_| rules.is_correlatable());
        for (key, member) in versions.new.entries() {
            let versions = Versions { new: member, old: old.and_then(|old| old.get(key)) };
            if let Some(of) = &rules.additional {
                self.node(of, &path.key(key), versions, at.key(key))?;
            }
            if let Some(of) = rules.property(key) {
                self.node(of, &path.child(key), versions, at.key(key))?;
            }
        }
        Ok(())
    }

    /// The rules of one value.
    fn rules<'v>(
        &mut self,
        rules: &'v Rules,
        path: &Path<'_>,
        versions: Versions<'v>,
        at: Ratchet<'_>,
    ) -> Result<(), Spent> {
        let ty = rules.schema.ty.as_str();
        if self.budget == 0 {
            return self.spent(path, ty, OUT_OF_BUDGET);
        }
        let decl = &*rules.compiled.decl;
        let is_old_used = rules.rules.iter().any(|(_, compiled)| compiled.uses_old);
        let new = Val::declared(versions.new, decl);
        let old = versions.old.filter(|_| is_old_used).map(|old| Val::declared(old, decl)).transpose();
        let (plain, optional) = match (new, old) {
            (Ok(new), Ok(old)) => {
                let held = old.clone().map_or(Val::NONE, Val::some);
                let plain: Vec<Val<'_>> = std::iter::once(new.clone()).chain(old).collect();
                (plain, is_old_used.then(|| vec![new, held]))
            }
            (Err(why), _) | (_, Err(why)) => {
                for (rule, _) in &rules.rules {
                    let text = format!("{why} evaluating rule: {}", told(rule));
                    self.found.errors.push(FieldError::invalid(path, ty, text));
                }
                return Ok(());
            }
        };
        for (rule, compiled) in &rules.rules {
            let is_optional = rule.optional_old_self == Some(true);
            if compiled.uses_old && versions.old.is_none() && !is_optional {
                continue;
            }
            let variables = optional.as_ref().filter(|_| is_optional).unwrap_or(&plain);
            let of = Evaluated { rule, compiled, ty, value: versions.new };
            if !self.rule(&of, path, variables)? {
                self.refused(&of, path, &plain, at)?;
            }
        }
        Ok(())
    }

    /// Whether a rule holds; errors count as if it did, they are told at once.
    fn rule<'v>(&mut self, of: &Evaluated<'v>, path: &Path<'_>, variables: &[Val<'v>]) -> Result<bool, Spent> {
        let Evaluated { rule, compiled, ty, .. } = *of;
        let program = match (&compiled.program, &compiled.fault) {
            (_, Some(fault)) => {
                self.found.errors.push(FieldError::invalid(path, ty, format!("rule compile error: {fault}")));
                return Ok(true);
            }
            (None, None) => return Ok(true),
            (Some(program), None) => program,
        };
        let outcome = program.run(variables, RULE_COST_MAX);
        if outcome.cost > self.budget {
            self.spent(path, ty, OUT_OF_BUDGET)?;
        }
        self.budget -= outcome.cost;
        let why = match outcome.value {
            Ok(value) => return Ok(value.as_bool() == Some(true)),
            Err(why) => why,
        };
        let text = why.to_string();
        let told = told(rule);
        if why == Failure::CostExceeded {
            let text = format!(
                "'{text}': no further validation rules will be run due to call cost exceeds limit for rule: {told}"
            );
            self.spent(path, ty, &text)?;
        }
        let text = if text.starts_with("no such overload") {
            format!(
                "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {told}"
            )
        } else {
            format!("{text} evaluating rule: {told}")
        };
        self.found.errors.push(FieldError::invalid(path, ty, text));
        Ok(true)
    }

    fn spent(&mut self, path: &Path<'_>, ty: &str, text: &str) -> Result<(), Spent> {
        self.found.errors.push(FieldError::invalid(path, ty, text));
        Err(Spent)
    }

    /// Tells that a rule does not hold.
    fn refused<'v>(
        &mut self,
        of: &Evaluated<'v>,
        path: &Path<'_>,
        variables: &[Val<'v>],
        at: Ratchet<'_>,
    ) -> Result<(), Spent> {
        let Evaluated { rule, compiled, ty, value } = *of;
        let inner;
        let path = if compiled.field_path.is_empty() {
            path
        } else {
            inner = path.child(&compiled.field_path);
            &inner
        };
        let is_warning = !compiled.uses_old && at.is_unchanged();
        let mut detail = None;
        if let Some(program) = &compiled.message {
            match self.message(program, &rule.message_expression, variables) {
                Ok(made) => detail = made,
                Err(why) => {
                    self.add(FieldError::invalid(path, ty, why), is_warning);
                    return Err(Spent);
                }
            }
        }
        let detail = detail.unwrap_or_else(|| match rule.message.as_str() {
            "" => format!("failed rule: {}", told(rule)),
            message => message.trim().to_owned(),
        });
        let is_omitted = matches!(of.ty, "object" | "array");
        let error = match rule.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(path, detail),
            "FieldValueRequired" => FieldError::required(path, detail),
            "FieldValueDuplicate" if is_omitted => FieldError { shown: None, ..FieldError::duplicate(path, value) },
            "FieldValueDuplicate" => FieldError::duplicate(path, value),
            _ if is_omitted => FieldError::invalid_omit_value(path, detail),
            _ => FieldError::invalid(path, value, detail),
        };
        self.add(error, is_warning);
        Ok(())
    }

    fn add(&mut self, error: FieldError, is_warning: bool) {
        if is_warning {
            self.found.warnings.push(error.to_string());
        } else {
            self.found.errors.push(error);
        }
    }

    /// The message that an expression makes; none where it makes none that can be told.
    fn message<'v>(
        &mut self,
        program: &'v Program,
        text: &str,
        variables: &[Val<'v>],
    ) -> Result<Option<String>, String> {
        let outcome = program.run(variables, RULE_COST_MAX);
        if outcome.cost > self.budget {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no further validation \
                        rules will be run"
                    .to_owned(),
            );
        }
        if matches!(outcome.value, Err(Failure::CostExceeded)) {
            let text = go_quote(text);
            return Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {text}"
            ));
        }
        self.budget -= outcome.cost;
        let Ok(value) = outcome.value else { return Ok(None) };
        let message = value.as_str().unwrap_or_default().trim();
        let is_fine = !message.is_empty() && message.len() <= MESSAGE_BYTES_MAX && !message.contains('\n');
        Ok(is_fine.then(|| message.to_owned()))
    }
}

/// A rule and what it is evaluated over.
struct Evaluated<'r> {
    rule: &'r Rule,
    compiled: &'r CompiledRule,
    /// The type of the value, in the words of schemas.
    ty: &'r str,
    value: &'r Value,
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// How a rule is called in errors.
fn told(rule: &Rule) -> &str {
    let text = if rule.message.is_empty() { &rule.rule } else { &rule.message };
    text.trim()
}
