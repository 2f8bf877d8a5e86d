//! Subresources: those that update the same object, and those that do something else.

use crate::handle::read_body;
use crate::reply::Reply;
use crate::resources::Request;
use bytes::Bytes;
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;

/// Answers a request for a subresource that the resource has.
pub(crate) async fn serve<B>(request: &Request<'_>, body: B, upgrade: Option<hyper::upgrade::OnUpgrade>) -> Result<Reply>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let _ = upgrade;
    let info = request.incoming.info;
    match (info.subresource.as_str(), info.verb) {
        ("status" | "ephemeralcontainers" | "resize" | "approval" | "finalize", "update") => {
            request.update(read_body(body).await?).await
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", "patch") => request.patch(read_body(body).await?).await,
        ("status" | "ephemeralcontainers" | "resize" | "approval", "get") => request.get().await,
        _ => Err(Box::new(Status::method_not_allowed())),
    }
}
