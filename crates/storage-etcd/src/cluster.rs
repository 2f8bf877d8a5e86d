//! The members of one cluster: requests go to one of them, and to the next when it fails.

use crate::endpoint::{Connection, Endpoint, tls_config};
use crate::fault::Fault;
use crate::options::{Options, OptionsError};
use crate::proto::{Call, WatchRequest, WatchResponse};
use futures_util::Stream;
use http::uri::PathAndQuery;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// Time for one attempt. etcd itself gives up after 7 s.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(8);

/// Time for all attempts of one request. Then it fails as `Unavailable`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Pause before another attempt, when every member was tried.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Whether a request may be sent again when nobody knows whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or the second time nothing more.
    Freely,
    /// Only when it was not begun.
    NotBegun,
}

/// The members of one cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Never empty.
    endpoints: Vec<Endpoint>,
    current: Mutex<Current>,
    /// Held while a connection is made.
    connecting: tokio::sync::Mutex<()>,
}

/// The member in use.
#[derive(Debug, Default)]
struct Current {
    /// Grows with each connection and each failure; modulo the number of endpoints it is the one to use.
    turn: usize,
    /// None: to be connected.
    connection: Option<Connection>,
}

/// A connection together with its turn, by which a failure is reported.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    connection: Connection,
    turn: usize,
}

impl Cluster {
    pub(crate) fn new(options: &Options) -> Result<Cluster, OptionsError> {
        let mut config = None;
        let mut tls = || match &config {
            Some(config) => Ok(Arc::clone(config)),
            None => tls_config(&options.tls).inspect(|made| config = Some(Arc::clone(made))),
        };
        let endpoints: Vec<Endpoint> =
            options.endpoints.iter().map(|url| Endpoint::parse(url, &mut tls)).collect::<Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err(OptionsError::NoEndpoint);
        }
        Ok(Cluster { endpoints, current: Mutex::default(), connecting: tokio::sync::Mutex::default() })
    }

    /// How many members there are.
    pub(crate) fn n_members(&self) -> usize {
        self.endpoints.len()
    }

    fn connected(&self) -> Option<Member> {
        let current = self.current.lock();
        let connection = current.connection.clone().filter(|connection| !connection.is_closed())?;
        Some(Member { connection, turn: current.turn })
    }

    /// A connection to some member.
    ///
    /// # Errors
    /// Why each of them cannot be reached.
    pub(crate) async fn member(&self) -> Result<Member, String> {
        if let Some(member) = self.connected() {
            return Ok(member);
        }
        let _one_is_enough = self.connecting.lock().await;
        if let Some(member) = self.connected() {
            return Ok(member);
        }
        let first = self.current.lock().turn;
        let mut failures = Vec::new();
        for n in 0..self.endpoints.len() {
            let Some(endpoint) = self.endpoints.get((first + n) % self.endpoints.len()) else { continue };
            match endpoint.connect().await {
                Ok(connection) => {
                    let turn = first + n;
                    *self.current.lock() = Current { turn, connection: Some(connection.clone()) };
                    tracing::debug!(endpoint = endpoint.name(), "connected to etcd");
                    return Ok(Member { connection, turn });
                }
                Err(error) => failures.push(format!("{}: {error}", endpoint.name())),
            }
        }
        Err(failures.join("; "))
    }

    /// The member is of no use any more: the next one is to be used.
    pub(crate) fn pass_over(&self, member: &Member) {
        let mut current = self.current.lock();
        if current.turn == member.turn {
            *current = Current { turn: member.turn + 1, connection: None };
        }
    }

    /// Sends a request until it is answered.
    pub(crate) async fn call<C: Call>(&self, request: C, repeat: Repeat) -> Result<C::Answer, Fault> {
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let mut n_attempts = 0;
        loop {
            let fault = match self.member().await {
                Err(why) => Fault::NotBegun(why),
                Ok(member) => match attempt(&member, request.clone()).await {
                    Ok(answer) => return Ok(answer),
                    Err(fault) => {
                        if fault.is_of_the_member() {
                            self.pass_over(&member);
                        }
                        fault
                    }
                },
            };
            n_attempts += 1;
            let is_repeated = match &fault {
                Fault::NotBegun(_) => true,
                Fault::Unknown(_) => repeat == Repeat::Freely,
                _ => false,
            };
            if !is_repeated || Instant::now() + RETRY_PAUSE >= deadline {
                return Err(fault);
            }
            if n_attempts % self.endpoints.len() == 0 || matches!(fault, Fault::NotBegun(_)) {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    /// Asks one member once, the `idx`-th.
    pub(crate) async fn ask_member<C: Call>(&self, idx: usize, request: C) -> Result<(&str, C::Answer), Fault> {
        let Some(endpoint) = self.endpoints.get(idx) else { return Err(Fault::NotBegun("no such member".to_owned())) };
        let connection =
            endpoint.connect().await.map_err(|error| Fault::NotBegun(format!("{}: {error}", endpoint.name())))?;
        let answer = attempt(&Member { connection, turn: 0 }, request).await?;
        Ok((endpoint.name(), answer))
    }

    /// Opens a stream of watches on a member.
    pub(crate) async fn watch(
        &self,
        member: &Member,
        requests: impl Stream<Item = WatchRequest> + Send + 'static,
    ) -> Result<Streaming<WatchResponse>, Fault> {
        let mut grpc = grpc(member);
        let opened = async {
            grpc.ready().await.map_err(unsent)?;
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let path = PathAndQuery::from_static(WatchRequest::PATH);
            grpc.streaming(with_leader(requests), path, codec).await.map_err(|status| Fault::of(&status))
        };
        match timeout_at(Instant::now() + ATTEMPT_TIMEOUT, opened).await {
            Ok(opened) => opened.map(tonic::Response::into_inner),
            Err(_) => Err(Fault::Unknown("no answer in time".to_owned())),
        }
    }
}

async fn attempt<C: Call>(member: &Member, request: C) -> Result<C::Answer, Fault> {
    let mut grpc = grpc(member);
    let answered = async {
        grpc.ready().await.map_err(unsent)?;
        let codec = ProstCodec::<C, C::Answer>::default();
        let path = PathAndQuery::from_static(C::PATH);
        grpc.unary(with_leader(request), path, codec).await.map_err(|status: Status| Fault::of(&status))
    };
    match timeout_at(Instant::now() + ATTEMPT_TIMEOUT, answered).await {
        Ok(answered) => answered.map(tonic::Response::into_inner),
        Err(_) => Err(Fault::Unknown("no answer in time".to_owned())),
    }
}

fn grpc(member: &Member) -> Grpc<Connection> {
    // Pages of a list are as large as their objects are; etcd's own limit bounds them.
    Grpc::with_origin(member.connection.clone(), member.connection.origin.clone())
        .max_decoding_message_size(usize::MAX)
        .max_encoding_message_size(usize::MAX)
}

/// The connection broke before the request was sent.
fn unsent(error: hyper::Error) -> Fault {
    Fault::NotBegun(error.to_string())
}

/// A member that has lost the others refuses what carries this, instead of letting it wait.
fn with_leader<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    request
}
