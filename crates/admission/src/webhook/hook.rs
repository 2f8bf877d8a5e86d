//! A webhook, read from its configuration once.

use crate::compiled::Compiled;
use crate::expressions::{Conditions, Expressions};
use crate::matching::{Rule, Selectors};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{Str, Value};
use pintle_auth::Lookup;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A webhook.
#[derive(Debug)]
pub(super) struct Hook {
    /// Tells it from all others: configuration, name, and a number where names repeat.
    pub id: Str,
    pub name: Str,
    pub configuration: Str,
    pub client_config: Value,
    pub rules: Vec<Rule>,
    pub is_equivalent: bool,
    pub selectors: Selectors,
    pub has_conditions: bool,
    pub conditions: Arc<dyn Conditions>,
    pub is_failure_ignored: bool,
    pub timeout: Option<Duration>,
    pub side_effects: Str,
    pub review_versions: Vec<Str>,
    pub is_reinvoked: bool,
}

impl Hook {
    fn read(configuration: &str, number: usize, hook: &Value, expressions: &dyn Expressions) -> Hook {
        let name = hook["name"].str_or_empty();
        let conditions: Vec<&str> =
            hook["matchConditions"].items().iter().map(|condition| condition["expression"].str_or_empty()).collect();
        let seconds = hook["timeoutSeconds"].as_i64().and_then(|seconds| u64::try_from(seconds).ok());
        Hook {
            id: compact_str::format_compact!("{configuration}/{name}/{number}"),
            name: Str::new(name),
            configuration: Str::new(configuration),
            client_config: hook["clientConfig"].clone(),
            rules: hook["rules"].items().iter().map(Rule::read).collect(),
            is_equivalent: hook["matchPolicy"].as_str() == Some("Equivalent"),
            selectors: Selectors::read(hook),
            has_conditions: !conditions.is_empty(),
            conditions: expressions.conditions(&conditions),
            is_failure_ignored: hook["failurePolicy"].as_str() == Some("Ignore"),
            timeout: seconds.map(Duration::from_secs),
            side_effects: Str::new(hook["sideEffects"].str_or_empty()),
            review_versions: hook["admissionReviewVersions"]
                .items()
                .iter()
                .map(|version| Str::new(version.str_or_empty()))
                .collect(),
            is_reinvoked: hook["reinvocationPolicy"].as_str() == Some("IfNeeded"),
        }
    }
}

/// The webhooks of all configurations of one kind, in order: by the configurations' names.
#[derive(Debug)]
pub(super) struct Source {
    configurations: Compiled<Vec<Arc<Hook>>>,
    expressions: Arc<dyn Expressions>,
}

impl Source {
    pub(super) fn new(resource: &'static str, lookup: Arc<dyn Lookup>, expressions: Arc<dyn Expressions>) -> Source {
        Source { configurations: Compiled::new("admissionregistration.k8s.io", resource, lookup), expressions }
    }

    /// The webhooks as they are now.
    pub(super) async fn hooks(&self) -> Vec<Arc<Hook>> {
        let configurations = self.configurations.all(|configuration| self.read(configuration)).await;
        configurations.iter().flat_map(|hooks| hooks.iter().cloned()).collect()
    }

    fn read(&self, configuration: &Value) -> Vec<Arc<Hook>> {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut hooks = Vec::new();
        for hook in configuration["webhooks"].items() {
            let number = numbers.entry(hook["name"].str_or_empty()).or_default();
            hooks.push(Arc::new(Hook::read(configuration.name(), *number, hook, &*self.expressions)));
            *number += 1;
        }
        hooks
    }
}
