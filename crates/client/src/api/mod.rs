//! [`Api`]: the verbs on one kind of objects.

mod pages;
mod patch;
mod subresources;

pub use pages::PAGE_SIZE_DEFAULT;
pub use patch::Patch;
pub use subresources::{Bind, Evict};

use crate::call::{Call, Decode};
use crate::client::{Client, decode_json};
use crate::error::{Error, Result, status_from_json};
use crate::list::ObjectList;
use crate::options::{
    CreateOptions, DeleteCollectionOptions, DeleteOptions, GetOptions, ListOptions, Options, PatchOptions,
    UpdateOptions,
};
use crate::request::{Request, Verb};
use crate::resource::{ApiResource, DynamicObject, Object, ObjectScope, PartialObjectMetadata};
use crate::watch::{BodyDecoder, ClientErrorReporter, StreamWatcher};
use crate::wire::ListSplitter;
use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope, Resource};
use pintle_apimachinery::{GroupVersionKind, Status, Str};
use serde::Serialize;
use std::marker::PhantomData;
use std::sync::Arc;

/// The verbs on the objects of one kind, in one namespace, in all of them, or outside of any. Cheap to clone.
///
/// Typed, over `k8s_openapi` and [`custom_resource!`](crate::custom_resource) types, or dynamic, over
/// [`DynamicObject`]. client-go's `clientset.CoreV1().Pods("default")` is `Api::<Pod>::namespaced(&client, "default")`.
#[derive(Debug)]
pub struct Api<K> {
    client: Client,
    resource: Arc<ApiResource>,
    /// Empty for all namespaces or outside of any.
    namespace: Str,
    /// Whether the server is asked for metadata alone.
    is_metadata: bool,
    _kind: PhantomData<fn() -> K>,
}

/// Media types that ask for the metadata of one object, or of each change.
const ACCEPT_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// Media types that ask for the metadata of a list's objects.
const ACCEPT_METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

impl<K> Clone for Api<K> {
    fn clone(&self) -> Api<K> {
        Api {
            client: self.client.clone(),
            resource: Arc::clone(&self.resource),
            namespace: self.namespace.clone(),
            is_metadata: self.is_metadata,
            _kind: PhantomData,
        }
    }
}

impl<K: Resource + Metadata> Api<K>
where
    K::Scope: ObjectScope,
{
    /// All objects of the kind: those outside namespaces, or those of every namespace. What is made through it goes
    /// where the object's own `metadata.namespace` says.
    pub fn all(client: &Client) -> Api<K> {
        Api::of_resource(client, Arc::new(ApiResource::of::<K>()), "")
    }

    /// The objects of one namespace if `namespace` is not empty, else as [`Api::all`]: for code that is generic over
    /// the scope.
    pub fn scoped(client: &Client, namespace: &str) -> Api<K> {
        Api::of_resource(client, Arc::new(ApiResource::of::<K>()), namespace)
    }
}

impl<K: Resource<Scope = NamespaceResourceScope> + Metadata> Api<K> {
    /// The objects of one namespace.
    pub fn namespaced(client: &Client, namespace: &str) -> Api<K> {
        Api::of_resource(client, Arc::new(ApiResource::of::<K>()), namespace)
    }

    /// The objects of the namespace that the configuration names.
    pub fn default_namespaced(client: &Client) -> Api<K> {
        Api::namespaced(client, client.default_namespace())
    }
}

impl Api<DynamicObject> {
    /// The objects of a resource known at run time; `namespace` is empty for all of them.
    pub fn dynamic(client: &Client, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::of_resource(client, Arc::new(resource.clone()), namespace)
    }
}

impl Api<PartialObjectMetadata> {
    /// The objects of any resource, of which the server sends the metadata alone. For what looks at objects of every
    /// kind, such as a garbage collector: client-go's metadata client.
    pub fn metadata(client: &Client, resource: Arc<ApiResource>, namespace: &str) -> Api<PartialObjectMetadata> {
        Api { is_metadata: true, ..Api::of_resource(client, resource, namespace) }
    }
}

impl<K> Api<K> {
    /// The objects of `resource` read as `K`, which the caller knows to fit.
    pub fn of_resource(client: &Client, resource: Arc<ApiResource>, namespace: &str) -> Api<K> {
        let namespace = Str::new(namespace);
        Api { client: client.clone(), resource, namespace, is_metadata: false, _kind: PhantomData }
    }

    /// The same objects in another namespace; empty for all of them.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Api<K> {
        Api { namespace: Str::new(namespace), ..self.clone() }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The resource.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// The namespace; empty for all of them.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A request about the collection or, with a name, one object or subresource.
    pub(crate) fn request(&self, verb: Verb, namespace: &str, name: &str, subresource: &str) -> Request {
        let mut request = Request::new(verb, self.resource.path(namespace, name, subresource));
        request.about = (self.resource.group.clone(), self.resource.plural.clone(), Str::new(name));
        if self.is_metadata {
            request.accept = match verb {
                Verb::List => ACCEPT_METADATA_LIST,
                Verb::Get | Verb::Watch | Verb::Create | Verb::Update | Verb::Patch => ACCEPT_METADATA,
                // the answer may be a Status, which has no metadata to be reduced to
                Verb::Delete | Verb::DeleteCollection => request.accept,
            };
        }
        request
    }

