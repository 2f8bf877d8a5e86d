//! Resources that are not stored: reviews, bindings, component statuses.

use crate::handle::Incoming;
use crate::reply::{self, Reply};
use bytes::Bytes;
use pintle_apimachinery::Status;

/// Answers a request for a resource that the catalogue of stored ones does not have.
pub(crate) async fn serve<B>(incoming: &Incoming<'_>, body: B) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let _ = body;
    let info = incoming.info;
    let is_builtin_group = pintle_schema::resources().iter().any(|r| r.group == info.group);
    if is_builtin_group {
        return reply::status(&Status::not_found_path(), incoming.accept());
    }
    reply::page_not_found()
}
