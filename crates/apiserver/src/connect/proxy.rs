//! Passing requests on, and connections once they are upgraded.
//!
//! Follows: apimachinery/pkg/util/proxy (v0.35). What is different: links in HTML pages are left as they are.

use super::backend::{Body, Target};
use crate::body::ResponseBody;
use crate::handle::Incoming;
use crate::reply::{self, Reply};
use crate::resources::Request;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};
use http_body_util::{BodyExt as _, BodyStream, Empty, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;

/// Bytes of a refused upgrade that are passed on.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// What a proxied request has to be passed on to.
pub(super) struct Passage<'a> {
    pub(super) target: &'a Target,
    pub(super) upgrade: Option<OnUpgrade>,
}

/// Headers that are about one connection alone.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Passes an upgrade on to the target, whose path says what is wanted; anything else is refused.
pub(super) async fn upgraded(request: &Request<'_>, target: &Target, upgrade: Option<OnUpgrade>) -> Result<Reply> {
    let incoming = request.incoming;
    let Some(upgrade) = upgrade.filter(|_| asks_for_upgrade(&incoming.parts.headers)) else {
        return Err(Box::new(Status::bad_request("Upgrade request required")));
    };
    let headers = upgrade_headers(&incoming.parts.headers);
    let passed = send_upgrade(incoming, target, &target.path, headers).await;
    join(incoming, passed.map_err(dial_failed)?, upgrade).await
}

/// Passes any request on.
pub(super) async fn pass<B>(request: &Request<'_>, passage: Passage<'_>, body: B) -> Result<Reply>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (incoming, Passage { target, upgrade }) = (request.incoming, passage);
    let Some(path) = rest_of_path(incoming) else {
        return Ok(redirect_to_root(incoming));
    };
    let base = &target.path;
    let path = match incoming.query {
        "" => format!("{base}{path}"),
        query => format!("{base}{path}?{query}"),
    };
    if let Some(upgrade) = upgrade.filter(|_| asks_for_upgrade(&incoming.parts.headers)) {
        let mut headers = end_to_end(&incoming.parts.headers);
        headers.extend(upgrade_headers(&incoming.parts.headers));
        let passed = send_upgrade(incoming, target, &path, headers).await;
        return join(incoming, passed.map_err(dial_failed)?, upgrade).await;
    }
    let body: Body = body.map_err(|why| why.into()).boxed_unsync();
    let outgoing = outgoing(incoming, target, &path, end_to_end(&incoming.parts.headers), body)?;
    let answer = incoming.state.backends.send(target, outgoing).await;
    let unreachable = |why| Box::new(Status::unavailable(format!("error trying to reach service: {why}")));
    Ok(passed_on(answer.map_err(unreachable)?))
}

fn dial_failed(why: String) -> Box<Status> {
    Box::new(Status::plain_error(format!("error dialing backend: {why}")))
}

fn outgoing(
    incoming: &Incoming<'_>,
    target: &Target,
    path: &str,
    headers: HeaderMap,
    body: Body,
) -> Result<http::Request<Body>> {
    let built = http::Request::builder().method(incoming.parts.method.clone()).uri(path).body(body);
    let mut built = built.map_err(|why| Box::new(Status::bad_request(why.to_string())))?;
    *built.headers_mut() = headers;
    if let Ok(host) = HeaderValue::from_str(&target.authority()) {
        built.headers_mut().insert(header::HOST, host);
    }
    Ok(built)
}

async fn send_upgrade(
    incoming: &Incoming<'_>,
    target: &Target,
    path: &str,
    headers: HeaderMap,
) -> std::result::Result<Response<hyper::body::Incoming>, String> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let request = outgoing(incoming, target, path, headers, body).map_err(|status| status.message.clone())?;
    incoming.state.backends.send(target, request).await
}

