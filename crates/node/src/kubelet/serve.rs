//! Requests to the agents of nodes.

use super::channels::{Channel, Channels, End};
use super::logs::{self, Log, LogOptions};
use super::streams::{self, Wanted};
use super::{exec, port_forward, websocket};
use bytes::Bytes;
use futures_util::stream::Stream;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::time::parse_time;
use pintle_informer::{Cached, CancellationToken, Lister, ObjectName};
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Connections at once; further ones wait.
const CONNECTIONS_MAX: usize = 1_000;
/// Time for a TLS handshake and a request's head; a slower client is dropped.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is looked whether a container has ended whose log is followed.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Response<Body>;

/// The agents' API.
#[derive(Clone, Debug)]
pub(crate) struct Kubelet {
    pub(crate) pods: Lister<Cached<Pod>>,
    pub(crate) env: Env,
}

impl Kubelet {
    /// Serves until `stop`.
    pub(crate) async fn serve(self, listener: TcpListener, tls: TlsAcceptor, stop: CancellationToken) {
        let permits = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(why) => {
                    /// Pause after the system refuses a connection, so that the loop does not spin.
                    const REFUSED_PAUSE: Duration = Duration::from_millis(50);
                    tracing::debug!(%why, "cannot accept a connection to a simulated node");
                    tokio::time::sleep(REFUSED_PAUSE).await;
                    continue;
                }
            };
            let (this, tls, stop) = (self.clone(), tls.clone(), stop.clone());
            tokio::spawn(async move {
                stop.run_until_cancelled(this.connection(stream, tls)).await;
                drop(permit);
            });
        }
    }

    async fn connection(self, stream: TcpStream, tls: TlsAcceptor) {
        let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await else { return };
        let service = service_fn(move |request| {
            let this = self.clone();
            async move { Ok::<_, Infallible>(this.answer(request)) }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let served = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        if let Err(why) = served.await {
            tracing::debug!(%why, "a connection to a simulated node ended");
        }
    }

    fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path().to_owned();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            ["healthz"] => text(StatusCode::OK, "ok"),
            ["pods"] => self.pod_list(),
            ["stats", "summary"] => text(StatusCode::OK, r#"{"node":{"nodeName":"","startTime":null},"pods":[]}"#),
            ["containerLogs", namespace, pod, container] => {
                self.logs(&request, &ObjectName::new(namespace, pod), container)
            }
            [kind @ ("exec" | "attach"), namespace, pod, container] => {
                self.stream(request, kind, &ObjectName::new(namespace, pod), container)
            }
            ["simulated", namespace, pod, port, ..] => match self.pod(&ObjectName::new(namespace, pod)) {
                Ok(pod) => text(StatusCode::OK, port_forward::page(&pod, port)),
                Err(answer) => *answer,
            },
            ["portForward", namespace, pod] => self.port_forward(request, &ObjectName::new(namespace, pod)),
            _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    fn pod_list(&self) -> Answer {
        let mut out = br#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":["#.to_vec();
        let on_nodes = |pod: &Cached<Pod>| pod.text_at(&["spec", "nodeName"]).is_some();
        for (idx, pod) in self.pods.list_where(on_nodes).iter().enumerate() {
            if idx > 0 {
                out.push(b',');
            }
            out.extend_from_slice(pod.raw());
        }
        out.extend_from_slice(b"]}");
        let mut answer = text(StatusCode::OK, out);
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer
    }

    fn pod(&self, name: &ObjectName) -> Result<Arc<Pod>, Box<Answer>> {
        let found = self.pods.get_by_key(name).and_then(|pod| pod.object().ok());
        found.ok_or_else(|| Box::new(text(StatusCode::NOT_FOUND, format!("pod {:?} not found\n", name.name))))
    }

    fn logs(&self, request: &Request<Incoming>, name: &ObjectName, container: &str) -> Answer {
        let pod = match self.pod(name) {
            Ok(pod) => pod,
            Err(answer) => return *answer,
        };
        let now = self.env.clock.now();
        let options = log_options(request.uri().query().unwrap_or_default(), now);
        let Some((spec, status)) = logs::find(&pod, container) else {
            return text(StatusCode::NOT_FOUND, format!("container {container:?} not found in pod {:?}\n", name.name));
        };
        let run = match logs::run_of(&name.name, container, status, options.previous) {
            Ok(run) => run,
            Err(why) => return text(StatusCode::BAD_REQUEST, why),
        };
        let follows = options.follow;
        let mut log = Log::new(&pod, spec, run, options);
        let first = Bytes::from(log.first(now));
        if !follows || log.is_over() {
            return text(StatusCode::OK, first);
        }
        let following = Following { kubelet: self.clone(), name: name.clone(), container: container.to_owned(), log };
        let mut answer = Response::new(StreamBody::new(following.stream(first)).boxed_unsync());
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        answer
    }

    fn stream(&self, mut request: Request<Incoming>, kind: &str, name: &ObjectName, container: &str) -> Answer {
        let pod = match self.pod(name) {
            Ok(pod) => pod,
            Err(answer) => return *answer,
        };
        let found = logs::find(&pod, container);
        let is_running = |status: &k8s_openapi::api::core::v1::ContainerStatus| {
            status.state.as_ref().is_some_and(|state| state.running.is_some())
        };
        let Some((spec, _)) = found.filter(|(_, status)| status.is_some_and(is_running)) else {
            let text_of = format!("container not found (\"{container}\")");
            return text(StatusCode::NOT_FOUND, text_of);
        };
        let spec = spec.clone();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let set = |key: &str| pairs(&query).any(|(name, value)| name == key && matches!(value.as_ref(), "1" | "true"));
        let wanted = Wanted { stdin: set("input"), stdout: set("output"), stderr: set("error"), tty: set("tty") };
        if !wanted.stdin && !wanted.stdout && !wanted.stderr {
            return text(StatusCode::BAD_REQUEST, "you must specify at least 1 of stdin, stdout, stderr");
        }
        let command: Vec<String> =
            pairs(&query).filter(|(key, _)| key == "command").map(|(_, value)| value.into_owned()).collect();
        let command = (kind == "exec").then_some(command);
        let upgrade = hyper::upgrade::on(&mut request);
        let (transport, answer) = match accept(request.headers(), &websocket::CHANNEL_PROTOCOLS, "v4.channel.k8s.io") {
            Ok(accepted) => accepted,
            Err(answer) => return *answer,
        };
        let (this, name) = (self.clone(), name.clone());
        tokio::spawn(async move {
            let Some(channels) = open(upgrade, transport, wanted).await else { return };
            this.work(&pod, &spec, &name, command, wanted, channels).await;
        });
        answer
    }

    /// Does what a stream was opened for.
    async fn work(
        self,
        pod: &Pod,
        container: &Container,
        name: &ObjectName,
        command: Option<Vec<String>>,
        wanted: Wanted,
        channels: Channels,
    ) {
        match command {
            Some(command) => {
                let now = self.env.clock.now();
                exec::exec(pod, container, &command, wanted.tty, channels, now).await;
            }
            None => self.attach(pod, container, name, wanted.tty, channels).await,
        }
    }

    /// Shows what the container prints from now on, until it ends.
    async fn attach(&self, pod: &Pod, container: &Container, name: &ObjectName, is_tty: bool, mut channels: Channels) {
        let status = logs::find(pod, &container.name).and_then(|(_, status)| status);
        let Ok(run) = logs::run_of(&name.name, &container.name, status, false) else {
            return channels.end(End::Success).await;
        };
        let mut log = Log::new(pod, container, run, LogOptions::default());
        // what was printed before is for those who read the log
        log.first(self.env.clock.now());
        loop {
            let end = self.end_of(name, &container.name, run.started);
            if let Some((ended, _)) = end {
                log.end(ended);
            }
            let text = log.more(self.env.clock.now());
            let text = if is_tty { text.replace('\n', "\r\n") } else { text };
            if !text.is_empty() && !channels.print(Channel::Stdout, text).await {
                return;
            }
            if let Some((_, code)) = end {
                return channels.end(if code == 0 { End::Success } else { End::Code(code) }).await;
            }
            tokio::select! {
                () = tokio::time::sleep(self.pause(&log)) => {}
                // nobody reads it
                Some(_) = channels.stdin.recv() => {}
                () = channels.messages.closed() => return,
            }
        }
    }

    /// When and how the run of a container that began at `started` ended, if it has.
    fn end_of(&self, name: &ObjectName, container: &str, started: Timestamp) -> Option<(Timestamp, i32)> {
        let now = self.env.clock.now();
        let Some(pod) = self.pods.get_by_key(name).and_then(|pod| pod.object().ok()) else { return Some((now, 0)) };
        let status = logs::find(&pod, container).and_then(|(_, status)| status)?;
        let states = [status.state.as_ref(), status.last_state.as_ref()];
        let ends = states.into_iter().flatten().filter_map(|state| state.terminated.as_ref());
        let mut ours = ends.filter(|end| end.started_at.as_ref().is_some_and(|at| at.0 == started));
        ours.next().map(|end| (end.finished_at.as_ref().map_or(now, |at| at.0), end.exit_code))
    }

    /// How long to wait for the next line of a log.
    fn pause(&self, log: &Log) -> Duration {
        let until_next = log.next().map(|next| next.duration_since(self.env.clock.now()));
        let pause = until_next.and_then(|pause| Duration::try_from(pause).ok()).filter(|pause| !pause.is_zero());
        pause.unwrap_or(FOLLOW_INTERVAL).min(FOLLOW_INTERVAL)
    }

    fn port_forward(&self, mut request: Request<Incoming>, name: &ObjectName) -> Answer {
        let pod = match self.pod(name) {
            Ok(pod) => pod,
            Err(answer) => return *answer,
        };
        let upgrade = hyper::upgrade::on(&mut request);
        let accepted = accept(request.headers(), &[websocket::TUNNEL_PROTOCOL], "portforward.k8s.io");
        let (transport, answer) = match accepted {
            Ok(accepted) => accepted,
            Err(answer) => return *answer,
        };
        tokio::spawn(async move {
            let Ok(upgraded) = upgrade.await else { return };
            match transport {
                Transport::WebSocket => {
                    let tunnel = websocket::tunnel(websocket::socket(upgraded).await);
                    port_forward::serve(tunnel, pod).await;
                }
                Transport::Spdy => port_forward::serve(TokioIo::new(upgraded), pod).await,
            }
        });
        answer
    }
}

/// A log that is followed.
struct Following {
    kubelet: Kubelet,
    name: ObjectName,
    container: String,
    log: Log,
}

impl Following {
    fn stream(self, first: Bytes) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        futures_util::stream::unfold((Some(first), self), |(first, mut this)| async move {
            if let Some(first) = first.filter(|first| !first.is_empty()) {
                return Some((Ok(Frame::data(first)), (None, this)));
            }
            loop {
                if this.log.is_over() {
                    return None;
                }
                if let Some((ended, _)) = this.kubelet.end_of(&this.name, &this.container, this.log.started()) {
                    this.log.end(ended);
                }
                let text = this.log.more(this.kubelet.env.clock.now());
                if !text.is_empty() {
                    return Some((Ok(Frame::data(Bytes::from(text))), (None, this)));
                }
                if !this.log.is_over() {
                    tokio::time::sleep(this.kubelet.pause(&this.log)).await;
                }
            }
        })
    }
}

/// What a connection is upgraded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    WebSocket,
    Spdy,
}

