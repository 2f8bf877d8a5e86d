//! Get and list.

use crate::call::Call;
use crate::errors::storage_status;
use crate::options::{ListOptions, VersionMatch};
use crate::resource::Resource;
use crate::select::Selection;
use crate::token;
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;
use pintle_storage::{At, Key, ListRequest, Record, Revision, StorageError};
use std::sync::Arc;

/// What a list found.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The records, in order of their keys.
    pub records: Vec<Arc<Record>>,
    /// The version of the list.
    pub revision: Revision,
    /// Where to go on; empty at the end.
    pub continue_token: String,
    /// How many more there are, where that is known.
    pub remaining: Option<usize>,
}

impl Resource {
    /// Reads an object. `version` is the request's `resourceVersion`, 0 for any, `None` for the newest.
    ///
    /// # Errors
    /// 404; 504 for a version ahead of the store.
    pub async fn get(&self, call: &Call<'_>, version: Option<u64>) -> Result<Arc<Record>> {
        let key = self.store.key(call.namespace, call.name);
        let at = match version.map(Revision::new) {
            None => At::Latest,
            Some(None) => At::Any,
            Some(Some(revision)) => At::NotOlderThan(revision),
        };
        let found = self.store.storage.get(&key, at).await;
        let found = found.map_err(|e| storage_status(&e, self.group_resource(), call.name))?;
        found.record.ok_or_else(|| Box::new(Status::not_found(self.group_resource(), call.name)))
    }

    /// Lists objects.
    ///
    /// # Errors
    /// 400 for bad tokens and selectors, 410 for compacted versions, 504 for versions ahead of the store.
    pub async fn list(&self, call: &Call<'_>, options: &ListOptions) -> Result<Listed> {
        let selection = Selection::new(self, options)?;
        if let Some(name) = selection.single_name() {
            return self.list_one(call, options, &selection, name).await;
        }
        let prefix = self.store.prefix(call.namespace);
        let (at, start, limit) = self.range(options, &prefix)?;
        let is_filtered = !selection.is_everything();
        let request = ListRequest {
            prefix: prefix.clone(),
            start,
            // a filter may need any number of records to fill a page
            limit: if is_filtered { 0 } else { limit },
            at,
        };
        let listing = self.store.storage.list(request).await.map_err(|e| self.list_error(&e, options, &prefix))?;
        let mut records = listing.records;
        let mut remaining = Some(listing.remaining).filter(|n| *n > 0);
        let mut next: Option<Key> = None;
        if is_filtered {
            (records, next) = filter_page(records, limit, |record| selection.matches(&self.store, record));
            remaining = None;
        } else if listing.remaining > 0 {
            next = records.last().map(|record| record.key.clone());
        }
        let revision = listing.revision;
        let continue_token = match &next {
            Some(last) => token::encode(revision, last, &prefix),
            None => String::new(),
        };
        Ok(Listed { records, revision, continue_token, remaining })
    }

    /// A list that a selector narrows to one name reads one key.
    async fn list_one(
        &self,
        call: &Call<'_>,
        options: &ListOptions,
        selection: &Selection<'_>,
        name: &str,
    ) -> Result<Listed> {
        if self.is_namespaced && call.namespace.is_empty() {
            // the name may stand in any namespace
            let request = ListRequest { prefix: self.store.root.clone(), start: None, limit: 0, at: At::Latest };
            let listing =
                self.store.storage.list(request).await.map_err(|e| storage_status(&e, self.group_resource(), name))?;
            let records = listing.records.into_iter().filter(|r| selection.matches(&self.store, r)).collect();
            return Ok(Listed { records, revision: listing.revision, continue_token: String::new(), remaining: None });
        }
        let (at, _, _) = self.range(options, &self.store.prefix(call.namespace))?;
        let found = self.store.storage.get(&self.store.key(call.namespace, name), at).await;
        let found = found.map_err(|e| storage_status(&e, self.group_resource(), name))?;
        let records = found.record.into_iter().filter(|r| selection.matches(&self.store, r)).collect();
        Ok(Listed { records, revision: found.revision, continue_token: String::new(), remaining: None })
    }

    /// Which state, from which key, how many.
    fn range(&self, options: &ListOptions, prefix: &Key) -> Result<(At, Option<Key>, usize)> {
        if !options.continue_token.is_empty() {
            let (revision, start) = token::decode(&options.continue_token, prefix)?;
            if options.resource_version.is_some_and(|version| version != 0) {
                return Err(Box::new(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                )));
            }
            let at = revision.map_or(At::Latest, At::Exact);
            return Ok((at, Some(start), options.limit));
        }
        let at = match (options.resource_version.map(Revision::new), options.version_match) {
            (None, _) => At::Latest,
            // any state will do, and the cache has all of it: the limit is ignored
            (Some(None), _) => return Ok((At::Any, None, 0)),
            (Some(Some(revision)), Some(VersionMatch::Exact)) => At::Exact(revision),
            (Some(Some(revision)), Some(VersionMatch::NotOlderThan)) => At::NotOlderThan(revision),
            (Some(Some(revision)), None) if options.limit > 0 => At::Exact(revision),
            (Some(Some(revision)), None) => At::NotOlderThan(revision),
        };
        Ok((at, None, options.limit))
    }

    fn list_error(&self, error: &StorageError, options: &ListOptions, prefix: &Key) -> Box<Status> {
        match error {
            StorageError::Expired { .. } if !options.continue_token.is_empty() => {
                let mut status = Status::expired(
                    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
                );
                if let Ok((_, start)) = token::decode(&options.continue_token, prefix) {
                    status.continue_token = token::encode_inconsistent(&start, prefix);
                }
                Box::new(status)
            }
            other => storage_status(other, self.group_resource(), ""),
        }
    }
}

/// The first `limit` records that match (all when 0), and the last key looked at when there are more records behind it.
fn filter_page(
    records: Vec<Arc<Record>>,
    limit: usize,
    matches: impl Fn(&Record) -> bool,
) -> (Vec<Arc<Record>>, Option<Key>) {
    let n_records = records.len();
    let mut page = Vec::new();
    for (idx, record) in records.into_iter().enumerate() {
        if !matches(&record) {
            continue;
        }
        let key = record.key.clone();
        page.push(record);
        if limit > 0 && page.len() == limit && idx + 1 < n_records {
            return (page, Some(key));
        }
    }
    (page, None)
}
