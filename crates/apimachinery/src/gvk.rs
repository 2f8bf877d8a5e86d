//! Names of kinds and resources: group, version, kind; group, version, resource.

use crate::Str;
use std::fmt;

/// An API group and version, on the wire `v1` or `apps/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
}

impl GroupVersion {
    /// A group and version.
    pub fn new(group: impl AsRef<str>, version: impl AsRef<str>) -> GroupVersion {
        GroupVersion { group: Str::new(group), version: Str::new(version) }
    }

    /// Reads an `apiVersion`. Text with more than one slash has no meaning and gives `None`.
    pub fn parse(api_version: &str) -> Option<GroupVersion> {
        match api_version.split_once('/') {
            None => Some(GroupVersion::new("", api_version)),
            Some((_, version)) if version.contains('/') => None,
            Some((group, version)) => Some(GroupVersion::new(group, version)),
        }
    }

    /// With a kind.
    pub fn with_kind(&self, kind: impl AsRef<str>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: Str::new(kind) }
    }

    /// With a resource.
    pub fn with_resource(&self, resource: impl AsRef<str>) -> GroupVersionResource {
        GroupVersionResource { group: self.group.clone(), version: self.version.clone(), resource: Str::new(resource) }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { write!(f, "{}", self.version) } else { write!(f, "{}/{}", self.group, self.version) }
    }
}

/// An API group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The kind, such as `Pod`.
    pub kind: Str,
}

impl GroupVersionKind {
    /// A group, version and kind.
    pub fn new(group: impl AsRef<str>, version: impl AsRef<str>, kind: impl AsRef<str>) -> GroupVersionKind {
        GroupVersionKind { group: Str::new(group), version: Str::new(version), kind: Str::new(kind) }
    }

    /// Without the kind.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// The `apiVersion` text.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }
}

impl fmt::Display for GroupVersionKind {
    /// As upstream prints it: `apps/v1, Kind=Deployment`, `/v1, Kind=Pod`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// An API group and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The group; empty for the core group.
    pub group: Str,
    /// The kind.
    pub kind: Str,
}

impl GroupKind {
    /// A group and kind.
    pub fn new(group: impl AsRef<str>, kind: impl AsRef<str>) -> GroupKind {
        GroupKind { group: Str::new(group), kind: Str::new(kind) }
    }
}

impl fmt::Display for GroupKind {
    /// `Deployment.apps`, `Pod`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { write!(f, "{}", self.kind) } else { write!(f, "{}.{}", self.kind, self.group) }
    }
}

/// An API group and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// The group; empty for the core group.
    pub group: Str,
    /// The resource's plural name, such as `pods`.
    pub resource: Str,
}

impl GroupResource {
    /// A group and resource.
    pub fn new(group: impl AsRef<str>, resource: impl AsRef<str>) -> GroupResource {
        GroupResource { group: Str::new(group), resource: Str::new(resource) }
    }
}

impl fmt::Display for GroupResource {
    /// `deployments.apps`, `pods`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}", self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// An API group, version and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionResource {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The resource's plural name.
    pub resource: Str,
}

impl GroupVersionResource {
    /// A group, version and resource.
    pub fn new(group: impl AsRef<str>, version: impl AsRef<str>, resource: impl AsRef<str>) -> GroupVersionResource {
        GroupVersionResource { group: Str::new(group), version: Str::new(version), resource: Str::new(resource) }
    }

    /// Without the resource.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    /// Without the version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

impl fmt::Display for GroupVersionResource {
    /// As upstream prints it: `apps/v1, Resource=deployments`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

/// How Kubernetes orders versions: `v2` > `v1` > `v1beta2` > `v1beta1` > `v1alpha1` > all that is no such version, which
/// stands in alphabetical order, the first the greatest.
pub fn compare_versions(a: &str, b: &str) -> std::cmp::Ordering {
    /// Stability, major and minor number; `None` for what is no such version.
    fn parse(version: &str) -> Option<(u8, u32, u32)> {
        let rest = version.strip_prefix('v')?;
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (major, rest) = rest.split_at(n_digits);
        let major = major.parse().ok()?;
        if rest.is_empty() {
            return Some((2, major, 0));
        }
        let (stability, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (None, Some(minor)) => (0, minor),
            (None, None) => return None,
        };
        let is_number = minor.bytes().all(|b| b.is_ascii_digit());
        if is_number { Some((stability, major, minor.parse().ok()?)) } else { None }
    }
    match (parse(a), parse(b)) {
        (None, None) => b.cmp(a),
        (a, b) => a.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_order() {
        let mut versions = ["v1beta1", "v2", "v10", "foo1", "v1", "v1alpha1", "bar", "v11alpha2"];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta1", "v11alpha2", "v1alpha1", "bar", "foo1"]);
    }
}
