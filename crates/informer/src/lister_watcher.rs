//! Where a reflector gets its objects: [`ListerWatcher`], and [`ListWatch`], the one over a client.

use crate::Cached;
use crate::store::Item;
use futures_util::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use pintle_client::options::ListOptions;
use pintle_client::watch::{BoxWatch, StreamWatcher};
use pintle_client::{Api, Error, Object, Result};
use std::sync::Arc;

/// Takes the objects of a list one by one.
pub type OnItem<'a, T> = &'a mut (dyn FnMut(T) + Send);

/// Lists all objects and watches for changes from a version on.
pub trait ListerWatcher<T>: Send + Sync + 'static {
    /// Hands the objects of a list, or of one page of it, to `on_item` and gives the list's metadata.
    ///
    /// # Errors
    /// [`Error`]; what `on_item` got before is then of no use.
    fn list<'a>(&'a self, options: &'a ListOptions, on_item: OnItem<'a, T>) -> BoxFuture<'a, Result<ListMeta>>;

    /// Follows the changes after a version.
    ///
    /// # Errors
    /// [`Error`].
    fn watch<'a>(&'a self, options: &'a ListOptions) -> BoxFuture<'a, Result<BoxWatch<T>>>;

    /// Whether a watch can begin with what is there (`sendInitialEvents`). If a server then refuses, the reflector
    /// lists.
    fn supports_watch_list(&self) -> bool {
        true
    }
}

/// Changes an object on its way into a cache, or leaves it. Runs once per object and change, before anybody sees it.
pub type TransformFunc<K> = Arc<dyn Fn(Cached<K>) -> Result<Cached<K>> + Send + Sync>;

/// Ready-made transforms.
pub mod transform {
    use super::{Cached, Error, Object, Result, TransformFunc};
    use pintle_client::wire::{members, value_at};
    use std::sync::Arc;

    /// Lets `change` change the decoded object. Costs a decoding and an encoding for each object.
    pub fn typed<K: Object>(change: impl Fn(&mut K) + Send + Sync + 'static) -> TransformFunc<K> {
        Arc::new(move |cached| {
            let mut object = cached.to_owned_object()?;
            change(&mut object);
            Cached::of(&object)
        })
    }

    /// Drops `metadata.managedFields`, often a third of an object, by cutting it out of the bytes.
    pub fn without_managed_fields<K: 'static>() -> TransformFunc<K> {
        Arc::new(|cached: Cached<K>| cut_managed_fields(&cached))
    }

    fn cut_managed_fields<K>(cached: &Cached<K>) -> Result<Cached<K>> {
        let raw = cached.raw();
        let Some(metadata) = value_at(raw, &["metadata"]) else { return Ok(cached.clone()) };
        let kept: Vec<(&[u8], &[u8])> = members(metadata).filter(|(key, _)| *key != b"managedFields").collect();
        if kept.len() == members(metadata).count() {
            return Ok(cached.clone());
        }
        let start = metadata.as_ptr().addr() - raw.as_ptr().addr();
        let mut cut = Vec::with_capacity(raw.len());
        cut.extend_from_slice(&raw[..start]);
        cut.push(b'{');
        for (idx, (key, value)) in kept.iter().enumerate() {
            cut.extend_from_slice(if idx == 0 { b"\"" } else { b",\"" });
            cut.extend_from_slice(key);
            cut.extend_from_slice(b"\":");
            cut.extend_from_slice(value);
        }
        cut.push(b'}');
        cut.extend_from_slice(&raw[start + metadata.len()..]);
        Cached::from_json(cut).map_err(|source| Error::Decode { what: "object".to_owned(), source: Box::new(source) })
    }
}

/// The objects of an [`Api`], with what restricts and changes them.
pub struct ListWatch<K> {
    api: Api<K>,
    /// Selectors; the rest is the reflector's.
    selection: ListOptions,
    transform: Option<TransformFunc<K>>,
    keeps_decoded: bool,
}

