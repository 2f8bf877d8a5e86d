//! What kinds of objects there are for this client: those with a Rust type, and those known only at run time.

use crate::request::push_segment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, Metadata, NamespaceResourceScope, Resource};
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Str};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::TypeId;

/// An object with metadata that travels as JSON: every type of `k8s_openapi` that has metadata, every type made by
/// [`custom_resource!`](crate::custom_resource), [`DynamicObject`] and [`PartialObjectMetadata`].
pub trait Object: Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Whether objects carry their own type, so that [`set_types`](Object::set_types) must be called or their JSON be
    /// complete.
    const IS_DYNAMIC: bool = false;

    /// The object's metadata.
    fn meta(&self) -> &ObjectMeta;

    /// The object's metadata, to change it.
    fn meta_mut(&mut self) -> &mut ObjectMeta;

    /// Tells an object that carries its own type what it is. Lists leave the type out of their items; types of Rust
    /// know it anyway.
    fn set_types(&mut self, _gvk: &GroupVersionKind) {}

    /// `metadata.name`, or `""`.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    /// `metadata.namespace`, or `""`.
    fn namespace(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    /// `metadata.uid`, or `""`.
    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    /// `metadata.resourceVersion`, or `""`.
    fn resource_version(&self) -> &str {
        self.meta().resource_version.as_deref().unwrap_or_default()
    }

    /// Whether deletion has begun.
    fn is_terminating(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }
}

impl<K> Object for K
where
    K: Metadata<Ty = ObjectMeta> + Serialize + DeserializeOwned + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    fn meta(&self) -> &ObjectMeta {
        self.metadata()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.metadata_mut()
    }
}

/// What a server calls a kind of object, and where it keeps them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiResource {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The resource's plural name, such as `pods`.
    pub plural: Str,
    /// The kind, such as `Pod`.
    pub kind: Str,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

impl ApiResource {
    /// The resource of a Rust type.
    pub fn of<K: Resource>() -> ApiResource
    where
        K::Scope: 'static,
    {
        ApiResource {
            group: Str::const_new(K::GROUP),
            version: Str::const_new(K::VERSION),
            plural: Str::const_new(K::URL_PATH_SEGMENT),
            kind: Str::const_new(K::KIND),
            is_namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        }
    }

    /// A resource known at run time; [`RestMapper`](crate::discovery::RestMapper) finds it for you.
    pub fn new(gvk: &GroupVersionKind, plural: &str, is_namespaced: bool) -> ApiResource {
        ApiResource {
            group: gvk.group.clone(),
            version: gvk.version.clone(),
            plural: Str::new(plural),
            kind: gvk.kind.clone(),
            is_namespaced,
        }
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, &self.version, &self.kind)
    }

    /// Group, version and plural name.
    pub fn gvr(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, &self.version, &self.plural)
    }

    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        self.gvk().api_version()
    }

    /// The path of the collection, of one of its objects, or of an object's subresource.
    pub(crate) fn path(&self, namespace: &str, name: &str, subresource: &str) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if self.is_namespaced && !namespace.is_empty() {
            path.push_str("/namespaces");
            push_segment(&mut path, namespace);
        }
        push_segment(&mut path, &self.plural);
        if !name.is_empty() {
            push_segment(&mut path, name);
        }
        // a subresource may have parts, as `proxy/healthz` has
        for part in subresource.split('/').filter(|part| !part.is_empty()) {
            push_segment(&mut path, part);
        }
        path
    }
}

/// The scopes that an object of its own can have: not a subresource's.
pub trait ObjectScope: k8s_openapi::ResourceScope + 'static {}

impl ObjectScope for NamespaceResourceScope {}
impl ObjectScope for ClusterResourceScope {}

/// An object of any kind: type and metadata as fields, the rest as JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DynamicObject {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata`.
    pub metadata: ObjectMeta,
    /// Every other member.
    pub data: serde_json::Map<String, serde_json::Value>,
}