    /// A request about one object of this name.
    pub(crate) fn named(&self, verb: Verb, name: &str, subresource: &str) -> Result<Request> {
        if name.is_empty() {
            return Err(Error::InvalidRequest("resource name may not be empty".to_owned()));
        }
        if matches!(name, "." | "..") {
            return Err(Error::InvalidRequest(format!("invalid resource name {name:?}")));
        }
        if self.resource.is_namespaced && self.namespace.is_empty() {
            let why = "an empty namespace may not be set when a resource name is provided";
            return Err(Error::InvalidRequest(why.to_owned()));
        }
        Ok(self.request(verb, &self.namespace, name, subresource))
    }
}

impl<K> Api<K> {
    /// Follows the changes of the objects, each made a `T` by `decode` from its JSON bytes. For caches that do not
    /// want the object decoded.
    pub fn watch_decoded<T: 'static>(
        &self,
        decode: impl Fn(&[u8]) -> Result<T> + Send + 'static,
    ) -> Call<'_, ListOptions, StreamWatcher<T>> {
        let send: crate::call::Send<StreamWatcher<T>> = Box::new(move |client, mut request| {
            request.set_param("watch", "true");
            Box::pin(async move {
                let body = client.send(&request).await?.into_body();
                Ok(StreamWatcher::new(BodyDecoder::new(body, decode), ClientErrorReporter::for_watch()))
            })
        });
        let request = Ok(self.request(Verb::Watch, &self.namespace, "", ""));
        Call { client: &self.client, request, options: ListOptions::default(), send }
    }

    /// Reads objects and hands the JSON bytes of each to `on_item` as they arrive: no more than one of them and one
    /// piece of the answer are in memory at a time.
    ///
    /// # Errors
    /// [`Error`]; whatever `on_item` gives.
    pub async fn list_items(
        &self,
        options: &ListOptions,
        on_item: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<ListMeta> {
        let mut request = self.request(Verb::List, &self.namespace, "", "");
        options.write(&mut request)?;
        let mut body = self.client.send(&request).await?.into_body();
        let mut splitter = ListSplitter::new(on_item);
        while let Some(chunk) = body.chunk().await? {
            splitter.push(&chunk)?;
        }
        splitter.finish()
    }
}