impl<K> std::fmt::Debug for ListWatch<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListWatch")
            .field("resource", &self.api.resource().gvr())
            .field("namespace", &self.api.namespace())
            .finish_non_exhaustive()
    }
}

impl<K: Object> ListWatch<K> {
    /// All objects of `api`.
    pub fn new(api: Api<K>) -> ListWatch<K> {
        ListWatch { api, selection: ListOptions::default(), transform: None, keeps_decoded: false }
    }

    /// Only objects with such labels.
    #[must_use]
    pub fn labels(mut self, selector: impl std::fmt::Display) -> ListWatch<K> {
        self.selection.label_selector = selector.to_string();
        self
    }

    /// Only objects with such fields.
    #[must_use]
    pub fn fields(mut self, selector: impl std::fmt::Display) -> ListWatch<K> {
        self.selection.field_selector = selector.to_string();
        self
    }

    /// Every object goes through `transform` first.
    #[must_use]
    pub fn transform(mut self, transform: TransformFunc<K>) -> ListWatch<K> {
        self.transform = Some(transform);
        self
    }

    /// Objects stay decoded once they were: see [`Cached::keep_decoded`].
    #[must_use]
    pub fn keep_decoded(mut self) -> ListWatch<K> {
        self.keeps_decoded = true;
        self
    }

    fn with_selection(&self, options: &ListOptions) -> ListOptions {
        ListOptions {
            label_selector: self.selection.label_selector.clone(),
            field_selector: self.selection.field_selector.clone(),
            ..options.clone()
        }
    }

    fn finisher(&self) -> impl Fn(Cached<K>) -> Result<Cached<K>> + Send + Sync + 'static {
        let (transform, keeps_decoded) = (self.transform.clone(), self.keeps_decoded);
        move |cached| {
            let cached = match &transform {
                Some(transform) => transform(cached)?,
                None => cached,
            };
            if keeps_decoded {
                cached.keep_decoded();
            }
            Ok(cached)
        }
    }
}

impl<K: Object> ListerWatcher<Cached<K>> for ListWatch<K> {
    fn list<'a>(&'a self, options: &'a ListOptions, on_item: OnItem<'a, Cached<K>>) -> BoxFuture<'a, Result<ListMeta>> {
        Box::pin(async move {
            let gvk = K::IS_DYNAMIC.then(|| self.api.resource().gvk());
            let finish = self.finisher();
            let options = self.with_selection(options);
            self.api
                .list_items(&options, |raw| {
                    let cached = match &gvk {
                        Some(gvk) => Cached::from_list_item(raw, gvk),
                        None => Cached::from_json(raw),
                    };
                    on_item(finish(cached.map_err(not_an_object)?)?);
                    Ok(())
                })
                .await
        })
    }

    fn watch<'a>(&'a self, options: &'a ListOptions) -> BoxFuture<'a, Result<BoxWatch<Cached<K>>>> {
        Box::pin(async move {
            let finish = self.finisher();
            let decode = move |raw: &[u8]| finish(Cached::from_json(raw).map_err(not_an_object)?);
            let watch: StreamWatcher<Cached<K>> =
                self.api.watch_decoded(decode).options(self.with_selection(options)).await?;
            let boxed: BoxWatch<Cached<K>> = Box::new(watch);
            Ok(boxed)
        })
    }
}

fn not_an_object(source: crate::cached::NotAnObject) -> Error {
    Error::Decode { what: "object".to_owned(), source: Box::new(source) }
}

/// Any lister-watcher behind a pointer is one.
impl<T: Item, L: ListerWatcher<T> + ?Sized> ListerWatcher<T> for Arc<L> {
    fn list<'a>(&'a self, options: &'a ListOptions, on_item: OnItem<'a, T>) -> BoxFuture<'a, Result<ListMeta>> {
        self.as_ref().list(options, on_item)
    }

    fn watch<'a>(&'a self, options: &'a ListOptions) -> BoxFuture<'a, Result<BoxWatch<T>>> {
        self.as_ref().watch(options)
    }

    fn supports_watch_list(&self) -> bool {
        self.as_ref().supports_watch_list()
    }
}
