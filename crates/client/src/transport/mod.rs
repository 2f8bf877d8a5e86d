//! How a request reaches a server: the [`Transport`] trait and the one over HTTP.
//!
//! A transport is the seam for tests (`fake::FakeServer` is one) and for servers in the same process.

mod body;
mod connect;
mod http;
mod pool;

pub use body::Body;
pub use connect::{Connection, Connector, Io, TcpConnector};
pub use http::HttpTransport;

use crate::Error;
use ::http::{Request, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Carries requests to one server.
pub trait Transport: Send + Sync + std::fmt::Debug + 'static {
    /// Sends `request`, whose URI has scheme and authority, and gives the answer once its head is there, whatever its
    /// status code is.
    ///
    /// # Errors
    /// [`Error::Connect`] and [`Error::Credentials`] if and only if the request had no effect, [`Error::Connection`]
    /// when that is unknown.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, Error>>;
}