impl DynamicObject {
    /// An empty object of this kind.
    pub fn new(name: &str, resource: &ApiResource) -> DynamicObject {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let kind = resource.kind.to_string();
        DynamicObject { api_version: resource.api_version(), kind, metadata, data: serde_json::Map::new() }
    }

    /// Reads an object out of a JSON document.
    ///
    /// # Errors
    /// What the metadata breaks.
    pub fn from_json(value: serde_json::Value) -> Result<DynamicObject, serde_json::Error> {
        serde_json::from_value(value)
    }

    /// In this namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> DynamicObject {
        self.metadata.namespace = Some(namespace.to_owned());
        self
    }

    /// With these members instead of the ones it has; anything but a JSON object clears them.
    #[must_use]
    pub fn with_data(mut self, data: serde_json::Value) -> DynamicObject {
        self.data = match data {
            serde_json::Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        self
    }

    /// The value at a JSON pointer such as `/spec/replicas`, outside the metadata.
    pub fn pointer(&self, pointer: &str) -> Option<&serde_json::Value> {
        let rest = pointer.strip_prefix('/')?;
        let (member, below) = rest.split_once('/').map_or((rest, ""), |(member, _)| (member, &rest[member.len()..]));
        self.data.get(member)?.pointer(below)
    }

    /// Reads the object as a Rust type.
    ///
    /// # Errors
    /// What does not fit the type.
    pub fn parse<K: Object>(&self) -> Result<K, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(self)?)
    }
}

impl Object for DynamicObject {
    const IS_DYNAMIC: bool = true;

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn set_types(&mut self, gvk: &GroupVersionKind) {
        if self.kind.is_empty() {
            self.kind = gvk.kind.to_string();
            self.api_version = gvk.api_version();
        }
    }
}

impl Serialize for DynamicObject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let mut map = serializer.serialize_map(None)?;
        if !self.api_version.is_empty() {
            map.serialize_entry("apiVersion", &self.api_version)?;
        }
        if !self.kind.is_empty() {
            map.serialize_entry("kind", &self.kind)?;
        }
        map.serialize_entry("metadata", &self.metadata)?;
        for (key, value) in &self.data {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for DynamicObject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<DynamicObject, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = DynamicObject;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<DynamicObject, A::Error> {
                let mut object = DynamicObject::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "apiVersion" => object.api_version = map.next_value::<Option<String>>()?.unwrap_or_default(),
                        "kind" => object.kind = map.next_value::<Option<String>>()?.unwrap_or_default(),
                        "metadata" => object.metadata = map.next_value::<Option<ObjectMeta>>()?.unwrap_or_default(),
                        _ => {
                            object.data.insert(key, map.next_value()?);
                        }
                    }
                }
                Ok(object)
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

/// The type and the metadata of an object of any kind, without the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartialObjectMetadata {
    /// `apiVersion`; `meta.k8s.io/v1` when the server made the part.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `kind`; `PartialObjectMetadata` when the server made the part.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `metadata`.
    pub metadata: ObjectMeta,
}

