//! Lists that are asked for in pages, so that neither side holds an answer of any size at once.

use crate::api::Api;
use crate::error::Result;
use crate::list::ObjectList;
use crate::options::ListOptions;
use crate::resource::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;

/// Objects in one page where the caller has no opinion. client-go's pager asks for as many.
pub const PAGE_SIZE_DEFAULT: u32 = 500;

impl<K: Object> Api<K> {
    /// Reads all objects, `page_size` at a time. When the pages take longer than the server remembers the moment that
    /// they show, everything is asked for at once instead: what is returned is always one moment of the server.
    ///
    /// # Errors
    /// As [`Api::list`].
    pub async fn list_in_pages(&self, options: &ListOptions, page_size: u32) -> Result<ObjectList<K>> {
        let mut all: Option<ObjectList<K>> = None;
        let collect = |mut page: ObjectList<K>| {
            match &mut all {
                Some(all) => all.items.append(&mut page.items),
                none => *none = Some(page),
            }
            Ok(())
        };
        match self.each_page(options, page_size, collect).await {
            Ok(()) => {}
            Err(error) if error.is_expired() && all.is_some() => {
                let newest = ListOptions { limit: None, resource_version: String::new(), ..options.clone() };
                return self.list().options(ListOptions { resource_version_match: None, ..newest }).await;
            }
            Err(error) => return Err(error),
        }
        let mut all = all.unwrap_or_else(|| ObjectList { metadata: ListMeta::default(), items: Vec::new() });
        all.metadata.continue_ = None;
        all.metadata.remaining_item_count = None;
        Ok(all)
    }

    /// Hands all objects to `on_page`, `page_size` at a time: no more than one page is in memory.
    ///
    /// # Errors
    /// As [`Api::list`]; [`Error::is_expired`](crate::Error::is_expired) when the pages took longer than the server
    /// remembers; whatever `on_page` gives.
    pub async fn each_page(
        &self,
        options: &ListOptions,
        page_size: u32,
        mut on_page: impl FnMut(ObjectList<K>) -> Result<()> + Send,
    ) -> Result<()> {
        let mut options = ListOptions { limit: Some(page_size), ..options.clone() };
        loop {
            let page = self.list().options(options.clone()).await?;
            let next = page.continue_token().map(str::to_owned);
            on_page(page)?;
            let Some(token) = next else { return Ok(()) };
            options.continue_token = token;
            // the token says which moment
            options.resource_version = String::new();
            options.resource_version_match = None;
        }
    }
}
