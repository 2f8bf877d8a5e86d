//! What a policy says to one operation.
//!
//! Follows: apiserver/pkg/admission/plugin/policy/validating/validator.go (v0.35).

use super::source::{Policy, Validation};
use crate::expressions::{CONDITIONS_COST_MAX, Evaluated, Input, Outcome, POLICY_COST_MAX, Part, do_all_hold};
use pintle_apimachinery::Str;

/// The longest text that a message expression may come to (bytes). A longer one counts as none.
pub const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// Something against the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub message: String,
    /// `None` for `Invalid`.
    pub reason: Option<Str>,
}

/// What speaks against the operation.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Validations that fail: the binding says what comes of them.
    pub validations: Vec<Decision>,
    /// Audit annotations that fail: they refuse the operation.
    pub annotations: Vec<Decision>,
}

/// Evaluates the policy.
pub(super) fn decide(policy: &Policy, input: Input<'_>) -> Decisions {
    let failed = |message: String| Decisions { validations: on_error(policy, message), ..Decisions::default() };
    if policy.has_conditions {
        match do_all_hold(conditions(policy, input), policy.is_failure_ignored) {
            Ok(true) => {}
            Ok(false) => return Decisions::default(),
            Err(why) => return failed(why),
        }
    }
    let Evaluated { outcomes, budget } = match policy.program.evaluate(Part::Validations, input, POLICY_COST_MAX) {
        Ok(evaluated) => evaluated,
        Err(why) => return failed(why),
    };
    let messages = policy.program.evaluate(Part::Messages, input, budget);
    let mut validations = Vec::new();
    for (idx, (validation, outcome)) in policy.validations.iter().zip(outcomes).enumerate() {
        match (outcome, &messages) {
            (Some(Err(why)), _) => validations.extend(on_error(policy, why)),
            (_, Err(why)) => validations.extend(on_error(policy, format!("failed messageExpression: {why}"))),
            (Some(Ok(Outcome::Bool(true))), Ok(_)) => {}
            (_, Ok(messages)) => {
                let message = messages.outcomes.get(idx).cloned().flatten();
                let message = told(message, validation);
                validations.push(Decision { message, reason: validation.reason.clone() });
            }
        }
    }
    match policy.program.evaluate(Part::Annotations, input, POLICY_COST_MAX) {
        Ok(evaluated) => Decisions { validations, annotations: annotations(policy, evaluated) },
        Err(why) => failed(why),
    }
}

/// The decision when something cannot be evaluated: none when failures are ignored.
fn on_error(policy: &Policy, message: String) -> Vec<Decision> {
    if policy.is_failure_ignored { Vec::new() } else { vec![Decision { message, reason: None }] }
}

fn conditions(policy: &Policy, input: Input<'_>) -> Result<Vec<Result<bool, String>>, String> {
    // conditions are of the object and the parameters, the namespace is not among what they know
    let input = Input { namespace: None, ..input };
    let evaluated = policy.program.evaluate(Part::Conditions, input, CONDITIONS_COST_MAX)?;
    let holds = |outcome: Result<Outcome, String>| outcome.map(|outcome| outcome != Outcome::Bool(false));
    Ok(evaluated.outcomes.into_iter().flatten().map(holds).collect())
}

/// The message of a validation that fails: what its expression comes to, else its own, else the expression.
fn told(computed: Option<Result<Outcome, String>>, validation: &Validation) -> String {
    if let Some(Ok(Outcome::Text(text))) = computed {
        let text = text.trim();
        if !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n') {
            return text.to_owned();
        }
    }
    if validation.message.is_empty() {
        format!("failed expression: {}", validation.expression)
    } else {
        validation.message.clone()
    }
}

/// The audit annotations that fail.
fn annotations(policy: &Policy, evaluated: Evaluated) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for (expression, outcome) in policy.annotations.iter().zip(evaluated.outcomes.into_iter().flatten()) {
        let wrong_type = |kind: &str| {
            let message = format!(
                "valueExpression '{expression}' resulted in unsupported return type: {kind}. Return type must be either string or null."
            );
            vec![Decision { message, reason: None }]
        };
        decisions.extend(match outcome {
            Ok(Outcome::Text(_) | Outcome::Null) => Vec::new(),
            Ok(Outcome::Bool(_)) => wrong_type("bool"),
            Ok(Outcome::Other(kind)) => wrong_type(&kind),
            Err(why) => on_error(policy, why),
        });
    }
    decisions
}
