//! Subresources behind which somebody else answers: a node's agent for `pods/log`, `exec`, `attach` and `portforward`,
//! and whatever listens for `proxy`.
//!
//! What is to be reached follows from objects ([`location`]); [`backend`] reaches it; [`proxy`] passes requests on, and
//! connections once they are upgraded. Nothing here knows what is spoken on them: WebSocket and SPDY go through as they
//! are.

mod backend;
mod location;
mod log;
mod options;
mod proxy;
mod scheme_name_port;

pub use backend::Backends;

use crate::reply::Reply;
use crate::resources::Request;
use bytes::Bytes;
use hyper::upgrade::OnUpgrade;
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;
use pintle_auth::authz::Attributes;
use proxy::Passage;

/// Answers a request for one of these subresources.
pub(crate) async fn serve<B>(request: &Request<'_>, body: B, upgrade: Option<OnUpgrade>) -> Result<Reply>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let info = request.incoming.info;
    match (info.subresource.as_str(), info.verb) {
        ("log", "get") => log::log(request).await,
        ("exec" | "attach" | "portforward", "get" | "create") => {
            refuse_dry_run(request)?;
            let target = match info.subresource.as_str() {
                "portforward" => {
                    may_create(request)?;
                    location::port_forward(request).await?
                }
                kind => {
                    let options = options::StreamOptions::read(request.incoming.query);
                    may_create(request)?;
                    location::stream(request, kind, &options).await?
                }
            };
            proxy::upgraded(request, &target, upgrade).await
        }
        ("proxy", _) => {
            refuse_dry_run(request)?;
            let target = location::proxied(request).await?;
            proxy::pass(request, Passage { target: &target, upgrade }, body).await
        }
        _ => Err(request.method_refused()),
    }
}

/// Whoever opens a stream by GET must be let create one as well: a browser's WebSocket cannot POST.
fn may_create(request: &Request<'_>) -> Result<()> {
    let incoming = request.incoming;
    incoming.state.authorizer.check(&Attributes { verb: "create", ..incoming.attributes() })
}

fn refuse_dry_run(request: &Request<'_>) -> Result<()> {
    let params = crate::options::Params::of(request.incoming.query);
    if params.get("dryRun").is_some_and(|value| !value.is_empty()) {
        return Err(Box::new(Status::bad_request("dryRun is not supported")));
    }
    Ok(())
}
