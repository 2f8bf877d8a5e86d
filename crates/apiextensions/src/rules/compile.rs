//! Rules made ready to run, and what running them can cost.
//!
//! Follows: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go (v0.35).

use super::decl::decl;
use crate::structural::{Rule, Structural, fieldpath};
use pintle_cel::cost::estimate;
use pintle_cel::decl::{Decl, REQUEST_SIZE_MAX};
use pintle_cel::env::Env;
use pintle_cel::eval::{Program, plan};
use pintle_cel::types::Type;
use std::sync::Arc;

/// The name of the value in expressions.
pub const SELF: &str = "self";
/// The name of the value before an update.
pub const OLD_SELF: &str = "oldSelf";

/// The name that the type of a rule's value has in fault texts, where a schema gives it none. Upstream makes a new one
/// each time, so that nobody relies on it.
const TYPE_NAME: &str = "selfType1";

/// What the rules of one schema node share.
#[derive(Debug)]
pub struct Compiled {
    /// The type of the value.
    pub decl: Arc<Decl>,
    env: Env,
    /// For rules whose `oldSelf` is optional.
    optional: Env,
}

/// A rule, compiled.
#[derive(Debug, Default)]
pub struct CompiledRule {
    /// What runs; none if the rule is empty or wrong.
    pub program: Option<Program>,
    /// What is wrong with the rule.
    pub fault: Option<String>,
    /// Whether it compares with the value before an update.
    pub uses_old: bool,
    /// What one run costs at most.
    pub cost_max: u64,
    /// What makes the message.
    pub message: Option<Program>,
    /// What is wrong with that.
    pub message_fault: Option<String>,
    /// What making the message costs at most.
    pub message_cost_max: u64,
    /// Where the error is, relative to the value; empty for the value itself.
    pub field_path: String,
}

impl Compiled {
    /// Prepares for rules of a schema; none if expressions cannot see its values.
    #[must_use]
    pub fn new(schema: &Structural, rules: &[Rule], is_root: bool) -> Option<Compiled> {
        let decl = Arc::new(decl(schema, is_root)?);
        let of = decl.typed(TYPE_NAME);
        let env = Env::new().with(SELF, of.clone()).with(OLD_SELF, of.clone());
        let is_optional = rules.iter().any(|rule| rule.optional_old_self == Some(true));
        let optional =
            if is_optional { Env::new().with(SELF, of.clone()).with(OLD_SELF, Type::optional(of)) } else { Env::new() };
        Some(Compiled { decl, env, optional })
    }

    /// Compiles the rules.
    #[must_use]
    pub fn rules(&self, schema: &Structural, rules: &[Rule]) -> Vec<CompiledRule> {
        rules.iter().map(|rule| self.rule(schema, rule)).collect()
    }

    /// How many values of the schema an object can hold at most, by their size alone.
    #[must_use]
    pub fn cardinality_max(&self) -> u64 {
        REQUEST_SIZE_MAX / (self.decl.size_min + 1)
    }

    fn rule(&self, schema: &Structural, rule: &Rule) -> CompiledRule {
        let mut compiled = CompiledRule::default();
        if rule.rule.trim().is_empty() {
            return compiled;
        }
        let env = if rule.optional_old_self == Some(true) { &self.optional } else { &self.env };
        match self.expression(env, &rule.rule, &Type::Bool) {
            Ok(Expression { program, cost_max, uses_old }) => {
                compiled.program = Some(program);
                compiled.cost_max = cost_max;
                compiled.uses_old = uses_old;
            }
            Err(fault) => {
                compiled.fault = Some(fault.told("", "cel expression must evaluate to a bool", "program"));
                return compiled;
            }
        }
        if !rule.message_expression.is_empty() {
            match self.expression(env, &rule.message_expression, &Type::String) {
                Ok(Expression { program, cost_max, .. }) => {
                    compiled.message = Some(program);
                    compiled.message_cost_max = cost_max;
                }
                Err(fault) => {
                    let wrong_type = "messageExpression must evaluate to a string";
                    compiled.message_fault = Some(fault.told("messageExpression ", wrong_type, "messageExpression"));
                    return compiled;
                }
            }
        }
        if !rule.field_path.is_empty()
            && let Ok(found) = fieldpath::find(&rule.field_path, schema, true)
        {
            compiled.field_path = found.path;
        }
        compiled
    }

    fn expression(&self, env: &Env, text: &str, wanted: &Type) -> Result<Expression, Fault> {
        let checked = env.compile(text).map_err(|faults| Fault::Text(faults.to_string()))?;
        if checked.output() != wanted {
            return Err(Fault::WrongType);
        }
        let uses_old = checked.uses(OLD_SELF);
        let program = plan(&checked).map_err(Fault::Unplanned)?;
        let sizes = |path: &[compact_str::CompactString]| {
            let (_, steps) = path.split_first()?;
            steps.iter().try_fold(self.decl.as_ref(), |decl, step| decl.part(step)).map(|decl| decl.elements_max)
        };
        let cost_max = estimate(&checked, &sizes).max;
        Ok(Expression { program, cost_max, uses_old })
    }
}

struct Expression {
    program: Program,
    cost_max: u64,
    uses_old: bool,
}

enum Fault {
    Text(String),
    WrongType,
    Unplanned(String),
}

impl Fault {
    fn told(self, prefix: &str, wrong_type: &str, what: &str) -> String {
        match self {
            Fault::Text(text) => format!("{prefix}compilation failed: {text}"),
            Fault::WrongType => wrong_type.to_owned(),
            Fault::Unplanned(why) => format!("{what} instantiation failed: {why}"),
        }
    }
}
