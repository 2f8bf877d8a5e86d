//! `ResourceQuota`: what is created is charged to the quotas of its namespace at once.

use super::check::check_request;
use super::evaluator::evaluator_for;
use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::pod::resource_value;
use async_trait::async_trait;
use indexmap::IndexMap;
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Str, Value};
use pintle_auth::Lookup;
use std::sync::Arc;

/// How often a quota that changed meanwhile is read again and charged. Then the write is refused with the conflict.
pub const QUOTA_TRIES_MAX: usize = 4;

/// Quotas just written that are remembered until the lookup shows them. At the limit the oldest is forgotten.
const WRITTEN_MAX: usize = 1000;

/// Writes what is in use.
#[async_trait]
pub trait QuotaWriter: Send + Sync + std::fmt::Debug {
    /// Writes the status of a ResourceQuota that must stand at the version in it. Answers it as written.
    ///
    /// # Errors
    /// Whatever refuses it: 409 when it changed meanwhile.
    async fn update_status(&self, quota: &Value) -> Result<Value>;
}

/// The plugin.
#[derive(Debug)]
pub struct ResourceQuota {
    lookup: Arc<dyn Lookup>,
    writer: Arc<dyn QuotaWriter>,
    env: Env,
    /// One charge at a time for each namespace with quotas.
    turns: Mutex<IndexMap<Str, Arc<tokio::sync::Mutex<()>>>>,
    /// By namespace and name.
    written: Mutex<IndexMap<(Str, Str), Arc<Value>>>,
}

impl ResourceQuota {
    /// The plugin over these quotas.
    pub fn new(lookup: Arc<dyn Lookup>, writer: Arc<dyn QuotaWriter>, env: Env) -> ResourceQuota {
        ResourceQuota { lookup, writer, env, turns: Mutex::default(), written: Mutex::default() }
    }

    /// The quotas of a namespace, each no older than what was last written here.
    async fn quotas(&self, namespace: &str) -> Vec<Arc<Value>> {
        let mut quotas = self.lookup.list("", "resourcequotas", namespace).await;
        let mut written = self.written.lock();
        for quota in &mut quotas {
            let key = (Str::new(namespace), Str::new(quota.name()));
            if let Some(newer) = written.get(&key) {
                if version(newer) > version(quota) && newer.uid() == quota.uid() {
                    *quota = Arc::clone(newer);
                } else {
                    written.shift_remove(&key);
                }
            }
        }
        quotas
    }

    fn remember(&self, namespace: &str, quota: Value) {
        let mut written = self.written.lock();
        if written.len() >= WRITTEN_MAX {
            written.shift_remove_index(0);
        }
        written.insert((Str::new(namespace), Str::new(quota.name())), Arc::new(quota));
    }

    fn turn(&self, namespace: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock();
        // those that nobody waits for need not be kept
        if turns.len() >= WRITTEN_MAX {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(turns.entry(Str::new(namespace)).or_default())
    }

    async fn charge(&self, attributes: &Attributes<'_>, object: &Value) -> Result<()> {
        let Some(evaluator) = evaluator_for(&attributes.resource.group_resource()) else { return Ok(()) };
        if !evaluator.handles(attributes, object) {
            return Ok(());
        }
        let namespace = attributes.namespace;
        let mut quotas = self.quotas(namespace).await;
        if quotas.is_empty() {
            return Ok(());
        }
        let turn = self.turn(namespace);
        let _turn = turn.lock().await;
        quotas = self.quotas(namespace).await;
        for n_tries in 1..=QUOTA_TRIES_MAX {
            let list: Vec<&Value> = quotas.iter().map(|quota| &**quota).collect();
            let charged = check_request(&list, &evaluator, attributes, object, self.env.clock.now())?;
            if attributes.dry_run {
                return Ok(());
            }
            let mut failed: Vec<Str> = Vec::new();
            for (quota, used) in quotas.iter().zip(charged) {
                let Some(used) = used else { continue };
                let mut changed = Value::clone(quota);
                changed.make("status").set("used", resource_value(&used));
                match self.writer.update_status(&changed).await {
                    Ok(written) => self.remember(namespace, written),
                    Err(error) if n_tries == QUOTA_TRIES_MAX => return Err(error),
                    Err(_) => failed.push(Str::new(quota.name())),
                }
            }
            if failed.is_empty() {
                return Ok(());
            }
            // those that were charged are not charged again
            quotas = self.fresh(namespace, &failed).await?;
        }
        Ok(())
    }

    /// The quotas of these names as they are now; one that is gone counts no more.
    async fn fresh(&self, namespace: &str, names: &[Str]) -> Result<Vec<Arc<Value>>> {
        let mut quotas = Vec::with_capacity(names.len());
        for name in names {
            quotas.extend(self.lookup.get_live("", "resourcequotas", namespace, name).await?);
        }
        Ok(quotas)
    }
}

fn version(quota: &Value) -> u64 {
    quota.resource_version().parse().unwrap_or_default()
}

#[async_trait]
impl Plugin for ResourceQuota {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        let is_namespace = attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace";
        attributes.is_write()
            && !attributes.namespace.is_empty()
            && !(attributes.operation == Operation::Create && is_namespace)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        match object {
            Some(object) => self.charge(attributes, object).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
