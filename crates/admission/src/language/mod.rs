//! CEL as admission speaks it: match conditions of webhooks, and the expressions of policies with their variables.
//!
//! Follows: apiserver/pkg/admission/plugin/cel (v0.35).

mod authorizer;
#[cfg(test)]
mod tests;
mod variables;

use crate::expressions::{CONDITIONS_COST_MAX, Conditions, Evaluated, Expressions, Input, Outcome, Part, Program};
use crate::webhook::request_of;
use authorizer::Asker;
use compact_str::CompactString;
use pintle_apimachinery::Value;
use pintle_auth::authz::Authorizer;
use pintle_cel::eval::{self, Val, plan};
use pintle_cel::types::Type;
use pintle_kinds::common::expression::{Wanted, compile, request_env, variable_type};
use std::sync::Arc;
use variables::{Variable, Variables};

/// What one evaluation of one expression may cost (units of the language).
pub const EXPRESSION_COST_MAX: u64 = 1_000_000;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The language, with the authorizer that expressions may ask.
#[derive(Debug)]
pub struct Cel {
    authorizer: Arc<dyn Authorizer>,
}

impl Cel {
    /// The language; `authorizer` answers what expressions ask about permissions.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Cel {
        Cel { authorizer }
    }
}

impl Expressions for Cel {
    fn conditions(&self, expressions: &[&str]) -> Arc<dyn Conditions> {
        let scope = Scope { has_params: false, has_authorizer: true, variables: None };
        let expressions = expressions.iter().map(|text| Some(Compiled::new(text, Wanted::Bool, scope))).collect();
        Arc::new(WebhookConditions(Policy {
            authorizer: self.authorizer.clone(),
            has_params: false,
            variables: None,
            conditions: expressions,
            validations: Vec::new(),
            messages: Vec::new(),
            annotations: Vec::new(),
        }))
    }

    fn policy(&self, spec: &Value) -> Arc<dyn Program> {
        Arc::new(Policy::new(self.authorizer.clone(), spec))
    }
}

/// What expressions may speak of beside the operation.
#[derive(Clone, Copy)]
struct Scope<'s> {
    has_params: bool,
    has_authorizer: bool,
    variables: Option<&'s [(CompactString, Type)]>,
}

/// An expression, ready to run or not.
#[derive(Debug)]
struct Compiled {
    text: String,
    /// Or what is wrong with it.
    program: Result<eval::Program, String>,
    /// Its type; `dyn` if something is wrong with it.
    of: Type,
    /// Whether it looks at the request.
    uses_request: bool,
}

impl Compiled {
    fn new(text: &str, wanted: Wanted, scope: Scope<'_>) -> Compiled {
        let env = request_env(scope.has_params, scope.has_authorizer, scope.variables);
        let (program, of, uses_request) = match compile(&env, text, wanted) {
            Ok(checked) => {
                let program = plan(&checked).map_err(|why| format!("program instantiation failed: {why}"));
                (program, variable_type(checked.output()), checked.uses("request"))
            }
            Err(why) => (Err(why), Type::Dyn, false),
        };
        Compiled { text: text.to_owned(), program, of, uses_request }
    }
}

/// The expressions of a policy.
#[derive(Debug)]
struct Policy {
    authorizer: Arc<dyn Authorizer>,
    has_params: bool,
    /// None if expressions know no `variables`.
    variables: Option<Vec<Variable>>,
    conditions: Vec<Option<Compiled>>,
    validations: Vec<Option<Compiled>>,
    messages: Vec<Option<Compiled>>,
    annotations: Vec<Option<Compiled>>,
}