impl<K: Object> Api<K> {
    /// Reads one object.
    pub fn get(&self, name: &str) -> Call<'_, GetOptions, K> {
        self.get_subresource(name, "")
    }

    /// Reads one object; `None` when there is none.
    ///
    /// # Errors
    /// As [`Api::get`], except for [`Error::is_not_found`].
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads objects: all of them, or a page with [`limit`](Call::limit).
    pub fn list(&self) -> Call<'_, ListOptions, ObjectList<K>> {
        let gvk = self.resource.gvk();
        let decode: Decode<ObjectList<K>> = Box::new(move |bytes: &Bytes| {
            let mut list: ObjectList<K> = decode_json(bytes)?;
            for item in &mut list.items {
                item.set_types(&gvk);
            }
            Ok(list)
        });
        Call::new(&self.client, Ok(self.request(Verb::List, &self.namespace, "", "")), decode)
    }

    /// Reads all objects in pages of `page_size`, all of one version. When the server has forgotten that version in
    /// between, the rest is of a later one.
    ///
    /// # Errors
    /// [`Error`] of any page.
    pub async fn list_all(&self, mut options: ListOptions, page_size: u32) -> Result<ObjectList<K>> {
        options.limit = Some(page_size);
        let mut all: Option<ObjectList<K>> = None;
        loop {
            let page = match self.list().options(options.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    let fresh = error.status().map(|status| status.continue_token.clone()).unwrap_or_default();
                    if !error.is_expired() || fresh.is_empty() || fresh == options.continue_token {
                        return Err(error);
                    }
                    options.continue_token = fresh;
                    continue;
                }
            };
            options.continue_token = page.metadata.continue_.clone().unwrap_or_default();
            // the first page fixed the version: the continue token carries it
            options.resource_version.clear();
            options.resource_version_match = None;
            let list = match all.take() {
                None => page,
                Some(mut list) => {
                    list.items.extend(page.items);
                    list.metadata = page.metadata;
                    list
                }
            };
            if options.continue_token.is_empty() {
                return Ok(list);
            }
            all = Some(list);
        }
    }

    /// Follows the changes of the objects.
    pub fn watch(&self) -> Call<'_, ListOptions, StreamWatcher<K>> {
        let gvk = self.resource.gvk();
        self.watch_decoded(move |bytes| {
            let mut object: K = decode_json(bytes)?;
            object.set_types(&gvk);
            Ok(object)
        })
    }

    /// Follows the changes of one object.
    pub fn watch_one(&self, name: &str) -> Call<'_, ListOptions, StreamWatcher<K>> {
        self.watch().fields(format_args!("metadata.name={name}"))
    }

    /// Makes an object.
    pub fn create(&self, object: &K) -> Call<'_, CreateOptions, K> {
        let namespace = if self.namespace.is_empty() { object.namespace() } else { &self.namespace };
        let request = if self.resource.is_namespaced && namespace.is_empty() {
            let why = "an empty namespace may not be set during creation";
            Err(Error::InvalidRequest(why.to_owned()))
        } else {
            self.request(Verb::Create, namespace, "", "").json("object", object)
        };
        Call::new(&self.client, request, self.decode_one())
    }

    /// Replaces an object. With `metadata.resourceVersion` only if that is still its version, else
    /// [`Error::is_conflict`].
    pub fn update(&self, object: &K) -> Call<'_, UpdateOptions, K> {
        self.update_subresource("", object)
    }

    /// Replaces an object's status.
    pub fn update_status(&self, object: &K) -> Call<'_, UpdateOptions, K> {
        self.update_subresource("status", object)
    }

    /// Changes parts of an object.
    pub fn patch<P: Serialize>(&self, name: &str, patch: &Patch<P>) -> Call<'_, PatchOptions, K> {
        self.patch_subresource(name, "", patch)
    }

    /// Changes parts of an object's status.
    pub fn patch_status<P: Serialize>(&self, name: &str, patch: &Patch<P>) -> Call<'_, PatchOptions, K> {
        self.patch_subresource(name, "status", patch)
    }

    /// Server-side apply: the object shall have these fields, and `field_manager` owns them.
    pub fn apply<P: Serialize>(&self, name: &str, field_manager: &str, fields: &P) -> Call<'_, PatchOptions, K> {
        self.patch_subresource(name, "", &Patch::Apply(fields)).field_manager(field_manager)
    }

    /// Server-side apply to an object's status.
    pub fn apply_status<P: Serialize>(&self, name: &str, field_manager: &str, fields: &P) -> Call<'_, PatchOptions, K> {
        self.patch_subresource(name, "status", &Patch::Apply(fields)).field_manager(field_manager)
    }

    /// Deletes an object, or begins to.
    pub fn delete(&self, name: &str) -> Call<'_, DeleteOptions, Deletion<K>> {
        let decode = self.decode_one();
        Call::new(
            &self.client,
            self.named(Verb::Delete, name, ""),
            Box::new(move |bytes| Deletion::read(bytes, decode)),
        )
    }

    /// Deletes objects.
    pub fn delete_collection(&self) -> Call<'_, DeleteCollectionOptions, ()> {
        let request = self.request(Verb::DeleteCollection, &self.namespace, "", "");
        Call::new(&self.client, Ok(request), Box::new(|_| Ok(())))
    }

    pub(crate) fn get_subresource(&self, name: &str, subresource: &str) -> Call<'_, GetOptions, K> {
        Call::new(&self.client, self.named(Verb::Get, name, subresource), self.decode_one())
    }

    pub(crate) fn update_subresource(&self, subresource: &str, object: &K) -> Call<'_, UpdateOptions, K> {
        let scoped = if self.namespace.is_empty() { self.in_namespace(object.namespace()) } else { self.clone() };
        let request = scoped.named(Verb::Update, object.name(), subresource);
        Call::new(&self.client, request.and_then(|request| request.json("object", object)), self.decode_one())
    }

    pub(crate) fn patch_subresource<P: Serialize>(
        &self,
        name: &str,
        subresource: &str,
        patch: &Patch<P>,
    ) -> Call<'_, PatchOptions, K> {
        let request = self.named(Verb::Patch, name, subresource).and_then(|request| patch.write(request));
        Call::new(&self.client, request, self.decode_one())
    }

    fn decode_one(&self) -> Decode<K> {
        let gvk: GroupVersionKind = self.resource.gvk();
        Box::new(move |bytes| {
            let mut object: K = decode_json(bytes)?;
            object.set_types(&gvk);
            Ok(object)
        })
    }
}

/// What the server says to a delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<K> {
    /// The object, as it was when it went or as it is while it waits for its grace period and finalizers: see
    /// `metadata.deletionTimestamp`.
    Object(Box<K>),
    /// It is gone.
    Status(Box<Status>),
}

impl<K> Deletion<K> {
    fn read(bytes: &Bytes, decode: Decode<K>) -> Result<Deletion<K>> {
        // a Status is small: an object is not parsed twice
        const STATUS_BYTES_MAX: usize = 4096;
        if bytes.len() <= STATUS_BYTES_MAX
            && let Some(status) = status_from_json(bytes)
        {
            return Ok(Deletion::Status(Box::new(status)));
        }
        decode(bytes).map(|object| Deletion::Object(Box::new(object)))
    }

    /// The object, if the server sent it.
    pub fn object(self) -> Option<K> {
        match self {
            Deletion::Object(object) => Some(*object),
            Deletion::Status(_) => None,
        }
    }
}
