//! `pods/log`: what a container has printed, passed on as it comes.

use super::backend::Target;
use super::location;
use super::options::LogOptions;
use crate::body::ResponseBody;
use crate::reply::{self, Reply};
use crate::resources::Request;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, BodyStream, Limited};
use pintle_apimachinery::status::{Details, Result};
use pintle_apimachinery::{Status, Str};

/// Bytes of an agent's refusal that are passed on.
const REFUSAL_BYTES_MAX: usize = 50_000;

pub(super) async fn log(request: &Request<'_>) -> Result<Reply> {
    let name = request.incoming.info.path_name();
    let options = LogOptions::read(request.incoming.query, name)?;
    let Some(target) = location::log(request, &options).await? else {
        return Ok(reply::empty(204));
    };
    let state = request.incoming.state;
    let answer = state.backends.get(&target).await;
    let answer = answer.map_err(|why| Box::new(Status::plain_error(format!("Get \"{}\": {why}", url(&target)))))?;
    if !answer.status().is_success() {
        let code = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), REFUSAL_BYTES_MAX).collect().await;
        let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
        return Err(refusal(code, text, name));
    }
    let mut stopping = state.stopping.clone();
    let stopped = async move {
        // an error means that the server is gone: an end as well
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    };
    let chunks = BodyStream::new(answer.into_body())
        .filter_map(|frame| async move { frame.ok()?.into_data().ok() })
        .take_until(stopped);
    let mut reply = reply::bytes(200, "text/plain", Bytes::new());
    *reply.body_mut() = ResponseBody::stream(chunks);
    Ok(reply)
}

fn url(target: &Target) -> String {
    format!("https://{}{}", target.authority(), target.path)
}

/// What an agent's refusal is to the client.
fn refusal(code: u16, text: String, name: &str) -> Box<Status> {
    let (reason, message) = match code {
        400 => return Box::new(Status::bad_request(text)),
        500 => return Box::new(Status::internal(text)),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        403 => ("Forbidden", "the server does not allow access to the requested resource"),
        404 => ("NotFound", "the server could not find the requested resource"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        _ => ("", "the server responded with a status code that was unexpected"),
    };
    let details = Details { name: name.to_owned(), kind: Str::const_new("pods/log"), ..Details::default() };
    Box::new(Status::failure(code, reason, format!("{message} ( pods/log {name})")).with_details(details))
}
