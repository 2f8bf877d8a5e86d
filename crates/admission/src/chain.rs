//! The chain: plugins by name, in upstream's order.
//!
//! Follows: pkg/kubeapiserver/options/plugins.go (v1.35).

use crate::attributes::{Admission, Attributes};
use crate::webhook::Memory;
use async_trait::async_trait;
use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Result;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One rule of admission. Both calls do nothing unless a plugin says otherwise.
#[async_trait]
pub trait Plugin: Send + Sync + std::fmt::Debug {
    /// Whether the plugin has anything to do with the operation. Called for every operation: quick.
    fn wants(&self, attributes: &Attributes<'_>) -> bool;

    /// May change the object.
    ///
    /// # Errors
    /// The refusal.
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let _ = (attributes, object);
        Ok(())
    }

    /// As [`Plugin::mutate`], for plugins that have to know about the rounds of the operation.
    ///
    /// # Errors
    /// The refusal.
    async fn mutate_in_round(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        rounds: &mut Rounds,
    ) -> Result<()> {
        let _ = rounds;
        self.mutate(attributes, object).await
    }

    /// Sees the object as it will be written (`None` for deletes and connects).
    ///
    /// # Errors
    /// The refusal.
    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let _ = (attributes, object);
        Ok(())
    }
}

/// The rounds in which one operation goes through the plugins: a second one when a webhook changed the object.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Whether this is the second round.
    pub is_second: bool,
    /// Whether there has to be one.
    pub is_second_needed: bool,
    /// What webhooks remember.
    pub(crate) webhooks: Memory,
}

/// Every plugin that upstream knows, in the order in which they are asked, with whether it is on by default.
pub const ORDER: [(&str, bool); 37] = [
    ("AlwaysAdmit", false),
    ("NamespaceAutoProvision", false),
    ("NamespaceLifecycle", true),
    ("NamespaceExists", false),
    ("LimitPodHardAntiAffinityTopology", false),
    ("LimitRanger", true),
    ("ServiceAccount", true),
    ("NodeRestriction", false),
    ("TaintNodesByCondition", true),
    ("AlwaysPullImages", false),
    ("ImagePolicyWebhook", false),
    ("PodSecurity", true),
    ("PodNodeSelector", false),
    ("Priority", true),
    ("DefaultTolerationSeconds", true),
    ("PodTolerationRestriction", false),
    ("EventRateLimit", false),
    ("ExtendedResourceToleration", false),
    ("DefaultStorageClass", true),
    ("StorageObjectInUseProtection", true),
    ("OwnerReferencesPermissionEnforcement", false),
    ("PersistentVolumeClaimResize", true),
    ("RuntimeClass", true),
    ("CertificateApproval", true),
    ("CertificateSigning", true),
    ("ClusterTrustBundleAttest", true),
    ("CertificateSubjectRestriction", true),
    ("DefaultIngressClass", true),
    ("DenyServiceExternalIPs", false),
    ("PodTopologyLabels", true),
    ("NodeDeclaredFeatureValidator", true),
    ("MutatingAdmissionPolicy", true),
    ("MutatingAdmissionWebhook", true),
    ("ValidatingAdmissionPolicy", true),
    ("ValidatingAdmissionWebhook", true),
    ("ResourceQuota", true),
    ("AlwaysDeny", false),
];

/// Plugins that are on by default upstream and do nothing there unless an alpha feature is switched on.
const IDLE: [&str; 3] = ["ClusterTrustBundleAttest", "NodeDeclaredFeatureValidator", "MutatingAdmissionPolicy"];

/// The names of the plugins that run, given `--enable-admission-plugins` and `--disable-admission-plugins`.
///
/// # Errors
/// A text for the user when a name is unknown, or in both lists.
pub fn enabled(enable: &[String], disable: &[String]) -> Result<BTreeSet<&'static str>, String> {
    for (flag, names) in [("enable-admission-plugins", enable), ("disable-admission-plugins", disable)] {
        if let Some(unknown) = names.iter().find(|name| !ORDER.iter().any(|(known, _)| known == name)) {
            return Err(format!("{flag} plugin {} is unknown", go_quote(unknown)));
        }
    }
    if let Some(both) = enable.iter().find(|name| disable.contains(name)) {
        return Err(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
    }
    let is_on = |name: &str, is_default: bool| {
        let is_named = |names: &[String]| names.iter().any(|n| n == name);
        is_named(enable) || (is_default && !is_named(disable))
    };
    Ok(ORDER.iter().filter(|(name, is_default)| is_on(name, *is_default)).map(|(name, _)| *name).collect())
}

/// The plugins of a server.
#[derive(Debug, Default)]
pub struct Chain {
    plugins: Vec<(&'static str, Arc<dyn Plugin>)>,
}

impl Chain {
    /// The chain of these plugins, put into upstream's order.
    ///
    /// # Errors
    /// A text for the user when one of `enabled` is not among `available`.
    pub fn new(
        enabled: &BTreeSet<&'static str>,
        available: impl IntoIterator<Item = (&'static str, Arc<dyn Plugin>)>,
    ) -> Result<Chain, String> {
        let mut available: Vec<(&'static str, Arc<dyn Plugin>)> = available.into_iter().collect();
        let mut plugins = Vec::new();
        for (name, _) in ORDER.iter().filter(|(name, _)| enabled.contains(name)) {
            match available.iter().position(|(own, _)| own == name) {
                Some(idx) => plugins.push(available.swap_remove(idx)),
                None if IDLE.contains(name) => {}
                None => return Err(format!("admission plugin {} is not available here", go_quote(name))),
            }
        }
        Ok(Chain { plugins })
    }

    /// The chain with a rule of the server behind it that no flag switches off.
    #[must_use]
    pub fn followed_by(mut self, name: &'static str, plugin: Arc<dyn Plugin>) -> Chain {
        self.plugins.push((name, plugin));
        self
    }

    /// A chain of one.
    #[cfg(test)]
    pub(crate) fn of(plugin: Arc<dyn Plugin>) -> Chain {
        Chain { plugins: vec![("Test", plugin)] }
    }

    /// The names of the plugins, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().map(|(name, _)| *name)
    }
}

#[async_trait]
impl Admission for Chain {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<()> {
        let mut rounds = Rounds::default();
        loop {
            for (_, plugin) in self.plugins.iter().filter(|(_, plugin)| plugin.wants(attributes)) {
                plugin.mutate_in_round(attributes, object, &mut rounds).await?;
            }
            if rounds.is_second || !rounds.is_second_needed {
                return Ok(());
            }
            rounds.is_second = true;
        }
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        for (_, plugin) in self.plugins.iter().filter(|(_, plugin)| plugin.wants(attributes)) {
            plugin.validate(attributes, object).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let on = enabled(&list(&["AlwaysPullImages"]), &list(&["ServiceAccount"])).unwrap();
        assert!(on.contains("AlwaysPullImages") && !on.contains("ServiceAccount") && on.contains("Priority"));
        assert_eq!(enabled(&list(&["Odd"]), &[]).unwrap_err(), "enable-admission-plugins plugin \"Odd\" is unknown");
        assert!(enabled(&list(&["Priority"]), &list(&["Priority"])).is_err());
        assert!(Chain::new(&on, []).unwrap_err().contains("is not available here"));
    }
}
