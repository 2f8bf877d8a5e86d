//! The rules of a schema as they are written: whether they compile, and what they can cost.
//!
//! Follows: apis/apiextensions/validation/{validation,cel_validation}.go of apiextensions-apiserver (v0.35).

use super::internal;
use super::schema::shown_as;
use crate::rules::compile::{Compiled, CompiledRule};
use crate::structural::Structural;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// What one rule may cost by estimate, for all values that it is evaluated for (units of the language).
pub const RULE_ESTIMATE_MAX: u64 = 10_000_000;

/// What all rules of a schema may cost together by estimate (units of the language).
pub const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;

/// So many of the dearest rules are told when all cost too much.
const DEAREST_MAX: usize = 4;

/// How many values of a node there can be; none if there is no bound.
pub(super) type Cardinality = Option<u64>;

/// The bound of what is below a node.
pub(super) fn below(cardinality: Cardinality, schema: &Value) -> Cardinality {
    let given = |field: &str| schema[field].as_i64().map(|max| u64::try_from(max).unwrap_or(0));
    let factor = match schema["type"].str_or_empty() {
        "object" if !schema["additionalProperties"].is_null() => given("maxProperties")?,
        "array" => given("maxItems")?,
        _ => 1,
    };
    Some(cardinality?.saturating_mul(factor))
}

/// What the rules seen so far can cost, and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct RuleCheck {
    pub(super) errors: ErrorList,
    /// Whether single rules may cost what they like: they did before.
    is_estimate_kept: bool,
    total: u64,
    /// The dearest rules, the dearest first.
    dearest: Vec<(String, u64)>,
}

/// The node whose rules are looked at.
#[derive(Clone, Copy)]
pub(super) struct RuleNode<'n> {
    pub(super) path: &'n Path<'n>,
    pub(super) schema: &'n Value,
    /// Whether its values are whole objects.
    pub(super) is_root: bool,
    pub(super) cardinality: Cardinality,
    /// The place around it from which on values have no old ones.
    pub(super) uncorrelatable: Option<&'n str>,
}

impl RuleCheck {
    pub(super) fn new(is_estimate_kept: bool) -> RuleCheck {
        RuleCheck { is_estimate_kept, ..RuleCheck::default() }
    }

    /// Looks at the rules of a node.
    pub(super) fn node(&mut self, node: RuleNode<'_>) {
        let at = node.path.child("x-kubernetes-validations");
        let Ok(structural) = Structural::compile(node.schema) else { return };
        let is_root = node.is_root || structural.is_embedded;
        let Some(compiled) = Compiled::new(&structural, &structural.rules, is_root) else {
            let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable \
                       to convert structural schema to CEL declarations";
            self.errors.push(FieldError::internal(&at, why));
            return;
        };
        let values = node.cardinality.unwrap_or_else(|| compiled.cardinality_max());
        let rules = node.schema["x-kubernetes-validations"].items();
        for (idx, found) in compiled.rules(&structural, &structural.rules).iter().enumerate() {
            self.rule(&at.index(idx), rules.get(idx).unwrap_or(&Value::Null), found, values, node.uncorrelatable);
        }
    }

    fn rule(&mut self, path: &Path<'_>, rule: &Value, found: &CompiledRule, values: u64, uncorrelatable: Option<&str>) {
        let (at_rule, at_message) = (path.child("rule"), path.child("messageExpression"));
        self.observe(&at_rule, "estimated rule cost", found.cost_max.saturating_mul(values));
        if let Some(fault) = &found.fault {
            self.errors.push(shown_as(&at_rule, internal::rule(rule), fault));
        }
        if let Some(fault) = &found.message_fault {
            self.errors.push(shown_as(&at_message, internal::rule(rule), fault));
        } else if found.message.is_some() {
            self.observe(&at_message, "estimated messageExpression cost", found.message_cost_max);
        }
        let is_optional = &rule["optionalOldSelf"];
        if found.uses_old {
            if let Some(within) = uncorrelatable {
                let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
                self.errors.push(FieldError::invalid(&at_rule, &rule["rule"], why));
            }
        } else if !is_optional.is_null() {
            let why = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(&path.child("optionalOldSelf"), is_optional, why));
        }
    }

    fn observe(&mut self, path: &Path<'_>, what: &str, cost: u64) {
        if !self.is_estimate_kept && cost > RULE_ESTIMATE_MAX {
            self.errors.push(FieldError::forbidden(path, too_dear(what, cost, RULE_ESTIMATE_MAX)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_ESTIMATE_MAX / 100 {
            let place = self.dearest.partition_point(|(_, known)| *known >= cost);
            self.dearest.insert(place, (path.to_string(), cost));
            self.dearest.truncate(DEAREST_MAX);
        }
    }

    /// What is wrong with all rules of a schema together; `path` is the schema's.
    pub(super) fn total(&self, path: &Path<'_>) -> ErrorList {
        if self.total <= SCHEMA_ESTIMATE_MAX {
            return ErrorList::new();
        }
        let why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: ErrorList = self
            .dearest
            .iter()
            .map(|(field, _)| FieldError { field: field.as_str().into(), ..FieldError::forbidden(path, why) })
            .collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, too_dear(what, self.total, SCHEMA_ESTIMATE_MAX)));
        errors
    }
}

fn too_dear(what: &str, cost: u64, max: u64) -> String {
    let factor = cost as f64 / max as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