/// Whether the client wants to speak something else on the connection.
fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// The headers that an upgrade is about. A bearer token among the protocols is for this server alone.
fn upgrade_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = HeaderMap::new();
    for (name, value) in headers {
        let text = name.as_str();
        let is_wanted =
            matches!(text, "connection" | "upgrade" | "origin" | "user-agent" | "x-stream-protocol-version")
                || text.starts_with("sec-websocket-");
        if !is_wanted {
            continue;
        }
        if text == "sec-websocket-protocol" {
            let protocols = value.to_str().unwrap_or_default().split(',').map(str::trim);
            let rest: Vec<&str> =
                protocols.filter(|p| !p.starts_with("base64url.bearer.authorization.k8s.io.")).collect();
            if let Some(value) = HeaderValue::from_str(&rest.join(", ")).ok().filter(|value| !value.is_empty()) {
                passed.append(name.clone(), value);
            }
            continue;
        }
        passed.append(name.clone(), value.clone());
    }
    passed
}

/// The headers that are for the one who answers: not those about this connection, nor who asks here.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named).chain([header::AUTHORIZATION, header::HOST]) {
        passed.remove(name);
    }
    let about_caller: Vec<HeaderName> =
        passed.keys().filter(|n| n.as_str().starts_with("impersonate-")).cloned().collect();
    for name in about_caller {
        passed.remove(name);
    }
    passed
}

/// The path behind `proxy`, as it was sent. `None` when there is none and a page's own links would lead elsewhere.
fn rest_of_path(incoming: &Incoming<'_>) -> Option<String> {
    let raw = incoming.parts.uri.path();
    let n_rest = incoming.info.parts.len().saturating_sub(3);
    let trimmed = raw.trim_end_matches('/');
    let mut segments: Vec<&str> = trimmed.rsplit('/').take(n_rest).collect();
    segments.reverse();
    let ends_with_slash = raw.ends_with('/');
    if segments.is_empty() {
        let is_page = matches!(incoming.parts.method, Method::GET | Method::HEAD);
        return (ends_with_slash || !is_page).then(|| "/".to_owned());
    }
    let slash = if ends_with_slash { "/" } else { "" };
    Some(format!("/{}{slash}", segments.join("/")))
}

fn redirect_to_root(incoming: &Incoming<'_>) -> Reply {
    let query = if incoming.query.is_empty() { String::new() } else { format!("?{}", incoming.query) };
    let mut reply = reply::empty(301);
    if let Ok(value) = HeaderValue::from_str(&format!("{}/{query}", incoming.parts.uri.path())) {
        reply.headers_mut().insert(header::LOCATION, value);
    }
    reply
}

/// A backend's answer as the server's own.
fn passed_on(answer: Response<hyper::body::Incoming>) -> Reply {
    let (parts, body) = answer.into_parts();
    let chunks = BodyStream::new(body).filter_map(|frame| async move { frame.ok()?.into_data().ok() });
    let mut reply = Response::new(ResponseBody::stream(chunks));
    *reply.status_mut() = parts.status;
    *reply.headers_mut() = end_to_end(&parts.headers);
    reply
}

/// Joins both connections once both are upgraded; what the client is told is what the backend says.
async fn join(incoming: &Incoming<'_>, answer: Response<hyper::body::Incoming>, client: OnUpgrade) -> Result<Reply> {
    let code = answer.status().as_u16();
    if code >= 400 {
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, REFUSAL_BYTES_MAX).collect().await.map(|body| body.to_bytes());
        let mut reply = Response::new(ResponseBody::whole(body.unwrap_or_default()));
        *reply.status_mut() = parts.status;
        *reply.headers_mut() = end_to_end(&parts.headers);
        reply.headers_mut().remove(header::CONTENT_LENGTH);
        return Ok(reply);
    }
    if code != 101 {
        return Err(Box::new(Status::plain_error(format!("invalid upgrade response: status code {code}"))));
    }
    let mut reply = reply::empty(101);
    *reply.headers_mut() = answer.headers().clone();
    let mut stopping = incoming.state.stopping.clone();
    tokio::spawn(async move {
        let both = async {
            let (client, backend) = tokio::try_join!(client, hyper::upgrade::on(answer))?;
            let (mut client, mut backend) = (TokioIo::new(client), TokioIo::new(backend));
            tokio::io::copy_bidirectional(&mut client, &mut backend).await?;
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        };
        tokio::select! {
            ended = both => {
                if let Err(why) = ended {
                    tracing::debug!(%why, "a connection passed through ended");
                }
            }
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
        }
    });
    Ok(reply)
}
