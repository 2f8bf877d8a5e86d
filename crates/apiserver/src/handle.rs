//! One request from its head to its reply: who, may they, what, and the answer.

use crate::body::ResponseBody;
use crate::negotiate::Output;
use crate::query::decode;
use crate::reply::{self, Reply};
use crate::request_info::RequestInfo;
use crate::resources;
use crate::state::State;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Str};
use pintle_auth::authn::{PeerCertificate, RequestParts};
use pintle_auth::authz::Attributes;
use pintle_kinds::UserInfo;
use pintle_registry::Caller;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a request's body may have (upstream's `--max-request-body-bytes`); larger ones get 413.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A request with everything known of it.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The server.
    pub state: &'a Arc<State>,
    /// Head of the request.
    pub parts: &'a Parts,
    /// What path and method ask for.
    pub info: &'a RequestInfo,
    /// Who asks, after impersonation.
    pub user: &'a UserInfo,
    /// The query.
    pub query: &'a str,
}

impl Incoming<'_> {
    /// The `Accept` header.
    pub fn accept(&self) -> &str {
        header_text(self.parts, header::ACCEPT)
    }

    /// The output, laid out for people where the query says so, or says nothing and a browser or the like asks.
    pub(crate) fn laid_out(&self, output: Output) -> Output {
        const TOOLS_OF_PEOPLE: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];
        let said = crate::options::Params::of(self.query).flag("pretty");
        let agent = header_text(self.parts, header::USER_AGENT);
        let wanted = said.unwrap_or_else(|| TOOLS_OF_PEOPLE.iter().any(|tool| agent.starts_with(tool)));
        Output { pretty: output.pretty || wanted, ..output }
    }

    /// The `Content-Type` header.
    pub fn content_type(&self) -> &str {
        header_text(self.parts, header::CONTENT_TYPE)
    }

    /// Who asks and how it calls itself.
    pub fn caller(&self) -> Caller {
        Caller { user: self.user.clone(), default_manager: manager_of(header_text(self.parts, header::USER_AGENT)) }
    }

    /// What this request wants, for authorizers.
    pub fn attributes(&self) -> Attributes<'_> {
        attributes(self.user, self.info)
    }
}

/// What a request wants, for authorizers.
fn attributes<'a>(user: &'a UserInfo, info: &'a RequestInfo) -> Attributes<'a> {
    if !info.is_resource {
        return Attributes::path(user, info.verb, &info.path);
    }
    Attributes {
        version: &info.version,
        path: &info.path,
        subresource: &info.subresource,
        ..Attributes::resource(user, info.verb, &info.group, &info.resource).at(&info.namespace, &info.name)
    }
}

fn header_text(parts: &Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The name under which a client owns fields: its user agent up to the slash, without what cannot be printed.
fn manager_of(user_agent: &str) -> Str {
    if user_agent.is_empty() {
        return Str::const_new("unknown");
    }
    let mut out = Str::default();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| !c.is_control()) {
        if out.len() + c.len_utf8() > pintle_kinds::meta::FIELD_MANAGER_BYTES_MAX {
            break;
        }
        out.push(c);
    }
    out
}

/// Answers a request.
pub async fn handle<B>(state: Arc<State>, peer: Option<Arc<PeerCertificate>>, request: Request<B>) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (mut parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    let mut reply = match decode(&path, false) {
        Some(path) => {
            let info = RequestInfo::of(&parts.method, &path, &query);
            let measured = state.metrics.begin(&info, &parts.method);
            let limit = (!info.is_long_running()).then_some(state.inflight.request_timeout);
            let is_read_only = info.is_read_only();
            let accept = header_text(&parts, header::ACCEPT).to_owned();
            let routed = route(state.clone(), peer, Head { parts, info, query }, body, upgrade);
            let reply = if is_read_only {
                within(limit, routed, &accept).await
            } else {
                within(limit, detached(routed), &accept).await
            };
            measured.end(reply.status().as_u16());
            reply
        }
        None => reply::status(&Status::bad_request("the path has a broken percent escape"), ""),
    };
    let id = state.env.ids.uid();
    if let Ok(id) = HeaderValue::from_str(&id) {
        reply.headers_mut().insert("audit-id", id);
    }
    if is_head {
        *reply.body_mut() = ResponseBody::empty();
    }
    reply
}

