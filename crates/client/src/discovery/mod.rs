//! What a server serves: groups, versions, resources; and finding a resource by whatever name people use.
//!
//! Follows: client-go discovery and restmapper (v0.35). The aggregated documents are asked for; servers that do not
//! have them are asked group by group.

mod document;
mod rest_mapper;

pub use rest_mapper::{MappingError, RestMapper};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::request::{Request, Verb};
use crate::resource::ApiResource;
use document::{GroupDiscoveryList, GroupList, ResourceList, Versions};
use futures_util::stream::{StreamExt as _, TryStreamExt as _};
use pintle_apimachinery::{GroupVersion, Str};
use serde::Deserialize;

/// Group versions asked for at once where the aggregated documents are missing.
const REQUESTS_AT_ONCE_MAX: usize = 8;

/// The aggregated document first, the plain one for servers that do not have it.
const ACCEPT_AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// What a server serves, at the time it was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discovery {
    /// The groups in the server's order of preference.
    pub groups: Vec<ApiGroup>,
}

/// A group and its versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiGroup {
    /// The group's name; empty for the core group.
    pub name: Str,
    /// Its versions in the server's order of preference.
    pub versions: Vec<ApiVersion>,
}

/// A version of a group and its resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiVersion {
    /// The version.
    pub version: Str,
    /// Its resources, in the server's order.
    pub resources: Vec<DiscoveredResource>,
    /// Whether the server could not ask who serves this version now: the resources may be out of date or missing.
    pub is_stale: bool,
}

/// A resource and what can be done with it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscoveredResource {
    /// Its names and scope.
    pub resource: ApiResource,
    /// The name for one of them: `pod`.
    pub singular: Str,
    /// Other names: `po`.
    pub short_names: Vec<Str>,
    /// Groups of resources that people name together: `all`.
    pub categories: Vec<Str>,
    /// What can be done: `get`, `list` ...
    pub verbs: Vec<Str>,
    /// Subresources: `status`, `scale` ...
    pub subresources: Vec<Str>,
}

impl DiscoveredResource {
    /// Whether the server does this.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }
}

/// What `/version` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerVersion {
    /// The major version.
    pub major: String,
    /// The minor version; may have a suffix.
    pub minor: String,
    /// The whole version: `v1.35.4`.
    pub git_version: String,
    /// Of the server's machine.
    pub platform: String,
}

impl Client {
    /// The server's version.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn server_version(&self) -> Result<ServerVersion> {
        self.get("/version").await
    }
}

impl Discovery {
    /// Asks what a server serves. Versions whose resources could not be read are there without resources and marked
    /// as stale.
    ///
    /// # Errors
    /// [`Error`] when not even the groups can be read.
    pub async fn run(client: &Client) -> Result<Discovery> {
        let (core, named) = tokio::try_join!(groups_under(client, "/api"), groups_under(client, "/apis"))?;
        Ok(Discovery { groups: core.into_iter().chain(named).collect() })
    }

    /// All resources of all versions, preferred versions first within each group.
    pub fn resources(&self) -> impl Iterator<Item = &DiscoveredResource> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    /// The resources of the preferred version that has them, each once.
    pub fn preferred_resources(&self) -> impl Iterator<Item = &DiscoveredResource> {
        self.groups.iter().flat_map(|group| {
            let versions = &group.versions;
            versions.iter().enumerate().flat_map(move |(idx, version)| {
                let is_elsewhere = move |plural: &Str| {
                    versions[..idx].iter().any(|v| v.resources.iter().any(|r| r.resource.plural == *plural))
                };
                version.resources.iter().filter(move |resource| !is_elsewhere(&resource.resource.plural))
            })
        })
    }

    /// The resources of one version of a group.
    pub fn version(&self, group_version: &GroupVersion) -> Option<&ApiVersion> {
        let group = self.groups.iter().find(|group| group.name == group_version.group)?;
        group.versions.iter().find(|version| version.version == group_version.version)
    }
}

/// The groups under `/api` or `/apis`.
async fn groups_under(client: &Client, root: &str) -> Result<Vec<ApiGroup>> {
    let mut request = Request::new(Verb::Get, root);
    request.accept = ACCEPT_AGGREGATED;
    let bytes = match client.bytes(&request).await {
        Ok(bytes) => bytes,
        // a server without the core group, or without any other
        Err(error) if error.is_not_found() || error.is_forbidden() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let document: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| Error::decode("discovery", error))?;
    let decode_error = |error| Error::decode("discovery", error);
    match document["kind"].as_str() {
        Some("APIGroupDiscoveryList") => {
            let list: GroupDiscoveryList = serde_json::from_value(document).map_err(decode_error)?;
            Ok(list.groups())
        }
        Some("APIVersions") => {
            let versions: Versions = serde_json::from_value(document).map_err(decode_error)?;
            legacy_groups(client, versions.group_versions()).await
        }
        _ => {
            let groups: GroupList = serde_json::from_value(document).map_err(decode_error)?;
            legacy_groups(client, groups.group_versions()).await
        }
    }
}

/// Asks for the resources of each version.
async fn legacy_groups(client: &Client, wanted: Vec<GroupVersion>) -> Result<Vec<ApiGroup>> {
    let asking = wanted.into_iter().map(|group_version| async move {
        let path = if group_version.group.is_empty() {
            format!("/api/{}", group_version.version)
        } else {
            format!("/apis/{}/{}", group_version.group, group_version.version)
        };
        let version = match client.get::<ResourceList>(&path).await {
            Ok(list) => ApiVersion {
                version: group_version.version.clone(),
                resources: list.resources(&group_version),
                is_stale: false,
            },
            Err(error) if error.is_unsent() => return Err(error),
            Err(error) => {
                tracing::debug!(%group_version, %error, "the resources of a version cannot be read");
                ApiVersion { version: group_version.version.clone(), resources: Vec::new(), is_stale: true }
            }
        };
        Ok((group_version.group, version))
    });
    let versions: Vec<(Str, ApiVersion)> =
        futures_util::stream::iter(asking).buffered(REQUESTS_AT_ONCE_MAX).try_collect().await?;
    let mut groups: Vec<ApiGroup> = Vec::new();
    for (name, version) in versions {
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.versions.push(version),
            None => groups.push(ApiGroup { name, versions: vec![version] }),
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;
