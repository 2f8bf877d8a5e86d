//! Whether there is room for an object under the quotas of its namespace.

use super::evaluator::Evaluator;
use super::lists::{exceeding, mask, minus, printed, printed_names};
use crate::attributes::{Attributes, Operation};
use crate::errors::forbidden;
use crate::pod::{ResourceList, add, resource_list};
use jiff::Timestamp;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Str, Value};

/// A quota as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaStatus {
    /// How much there may be.
    pub hard: ResourceList,
    /// How much there is.
    pub used: ResourceList,
}

impl QuotaStatus {
    /// The status of a ResourceQuota.
    pub fn of(quota: &Value) -> QuotaStatus {
        let status = &quota["status"];
        QuotaStatus { hard: resource_list(&status["hard"]), used: resource_list(&status["used"]) }
    }
}

/// What each of the quotas will have in use once the object is written: `None` for those that do not change.
///
/// # Errors
/// 403 when a quota would be exceeded, is not counted yet, or the object lacks what it is counted by.
pub fn check_request(
    quotas: &[&Value],
    evaluator: &Evaluator,
    attributes: &Attributes<'_>,
    object: &Value,
    now: Timestamp,
) -> Result<Vec<Option<ResourceList>>> {
    let mut concerned: Vec<Option<QuotaStatus>> = Vec::with_capacity(quotas.len());
    for quota in quotas {
        let status = QuotaStatus::of(quota);
        if !evaluator.matches(&quota["spec"], &status.hard, object) {
            concerned.push(None);
            continue;
        }
        let names: Vec<Str> = status.hard.keys().filter(|name| evaluator.measures(name)).cloned().collect();
        if let Some(lack) = evaluator.lacks(&names, object) {
            let why = format!("failed quota: {}: {lack}", quota.name());
            return Err(forbidden(attributes, Some(object), why));
        }
        if names.iter().any(|name| !status.used.contains_key(name)) {
            let why = format!("status unknown for quota: {}, resources: {}", quota.name(), printed_names(&names));
            return Err(forbidden(attributes, Some(object), why));
        }
        concerned.push(Some(status));
    }
    let usage = evaluator.usage(object, now);
    let negative: Vec<Str> = usage.iter().filter(|(_, amount)| amount.sign() < 0).map(|(n, _)| n.clone()).collect();
    if !negative.is_empty() {
        let why = format!("quota usage is negative for resource(s): {}", printed_names(&negative));
        return Err(forbidden(attributes, Some(object), why));
    }
    let charge = Charge { evaluator, attributes, usage, now };
    let mut result = Vec::with_capacity(quotas.len());
    for (quota, status) in quotas.iter().zip(concerned) {
        result.push(match status {
            Some(status) => charge.against(quota, &status, object)?,
            None => None,
        });
    }
    Ok(result)
}

struct Charge<'a> {
    evaluator: &'a Evaluator,
    attributes: &'a Attributes<'a>,
    /// What the object uses.
    usage: ResourceList,
    now: Timestamp,
}

impl Charge<'_> {
    /// What is in use by the object and was not before.
    fn delta(&self, quota: &Value, hard: &ResourceList) -> ResourceList {
        let old = self.attributes.old.filter(|_| self.attributes.operation == Operation::Update);
        match old {
            Some(old) if !old.resource_version().is_empty() && self.evaluator.matches(&quota["spec"], hard, old) => {
                minus(&self.usage, &self.evaluator.usage(old, self.now))
            }
            Some(_) | None => self.usage.clone(),
        }
    }

    fn against(&self, quota: &Value, status: &QuotaStatus, object: &Value) -> Result<Option<ResourceList>> {
        let mut requested = mask(&self.delta(quota, &status.hard), |name| status.hard.contains_key(name));
        requested.retain(|_, amount| !amount.is_zero());
        if requested.is_empty() {
            return Ok(None);
        }
        let mut used = status.used.clone();
        add(&mut used, &requested);
        let touched = mask(&used, |name| requested.contains_key(name));
        let exceeded = exceeding(&touched, &status.hard);
        if exceeded.is_empty() || self.attributes.subresource == "status" {
            return Ok(Some(used));
        }
        let only = |list: &ResourceList| printed(&mask(list, |name| exceeded.iter().any(|e| e == name)));
        let why = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.name(),
            only(&requested),
            only(&status.used),
            only(&status.hard)
        );
        Err(forbidden(self.attributes, Some(object), why))
    }
}