async fn open(upgrade: OnUpgrade, transport: Transport, wanted: Wanted) -> Option<Channels> {
    let upgraded = upgrade.await.ok()?;
    match transport {
        Transport::WebSocket => Some(websocket::carry(websocket::socket(upgraded).await)),
        Transport::Spdy => streams::carry(TokioIo::new(upgraded), wanted).await,
    }
}

/// Agrees with the client on what to speak: over a WebSocket one of `protocols`, over SPDY `spdy`.
fn accept(
    headers: &HeaderMap,
    protocols: &[&'static str],
    spdy: &'static str,
) -> Result<(Transport, Answer), Box<Answer>> {
    let values = |name: &str| -> Vec<String> {
        let all = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
    };
    let mut answer = text(StatusCode::SWITCHING_PROTOCOLS, "");
    answer.headers_mut().clear();
    let mut set = |name: &'static str, value: HeaderValue| answer.headers_mut().insert(name, value);
    set("connection", HeaderValue::from_static("Upgrade"));
    let upgrades = values("upgrade");
    if upgrades.iter().any(|upgrade| upgrade.eq_ignore_ascii_case("websocket")) {
        let offered = values("sec-websocket-protocol");
        let agreed = protocols.iter().find(|protocol| offered.iter().any(|offer| offer == *protocol));
        let Some(key) = headers.get("sec-websocket-key") else {
            return Err(Box::new(text(StatusCode::BAD_REQUEST, "a WebSocket needs a Sec-WebSocket-Key\n")));
        };
        let Some(agreed) = agreed else {
            let why = format!("none of the protocols is known, which are: {}\n", offered.join(", "));
            return Err(Box::new(text(StatusCode::FORBIDDEN, why)));
        };
        set("upgrade", HeaderValue::from_static("websocket"));
        set("sec-websocket-protocol", HeaderValue::from_static(agreed));
        let digest = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        if let Ok(value) = HeaderValue::from_str(&digest) {
            set("sec-websocket-accept", value);
        }
        return Ok((Transport::WebSocket, answer));
    }
    if upgrades.iter().any(|upgrade| upgrade.eq_ignore_ascii_case("SPDY/3.1")) {
        if !values("x-stream-protocol-version").iter().any(|offer| offer == spdy) {
            let why = format!("unable to negotiate protocol: server supports [{spdy}]\n");
            return Err(Box::new(text(StatusCode::FORBIDDEN, why)));
        }
        set("upgrade", HeaderValue::from_static("SPDY/3.1"));
        set("x-stream-protocol-version", HeaderValue::from_static(spdy));
        return Ok((Transport::Spdy, answer));
    }
    Err(Box::new(text(StatusCode::BAD_REQUEST, "Upgrade request required\n")))
}

fn log_options(query: &str, now: Timestamp) -> LogOptions {
    let mut options = LogOptions::default();
    for (key, value) in pairs(query) {
        let is_set = matches!(value.as_ref(), "1" | "true");
        match key.as_ref() {
            "follow" => options.follow = is_set,
            "previous" => options.previous = is_set,
            "timestamps" => options.timestamps = is_set,
            "tailLines" => options.tail_lines = value.parse().ok(),
            "limitBytes" => options.limit_bytes = value.parse().ok(),
            "sinceTime" => options.since = parse_time(&value),
            "sinceSeconds" => {
                let seconds = value.parse().ok().map(Duration::from_secs);
                options.since = seconds.and_then(|seconds| now.checked_sub(seconds).ok());
            }
            "stream" => {
                options.stream = match value.as_ref() {
                    "Stdout" => Some(false),
                    "Stderr" => Some(true),
                    _ => None,
                }
            }
            _ => {}
        }
    }
    options
}

/// The decoded pairs of a query.
fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), decode(value))
    })
}

/// Resolves percent escapes and `+`; broken ones stay as they are.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        rest = match (byte, escaped) {
            (b'%', Some(byte)) => {
                out.push(byte);
                &after[2..]
            }
            (b'+', _) => {
                out.push(b' ');
                after
            }
            _ => {
                out.push(byte);
                after
            }
        };
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

fn text(code: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = code;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