impl Policy {
    fn new(authorizer: Arc<dyn Authorizer>, spec: &Value) -> Policy {
        let has_params = !spec["paramKind"].is_null();
        let mut known: Vec<(CompactString, Type)> = Vec::new();
        let mut variables = Vec::new();
        for variable in spec["variables"].items() {
            let name = CompactString::from(variable["name"].str_or_empty());
            let scope = Scope { has_params, has_authorizer: true, variables: Some(&known) };
            let compiled = Compiled::new(variable["expression"].str_or_empty(), Wanted::Any, scope);
            known.push((name.clone(), compiled.of.clone()));
            variables.push(Variable { name, compiled });
        }
        let scope = Scope { has_params, has_authorizer: true, variables: Some(&known) };
        let all = |list: &str, member: &str, wanted: Wanted, scope: Scope<'_>| {
            let text_of = |item: &Value| match item[member].str_or_empty() {
                text if wanted == Wanted::TextOrNull => text.trim().to_owned(),
                text => text.to_owned(),
            };
            let compiled = |item: &Value| Some(text_of(item)).filter(|text| !text.is_empty());
            let items = spec[list].items().iter();
            items.map(|item| compiled(item).map(|text| Compiled::new(&text, wanted, scope))).collect()
        };
        let silent = Scope { has_authorizer: false, ..scope };
        Policy {
            authorizer,
            has_params,
            conditions: all("matchConditions", "expression", Wanted::Bool, scope),
            validations: all("validations", "expression", Wanted::Bool, scope),
            messages: all("validations", "messageExpression", Wanted::Text, silent),
            annotations: all("auditAnnotations", "valueExpression", Wanted::TextOrNull, scope),
            variables: Some(variables),
        }
    }

    fn part(&self, part: Part) -> &[Option<Compiled>] {
        match part {
            Part::Conditions => &self.conditions,
            Part::Validations => &self.validations,
            Part::Messages => &self.messages,
            Part::Annotations => &self.annotations,
        }
    }

    /// Whether one of the expressions that may run looks at the request.
    fn uses_request(&self, part: &[Option<Compiled>]) -> bool {
        let variables = self.variables.iter().flatten().map(|variable| &variable.compiled);
        part.iter().flatten().chain(variables).any(|compiled| compiled.uses_request)
    }
}

impl Program for Policy {
    fn evaluate(&self, part: Part, input: Input<'_>, budget: u64) -> Result<Evaluated, String> {
        let expressions = self.part(part);
        if expressions.iter().all(Option::is_none) {
            return Ok(Evaluated { outcomes: expressions.iter().map(|_| None).collect(), budget });
        }
        let request = if self.uses_request(expressions) {
            request_of(input.attributes, input.resource, input.kind)
        } else {
            Value::Null
        };
        let asker = Asker { authorizer: &*self.authorizer, attributes: input.attributes };
        let mut plain = vec![
            input.object.map_or(Val::Null, Val::json),
            input.old.map_or(Val::Null, Val::json),
            input.namespace.map_or(Val::Null, Val::json),
            Val::json(&request),
        ];
        if self.has_params {
            plain.push(input.params.map_or(Val::Null, Val::json));
        }
        let mut full = plain.clone();
        full.extend([asker.value(), asker.resource()]);
        let variables = Variables::new(self.variables.as_deref().unwrap_or_default(), full.clone());
        let mut given = if part == Part::Messages { plain } else { full };
        if self.variables.is_some() {
            given.push(variables.value());
        }
        let mut budget = budget;
        let mut outcomes = Vec::with_capacity(expressions.len());
        for expression in expressions {
            let Some(expression) = expression else {
                outcomes.push(None);
                continue;
            };
            outcomes.push(Some(run(expression, &given, &variables, &mut budget)?));
        }
        Ok(Evaluated { outcomes, budget })
    }
}

/// Runs one expression; the outer error says that nothing more may run.
fn run<'v>(
    expression: &'v Compiled,
    given: &[Val<'v>],
    variables: &Variables<'v>,
    budget: &mut u64,
) -> Result<Result<Outcome, String>, String> {
    let program = match &expression.program {
        Ok(program) => program,
        Err(why) => return Ok(Err(format!("compilation error: {why}"))),
    };
    let evaluated = program.run(given, EXPRESSION_COST_MAX);
    for cost in [variables.take_cost(), evaluated.cost] {
        *budget = budget.checked_sub(cost).ok_or(OUT_OF_BUDGET)?;
    }
    Ok(match evaluated.value {
        Ok(value) => Ok(outcome(&value)),
        Err(why) => Err(format!("expression '{}' resulted in error: {why}", expression.text)),
    })
}

fn outcome(value: &Val<'_>) -> Outcome {
    match value {
        Val::Bool(value) => Outcome::Bool(*value),
        Val::String(text) => Outcome::Text(text.as_str().to_owned()),
        Val::Null => Outcome::Null,
        other => Outcome::Other(other.type_name().to_owned()),
    }
}

/// Match conditions of a webhook.
#[derive(Debug)]
struct WebhookConditions(Policy);

impl Conditions for WebhookConditions {
    fn evaluate(&self, input: Input<'_>) -> Result<Vec<Result<bool, String>>, String> {
        let evaluated = self.0.evaluate(Part::Conditions, input, CONDITIONS_COST_MAX)?;
        let holds = |outcome: Result<Outcome, String>| outcome.map(|outcome| outcome == Outcome::Bool(true));
        Ok(evaluated.outcomes.into_iter().flatten().map(holds).collect())
    }
}
