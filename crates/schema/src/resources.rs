//! The resources that are served by default, and the columns of their tables.

use crate::builtin::{all_columns, all_resources};

/// A resource or subresource of a built-in group.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Name of the subresource; empty for the resource itself.
    pub subresource: &'static str,
    /// The kind that answers.
    pub kind: &'static str,
    /// Group of that kind (another one for `scale`, `eviction`, `token`).
    pub kind_group: &'static str,
    /// Version of that kind.
    pub kind_version: &'static str,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// Singular name; empty for subresources.
    pub singular: &'static str,
    /// Verbs, sorted.
    pub verbs: &'static [&'static str],
    /// Short names.
    pub short_names: &'static [&'static str],
    /// Categories, such as `all`.
    pub categories: &'static [&'static str],
    /// Hash of the storage version; empty for what is not stored.
    pub storage_version_hash: &'static str,
}

/// A column of a resource's Table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// Column header.
    pub name: &'static str,
    /// Type of the cells.
    pub kind: &'static str,
    /// Format of the cells; may be empty.
    pub format: &'static str,
    /// 0 for columns that are always shown, 1 for those of `-o wide`.
    pub priority: i32,
}

/// All resources and subresources, in the order in which discovery lists them.
pub fn resources() -> &'static [Resource] {
    all_resources()
}

/// The resource (or subresource, when `subresource` is not empty) of this name.
pub fn resource(group: &str, version: &str, plural: &str, subresource: &str) -> Option<&'static Resource> {
    all_resources()
        .iter()
        .find(|r| r.group == group && r.version == version && r.plural == plural && r.subresource == subresource)
}

/// The columns of a resource's Table, in order.
pub fn columns(group: &str, version: &str, plural: &str) -> impl Iterator<Item = &'static Column> {
    all_columns().iter().filter(move |c| c.group == group && c.version == version && c.resource == plural)
}
