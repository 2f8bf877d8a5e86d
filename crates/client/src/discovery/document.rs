//! The documents of discovery as they stand on the wire: the aggregated one and the older ones.

use super::{ApiGroup, ApiVersion, DiscoveredResource};
use crate::resource::ApiResource;
use pintle_apimachinery::{GroupVersion, GroupVersionKind, Str};
use serde::Deserialize;

/// `apidiscovery.k8s.io/v2 APIGroupDiscoveryList`.
#[derive(Deserialize)]
pub(super) struct GroupDiscoveryList {
    #[serde(default)]
    items: Vec<GroupDiscovery>,
}

#[derive(Deserialize)]
struct GroupDiscovery {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct VersionDiscovery {
    version: String,
    #[serde(default)]
    resources: Vec<ResourceDiscovery>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    resource: String,
    response_kind: Option<Kind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

fn strs(texts: Vec<String>) -> Vec<Str> {
    texts.into_iter().map(Str::from).collect()
}

impl GroupDiscoveryList {
    pub(super) fn groups(self) -> Vec<ApiGroup> {
        self.items.into_iter().map(GroupDiscovery::group).collect()
    }
}

impl GroupDiscovery {
    fn group(self) -> ApiGroup {
        let name = Str::from(self.metadata.name);
        let versions = self.versions.into_iter().map(|version| version.read(&name)).collect();
        ApiGroup { name, versions }
    }
}

impl VersionDiscovery {
    fn read(self, group: &Str) -> ApiVersion {
        let group_version = GroupVersion::new(group, &self.version);
        // a resource without a kind exists only as the parent of its subresources
        let resources = self.resources.into_iter().filter_map(|resource| resource.read(&group_version)).collect();
        ApiVersion { version: Str::from(self.version), resources, is_stale: self.freshness == "Stale" }
    }
}

impl ResourceDiscovery {
    fn read(self, group_version: &GroupVersion) -> Option<DiscoveredResource> {
        let kind = self.response_kind.map(|kind| kind.kind).filter(|kind| !kind.is_empty())?;
        let gvk = GroupVersionKind::new(&group_version.group, &group_version.version, kind);
        Some(DiscoveredResource {
            resource: ApiResource::new(&gvk, &self.resource, self.scope == "Namespaced"),
            singular: Str::from(self.singular_resource),
            short_names: strs(self.short_names),
            categories: strs(self.categories),
            verbs: strs(self.verbs),
            subresources: self.subresources.into_iter().map(|sub| Str::from(sub.subresource)).collect(),
        })
    }
}

/// `APIVersions`: what `/api` said before.
#[derive(Deserialize)]
pub(super) struct Versions {
    #[serde(default)]
    versions: Vec<String>,
}

impl Versions {
    pub(super) fn group_versions(self) -> Vec<GroupVersion> {
        self.versions.iter().map(|version| GroupVersion::new("", version)).collect()
    }
}

/// `APIGroupList`: what `/apis` said before.
#[derive(Deserialize)]
pub(super) struct GroupList {
    #[serde(default)]
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    #[serde(default)]
    versions: Vec<GroupVersionName>,
}

#[derive(Deserialize)]
struct GroupVersionName {
    version: String,
}

impl GroupList {
    pub(super) fn group_versions(self) -> Vec<GroupVersion> {
        let versions = |group: Group| {
            group.versions.into_iter().map(move |version| GroupVersion::new(&group.name, version.version))
        };
        self.groups.into_iter().flat_map(versions).collect()
    }
}

/// `APIResourceList`: what a group version said before.
#[derive(Deserialize)]
pub(super) struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

impl ResourceList {
    pub(super) fn resources(self, group_version: &GroupVersion) -> Vec<DiscoveredResource> {
        let (subresources, resources): (Vec<Resource>, Vec<Resource>) =
            self.resources.into_iter().partition(|resource| resource.name.contains('/'));
        let subresources_of = |plural: &str| -> Vec<Str> {
            let names = subresources.iter().filter_map(|sub| sub.name.strip_prefix(plural)?.strip_prefix('/'));
            names.map(Str::new).collect()
        };
        let read = |resource: Resource| DiscoveredResource {
            subresources: subresources_of(&resource.name),
            resource: ApiResource::new(&group_version.with_kind(&resource.kind), &resource.name, resource.namespaced),
            singular: Str::from(resource.singular_name),
            short_names: strs(resource.short_names),
            categories: strs(resource.categories),
            verbs: strs(resource.verbs),
        };
        resources.into_iter().map(read).collect()
    }
}