/// The answer, or 504 when it takes longer than `limit`: what was to be written may or may not be.
async fn within(limit: Option<Duration>, work: impl Future<Output = Reply>, accept: &str) -> Reply {
    let Some(limit) = limit else { return work.await };
    match tokio::time::timeout(limit, work).await {
        Ok(reply) => reply,
        Err(_) => reply::status(&Status::timeout("request did not complete within the allotted timeout", 0), accept),
    }
}

/// Work that runs to its end even if its client has gone or its time is over: a write that is half done would leave
/// behind what belongs to it, such as addresses it was given.
async fn detached(work: impl Future<Output = Reply> + Send + 'static) -> Reply {
    tokio::spawn(work).await.unwrap_or_else(|why| {
        tracing::error!(%why, "a request was not served to its end");
        let message = "This request caused apiserver to panic. Look in the logs for details.";
        reply::status(&Status::internal(message), "application/json")
    })
}

/// What is known of a request before anybody looks at its body.
struct Head {
    parts: Parts,
    info: RequestInfo,
    query: String,
}

async fn route<B>(
    state: Arc<State>,
    peer: Option<Arc<PeerCertificate>>,
    head: Head,
    body: B,
    upgrade: Option<hyper::upgrade::OnUpgrade>,
) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let Head { parts, info, query } = &head;
    let accept = header_text(parts, header::ACCEPT).to_owned();
    let identified = match identify(&state, peer.as_deref(), parts).await {
        Ok(identified) => identified,
        Err(status) => return reply::status(&status, &accept),
    };
    let Identified { user, warnings } = identified;
    let _turn = match state.inflight.turn(info, &user).await {
        Ok(turn) => turn,
        Err(status) => return reply::status(&status, &accept),
    };
    let incoming = Incoming { state: &state, parts, info, user: &user, query };
    if let Err(status) = state.authorizer.check(&incoming.attributes()) {
        let mut reply = reply::status(&status, "application/json");
        if info.is_resource || status.code != 403 {
            reply::add_warnings(&mut reply, &warnings);
        }
        return reply;
    }
    let mut reply = if info.path.starts_with("//") {
        // no route begins so
        reply::page_not_found()
    } else if info.is_resource {
        resources::serve(&incoming, body, upgrade).await
    } else {
        crate::documents::serve(&incoming, body).await
    };
    reply::add_warnings(&mut reply, &warnings);
    reply
}

struct Identified {
    user: UserInfo,
    warnings: Vec<String>,
}

/// Who sends the request, and whom they act as.
async fn identify(state: &State, peer: Option<&PeerCertificate>, parts: &Parts) -> Result<Identified> {
    let request = RequestParts { headers: &parts.headers, peer };
    let authenticated = state.authenticator.authenticate(&request).await;
    let authenticated = match authenticated {
        Ok(Some(authenticated)) => authenticated,
        Ok(None) => return Err(Box::new(Status::unauthorized())),
        Err(why) => {
            tracing::debug!(%why, "unauthenticated request");
            return Err(Box::new(Status::unauthorized()));
        }
    };
    let acts_as = pintle_auth::impersonation::impersonate(&parts.headers, &authenticated.user, &*state.authorizer)?;
    Ok(Identified { user: acts_as.unwrap_or(authenticated.user), warnings: authenticated.warnings })
}

/// Reads a body to its end.
///
/// # Errors
/// 413 when it is larger than [`BODY_BYTES_MAX`], 400 when it breaks off.
pub async fn read_body<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    match Limited::new(Box::pin(body), BODY_BYTES_MAX).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(why) if why.is::<LengthLimitError>() => {
            Err(Box::new(Status::too_large(format!("limit is {BODY_BYTES_MAX}"))))
        }
        Err(why) => Err(Box::new(Status::bad_request(format!("the body could not be read: {why}")))),
    }
}
