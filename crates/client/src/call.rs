//! [`Call`]: a request that is complete but not sent; options are chained onto it, `.await` sends it.

use crate::client::Client;
use crate::error::Result;
use crate::options::Options;
use crate::request::Request;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::future::IntoFuture;

/// A request to the API that is sent by `.await`.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(client: pintle_client::Client) -> pintle_client::Result<()> {
/// let pods = pintle_client::Api::<Pod>::namespaced(&client, "default");
/// let pod = pods.get("web-0").await?;
/// let page = pods.list().labels("app=web").limit(500).await?;
/// pods.delete("web-0").grace_period(0).await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<'a, O, T> {
    pub(crate) client: &'a Client,
    pub(crate) request: Result<Request>,
    pub(crate) options: O,
    pub(crate) send: Send<T>,
}

/// Sends the finished request and makes a `T` of the answer.
pub(crate) type Send<T> = Box<dyn for<'c> FnOnce(&'c Client, Request) -> BoxFuture<'c, Result<T>> + std::marker::Send>;

/// How the bytes of an answer become a `T`.
pub(crate) type Decode<T> = Box<dyn FnOnce(&Bytes) -> Result<T> + std::marker::Send>;

impl<O: std::fmt::Debug, T> std::fmt::Debug for Call<'_, O, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (request, options) = (&self.request, &self.options);
        f.debug_struct("Call").field("request", request).field("options", options).finish_non_exhaustive()
    }
}

impl<'a, O: Options + Default, T: 'static> Call<'a, O, T> {
    /// A call whose answer is read at once.
    pub(crate) fn new(client: &'a Client, request: Result<Request>, decode: Decode<T>) -> Call<'a, O, T> {
        let send: Send<T> = Box::new(move |client, request| {
            Box::pin(async move {
                let bytes = client.bytes(&request).await?;
                decode(&bytes)
            })
        });
        Call { client, request, options: O::default(), send }
    }

    /// With all of these options instead of those chained so far.
    pub fn options(mut self, options: O) -> Self {
        self.options = options;
        self
    }
}

impl<'a, O, T> IntoFuture for Call<'a, O, T>
where
    O: Options + std::marker::Send + 'a,
    T: 'a,
{
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'a, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut request = self.request?;
            self.options.write(&mut request)?;
            (self.send)(self.client, request).await
        })
    }
}