impl Object for PartialObjectMetadata {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Declares a custom resource: a struct with `metadata`, `spec` and, if asked for, `status`, that is a
/// `k8s_openapi` resource like the built-in ones.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
/// pub struct WebsiteSpec {
///     pub host: String,
/// }
///
/// #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
/// pub struct WebsiteStatus {
///     pub ready: bool,
/// }
///
/// pintle_client::custom_resource! {
///     /// A website.
///     pub struct Website {
///         group: "example.org", version: "v1", plural: "websites", scope: Namespaced,
///         spec: WebsiteSpec, status: WebsiteStatus,
///     }
/// }
///
/// let site = Website::new("home", WebsiteSpec { host: "example.org".into() });
/// assert_eq!(
///     serde_json::to_string(&site).unwrap(),
///     r#"{"apiVersion":"example.org/v1","kind":"Website","metadata":{"name":"home"},"spec":{"host":"example.org"}}"#
/// );
/// ```
#[macro_export]
macro_rules! custom_resource {
    (
        $(#[$doc:meta])*
        $vis:vis struct $kind:ident {
            group: $group:literal, version: $version:literal, plural: $plural:literal, scope: $scope:ident,
            spec: $spec:ty $(, status: $status:ty)? $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $kind {
            /// Standard object metadata.
            pub metadata: $crate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is wanted.
            pub spec: $spec,
            $(
                /// What is.
                pub status: ::core::option::Option<$status>,
            )?
        }

        impl $kind {
            /// An object of this name.
            $vis fn new(name: &str, spec: $spec) -> $kind {
                let mut object = $kind { spec, ..::core::default::Default::default() };
                object.metadata.name = ::core::option::Option::Some(name.to_owned());
                object
            }
        }

        impl $crate::k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = ::core::concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = ::core::stringify!($kind);
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = $crate::custom_resource!(@scope $scope);
        }

        impl $crate::k8s_openapi::ListableResource for $kind {
            const LIST_KIND: &'static str = ::core::concat!(::core::stringify!($kind), "List");
        }

        impl $crate::k8s_openapi::Metadata for $kind {
            type Ty = $crate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }

        impl $crate::serde::Serialize for $kind {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                use $crate::serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("apiVersion", <$kind as $crate::k8s_openapi::Resource>::API_VERSION)?;
                map.serialize_entry("kind", <$kind as $crate::k8s_openapi::Resource>::KIND)?;
                map.serialize_entry("metadata", &self.metadata)?;
                map.serialize_entry("spec", &self.spec)?;
                $(
                    let status: &::core::option::Option<$status> = &self.status;
                    if let ::core::option::Option::Some(status) = status {
                        map.serialize_entry("status", status)?;
                    }
                )?
                map.end()
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $kind {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<$kind, D::Error> {
                #[derive($crate::serde::Deserialize)]
                #[serde(crate = "pintle_client::serde")]
                struct Parts {
                    #[serde(default)]
                    metadata: $crate::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
                    spec: $spec,
                    $(
                        #[serde(default)]
                        status: ::core::option::Option<$status>,
                    )?
                }
                let parts = <Parts as $crate::serde::Deserialize>::deserialize(deserializer)?;
                ::core::result::Result::Ok($kind {
                    metadata: parts.metadata,
                    spec: parts.spec,
                    $(status: $crate::custom_resource!(@keep parts.status, $status),)?
                })
            }
        }
    };
    (@scope Namespaced) => { $crate::k8s_openapi::NamespaceResourceScope };
    (@scope Cluster) => { $crate::k8s_openapi::ClusterResourceScope };
    (@keep $value:expr, $status:ty) => { $value };
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Node, Pod};

    #[test]
    fn paths() {
        let pods = ApiResource::of::<Pod>();
        assert_eq!(pods.path("", "", ""), "/api/v1/pods");
        assert_eq!(pods.path("a", "b", "log"), "/api/v1/namespaces/a/pods/b/log");
        assert_eq!(ApiResource::of::<Node>().path("ignored", "n", "proxy/x"), "/api/v1/nodes/n/proxy/x");
        assert_eq!(ApiResource::of::<Deployment>().path("a", "", ""), "/apis/apps/v1/namespaces/a/deployments");
        assert_eq!(ApiResource::of::<Deployment>().gvk().to_string(), "apps/v1, Kind=Deployment");
    }

    #[test]
    fn dynamic_objects_keep_everything() {
        let text =
            r#"{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"x"},"spec":{"a":[1,2]},"extra":null}"#;
        let object: DynamicObject = serde_json::from_str(text).unwrap();
        assert_eq!(object.name(), "x");
        assert_eq!(object.pointer("/spec/a/1"), Some(&serde_json::json!(2)));
        assert_eq!(object.pointer("/spec"), Some(&serde_json::json!({"a": [1, 2]})));
        assert_eq!(serde_json::from_str::<DynamicObject>(&serde_json::to_string(&object).unwrap()).unwrap(), object);
    }
}
