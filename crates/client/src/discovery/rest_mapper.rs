//! [`RestMapper`]: from a kind, or from whatever people call a resource, to the resource.

use super::{DiscoveredResource, Discovery};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::resource::ApiResource;
use pintle_apimachinery::{GroupKind, Str};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A name that is not known leads to asking the server again, but not more often than this.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Why a name leads to no resource.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The server has no such kind.
    #[error("no matches for kind \"{}\" in group \"{}\"", .0.kind, .0.group)]
    NoKindMatch(GroupKind),
    /// The server has no such resource.
    #[error("the server doesn't have a resource type {0:?}")]
    NoResourceMatch(String),
    /// The server could not be asked.
    #[error("cannot discover what the server has")]
    Discovery(#[source] Error),
}

/// Finds resources. What the server said is remembered; a name that is not among it leads to asking again. Cheap to
/// clone; all clones share what they remember.
#[derive(Clone, Debug)]
pub struct RestMapper {
    client: Client,
    known: Arc<Mutex<Option<Known>>>,
}

#[derive(Clone, Debug)]
struct Known {
    discovery: Arc<Discovery>,
    at: Instant,
}

impl RestMapper {
    /// A mapper that has not asked yet.
    pub fn new(client: &Client) -> RestMapper {
        RestMapper { client: client.clone(), known: Arc::default() }
    }

    /// Forgets what the server said.
    pub async fn reset(&self) {
        *self.known.lock().await = None;
    }

    /// What the server serves.
    ///
    /// # Errors
    /// [`MappingError::Discovery`].
    pub async fn discovery(&self) -> Result<Arc<Discovery>, MappingError> {
        Ok(self.load(None).await?.discovery)
    }

    /// What the server serves, asked again if the last answer is `stale` and old enough.
    async fn load(&self, stale: Option<&Known>) -> Result<Known, MappingError> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.as_ref()
            && stale.is_none_or(|stale| known.at > stale.at || known.at.elapsed() < RELOAD_INTERVAL)
        {
            return Ok(known.clone());
        }
        let discovery = Discovery::run(&self.client).await.map_err(MappingError::Discovery)?;
        Ok(known.insert(Known { discovery: Arc::new(discovery), at: Instant::now() }).clone())
    }

    /// What `pick` finds, if need be after asking the server again.
    async fn find(
        &self,
        pick: impl Fn(&Discovery) -> Option<DiscoveredResource>,
    ) -> Result<Option<DiscoveredResource>, MappingError> {
        let known = self.load(None).await?;
        if let Some(found) = pick(&known.discovery) {
            return Ok(Some(found));
        }
        Ok(pick(&self.load(Some(&known)).await?.discovery))
    }

    /// The resource of a kind: of the first of `versions` that has it, or of the preferred one if none are given.
    ///
    /// # Errors
    /// [`MappingError`].
    pub async fn rest_mapping(&self, kind: &GroupKind, versions: &[&str]) -> Result<ApiResource, MappingError> {
        let pick = |discovery: &Discovery| {
            let of_kind = |resource: &&DiscoveredResource| {
                resource.resource.group == kind.group && resource.resource.kind == kind.kind
            };
            if versions.is_empty() {
                return discovery.resources().find(of_kind).cloned();
            }
            let of_version = |version: &&str| {
                discovery.resources().filter(of_kind).find(|resource| resource.resource.version == *version)
            };
            versions.iter().find_map(of_version).cloned()
        };
        let found = self.find(pick).await?;
        found.map(|found| found.resource).ok_or_else(|| MappingError::NoKindMatch(kind.clone()))
    }

    /// The resource that `text` names: `pods`, `pod`, `po`, `deployments.apps`, `deployments.v1.apps`.
    ///
    /// # Errors
    /// [`MappingError`].
    pub async fn resource_for(&self, text: &str) -> Result<DiscoveredResource, MappingError> {
        let name = ResourceName::read(text);
        let found = self.find(|discovery| name.pick(discovery)).await?;
        found.ok_or_else(|| MappingError::NoResourceMatch(text.to_owned()))
    }

    /// The resources of a category, such as `all`.
    ///
    /// # Errors
    /// [`MappingError::Discovery`].
    pub async fn category(&self, category: &str) -> Result<Vec<ApiResource>, MappingError> {
        let discovery = self.discovery().await?;
        let resources = discovery.preferred_resources();
        let of_category = resources.filter(|resource| resource.categories.iter().any(|c| c == category));
        Ok(of_category.map(|resource| resource.resource.clone()).collect())
    }
}

/// What `text` may name, in the order in which it is tried.
struct ResourceName {
    text: Str,
    /// With a dot: a resource, and the group or the version and the group.
    qualified: Option<(Str, Str)>,
}

impl ResourceName {
    fn read(text: &str) -> ResourceName {
        let text = text.to_lowercase();
        let qualified = text.split_once('.').map(|(resource, rest)| (Str::new(resource), Str::new(rest)));
        ResourceName { text: Str::from(text), qualified }
    }

    fn pick(&self, discovery: &Discovery) -> Option<DiscoveredResource> {
        if let Some((resource, rest)) = &self.qualified {
            let is_of_version = |found: &&DiscoveredResource| {
                let found = &found.resource;
                rest.split_once('.').is_some_and(|(version, group)| found.version == version && found.group == group)
            };
            let is_of_group = |found: &&DiscoveredResource| {
                // a group may be shortened: `deployments.ap` is `deployments.apps`
                found.resource.group == *rest || found.resource.group.starts_with(rest.as_str())
            };
            let named: Vec<&DiscoveredResource> =
                discovery.resources().filter(|found| is_named(found, resource)).collect();
            let mut by_version = named.iter().copied().filter(is_of_version);
            let exact = named.iter().copied().find(|found| found.resource.group == *rest);
            return by_version.next().or(exact).or_else(|| named.iter().copied().find(is_of_group)).cloned();
        }
        let resources = || discovery.preferred_resources();
        let plural = resources().find(|found| found.resource.plural == self.text || found.singular == self.text);
        plural.or_else(|| resources().find(|found| is_named(found, &self.text))).cloned()
    }
}

fn is_named(found: &DiscoveredResource, name: &str) -> bool {
    found.resource.plural == name
        || found.singular == name
        || found.resource.kind.to_lowercase() == name
        || found.short_names.iter().any(|short| short == name)
}
