//! Composes and runs the API server.

use crate::admission::{PluginFlags, admission};
use crate::exit::Failure;
use crate::flags::{AccessFlags, RequestHeaderFlags, ServerFlags};
use crate::storage;
use anyhow::{Context, Result, bail};
use pintle_admission::webhook::{Caller, HttpCaller, Routing, ServiceResolver};
use pintle_apimachinery::Str;
use pintle_apimachinery::env::Env;
use pintle_apiserver::State;
use pintle_apiserver::connect::Backends;
use pintle_apiserver::health::Health;
use pintle_apiserver::inflight::Inflight;
use pintle_apiserver::openid::OpenId;
use pintle_auth::Lookup;
use pintle_auth::authn::{
    AudienceAgnostic, Authenticator, BootstrapTokens, ClientCa, Config, FrontProxy, ServiceAccountTokens,
    TokenAuthenticator, TokenFile,
};
use pintle_auth::authz::node::{self, Nodes};
use pintle_auth::authz::rbac::Rbac;
use pintle_auth::authz::{Authorizer, Chain};
use pintle_auth::bootstrap::{self, KubernetesService, RequestHeader, Seed};
use pintle_auth::pki::{Kubeconfig, Pair, Pki, ServingNames, agent_client_config, agent_server_config, server_config};
use pintle_auth::review::TokenRequests;
use pintle_auth::token::{Issuer, SigningKey, VerifyKey};
use pintle_registry::allocate::{Cidr, PoolOptions, ServicePools};
use pintle_registry::definitions::Definitions;
use pintle_registry::lookup::CatalogLookup;
use pintle_registry::{Catalog, World, feed};
use pintle_storage::Storage;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A server that is ready to be run.
pub(crate) struct Server {
    listener: TcpListener,
    tls: tokio_rustls::TlsAcceptor,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    grace: Duration,
    /// Where the administrator's kubeconfig is.
    pub(crate) kubeconfig: PathBuf,
    /// The server's URL.
    pub(crate) url: String,
    /// How the API of simulated nodes is spoken to, if there are to be any.
    pub(crate) simulated_nodes: Option<Arc<rustls::ServerConfig>>,
}

/// Who works with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Others, elsewhere.
    Server,
    /// A whole cluster in this process, with simulated nodes.
    Cluster,
}

/// The keys with which service account tokens are signed and checked.
struct TokenKeys {
    signing: Arc<SigningKey>,
    verifying: Vec<VerifyKey>,
}

impl Server {
    /// Prepares everything up to the open port.
    pub(crate) async fn open(flags: &ServerFlags, purpose: Purpose) -> Result<Server> {
        let env = Env::system();
        let advertised = advertised(flags);
        let ranges =
            flags.services.service_cluster_ip_range.iter().map(|range| Cidr::parse(range).map_err(anyhow::Error::msg));
        let ranges = ranges.collect::<Result<Vec<Cidr>>>().context("--service-cluster-ip-range")?;
        let Some(first_range) = ranges.first() else { bail!("--service-cluster-ip-range names no range") };
        let service_ip = first_range.first();
        let home = storage::Home::of(&flags.storage, flags.data_dir.as_deref());
        let data_dir = home.data_dir();
        make_directory(data_dir)?;
        // the store first: its lock tells whether somebody else works in the directory
        let backends = storage::Backends::open(&flags.storage, &home, &env).await?;
        let listener = listen(flags).await?;
        let port = listener.local_addr().context("cannot tell the port that was opened")?.port();

        let pki = Pki::open(&data_dir.join("pki"), &env).context("cannot prepare keys and certificates")?;
        let mut hosts = flags.tls_san.clone();
        hosts.push(advertised.to_string());
        let serving = serving(flags, &pki, &ServingNames::of_cluster(&hosts, &[service_ip], "cluster.local"))?;
        let admin = pki.client("admin", "admin", &["system:masters"])?;
        let simulated_nodes = match purpose {
            Purpose::Server => None,
            Purpose::Cluster => Some(Arc::new(agent_server_config(&pki.simulated_nodes()?, &pki.ca.certificate)?)),
        };
        let keys = token_keys(&flags.access, &pki)?;

        let factory = Arc::new(storage::Factory::new(backends.clone(), &flags.storage)?);
        let catalog = Arc::new(Catalog::new(factory, &flags.storage.etcd_prefix, flags.storage.event_ttl));
        let (rbac, nodes) = (Arc::new(Rbac::new()), Arc::new(Nodes::new()));
        let authorizer = Arc::new(authorizer(&flags.access.authorization_mode, &rbac, &nodes)?);
        let plugins = PluginFlags {
            enable: &flags.admission.enable_admission_plugins,
            disable: &flags.admission.disable_admission_plugins,
        };
        let caller = webhook_caller(flags, &catalog, &env);
        let admission = admission(&plugins, &catalog, authorizer.clone(), &rbac, caller.clone(), &env)?;
        let world = World { env: env.clone(), admission };
        open_pools(flags, ranges, &catalog, backends.main().clone(), &env).await?;
        let endpoint = if advertised.is_loopback() { outbound_address() } else { Some(advertised) };
        let at =
            endpoint.map(|advertise_address| KubernetesService { cluster_ip: service_ip, advertise_address, port });
        let proxy = request_header(&flags.request_header)?;
        let ranges = &flags.services.service_cluster_ip_range;
        let seeds = seeds(at.as_ref(), ranges, &pki, proxy.as_ref(), &env);
        pintle_registry::bootstrap::seed(&catalog, &world, seeds).await.context("cannot write the first objects")?;
        tokio::spawn(pintle_registry::identity::keep(catalog.clone(), world.clone(), host_name()));
        tokio::spawn(pintle_registry::flow_schemas::keep(catalog.clone(), env.clone()));
        feed::feed(&catalog, feed::RBAC_RESOURCES, rbac).await;
        tokio::spawn(feed_nodes(catalog.clone(), nodes));
        let definitions = Definitions::new(catalog.clone(), env.clone(), caller).map_err(anyhow::Error::msg)?;
        definitions.start().await;

        let lookup: Arc<dyn Lookup> = Arc::new(CatalogLookup::new(catalog.clone()));
        let (config, audiences) = authentication(flags, &pki, &keys, &lookup, &env)?;
        let url = format!("https://{}", SocketAddr::new(advertised, port));
        let issuer = flags.access.service_account_issuer.first().cloned().unwrap_or_default();
        let (stop, stopping) = watch::channel(false);
        let openid = OpenId::new(&issuer, &url, &keys.verifying).unwrap_or_else(|why| {
            tracing::warn!(%why, "OpenID discovery is not served");
            OpenId::none()
        });
        let tokens = TokenRequests {
            issuer: Issuer { url: Str::new(&issuer), key: keys.signing.clone() },
            api_audiences: audiences,
            max_expiration_seconds: 0,
            extends_expiration: true,
            lookup,
            env: env.clone(),
        };
        let state = Arc::new(State {
            env: env.clone(),
            catalog,
            world,
            authenticator: Authenticator::new(config, env),
            authorizer,
            inflight: Inflight::new(
                flags.requests.max_requests_inflight,
                flags.requests.max_mutating_requests_inflight,
                flags.requests.request_timeout,
            ),
            metrics: pintle_apiserver::metrics::Metrics::default(),
            health: health(backends, stopping.clone()),
            backends: connections(&pki, purpose)?,
            tokens,
            openid,
            stopping,
        });
        let tls = Arc::new(server_config(&serving, &client_authorities(flags, &pki)?, &[b"h2", b"http/1.1"])?).into();
        let kubeconfig = data_dir.join("kubeconfig");
        Kubeconfig { name: "pintle", server: &url, ca: &pki.ca.certificate, user: "admin", client: &admin }
            .write(&kubeconfig)
            .context("cannot write the kubeconfig")?;
        let grace = Duration::from_secs(flags.shutdown_grace_seconds);
        Ok(Server { listener, tls, state, stop, grace, kubeconfig, url, simulated_nodes })
    }

    /// Serves until `ended`, then lets what runs finish within the grace period.
    pub(crate) async fn run(self, ended: impl Future<Output = ()>) {
        let Server { listener, tls, state, stop, grace, .. } = self;
        let ended = async move {
            ended.await;
            // the receivers live as long as the server
            let _ = stop.send(true);
        };
        pintle_apiserver::serve(listener, tls, state, ended, grace).await;
    }
}

/// How nodes' agents, pods and services are reached. What listens on this machine alone is left alone, but for simulated
/// nodes.
fn connections(pki: &Pki, purpose: Purpose) -> Result<Backends> {
    let client = pki.client("apiserver-kubelet-client", "kube-apiserver-kubelet-client", &["system:masters"])?;
    let (agents, others) = (agent_client_config(Some(&client), None)?, agent_client_config(None, None)?);
    Ok(Backends::new(agents, others, purpose == Purpose::Cluster))
}

fn advertised(flags: &ServerFlags) -> IpAddr {
    match flags.advertise_address {
        Some(address) => address,
        None if flags.bind_address.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        None => flags.bind_address,
    }
}

fn make_directory(directory: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    // keys lie there
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|source| Failure::Directory { directory: directory.display().to_string(), source }.into())
}

async fn listen(flags: &ServerFlags) -> Result<TcpListener> {
    let address = SocketAddr::new(flags.bind_address, flags.secure_port);
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| {
        let fix =
            "choose another port with --secure-port (0 takes any free one), or another address with --bind-address";
        Failure::Address { address, fix, source }.into()
    })
}

fn serving(flags: &ServerFlags, pki: &Pki, names: &ServingNames) -> Result<Pair> {
    if let (Some(certificate), Some(key)) =
        (&flags.certificates.tls_cert_file, &flags.certificates.tls_private_key_file)
    {
        return Ok(Pair { certificate: read(certificate)?, key: read(key)? });
    }
    let pair = pki.serving(names)?;
    if let Some(dir) = &flags.certificates.cert_dir {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        for (name, text) in [("apiserver.crt", &pair.certificate), ("apiserver.key", &pair.key)] {
            pintle_auth::pki::write_private(&dir.join(name), text.as_bytes())?;
        }
    }
    Ok(pair)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn token_keys(access: &AccessFlags, pki: &Pki) -> Result<TokenKeys> {
    let signing = match &access.service_account_signing_key_file {
        Some(path) => read(path)?,
        None => pki.service_account_key.clone(),
    };
    let mut verifying = Vec::new();
    for path in &access.service_account_key_file {
        let keys = VerifyKey::list_from_pem(read(path)?.as_bytes());
        verifying.extend(keys.with_context(|| format!("--service-account-key-file={}", path.display()))?);
    }
    if verifying.is_empty() {
        verifying = VerifyKey::list_from_pem(signing.as_bytes()).context("the key of service account tokens")?;
    }
    let signing = SigningKey::from_pem(signing.as_bytes()).context("the signing key of service account tokens")?;
    Ok(TokenKeys { signing: Arc::new(signing), verifying })
}

fn authorizer(modes: &[String], rbac: &Arc<Rbac>, nodes: &Arc<Nodes>) -> Result<Chain> {
    let (rbac, nodes): (Arc<dyn Authorizer>, Arc<dyn Authorizer>) = (rbac.clone(), nodes.clone());
    let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
    Chain::of_modes(&modes, &[("RBAC", rbac), ("Node", nodes)])
        .map_err(anyhow::Error::msg)
        .context("--authorization-mode")
}

/// Calls webhooks, found by URL or Service.
fn webhook_caller(flags: &ServerFlags, catalog: &Arc<Catalog>, env: &Env) -> Arc<dyn Caller> {
    let routing = if flags.services.enable_aggregator_routing { Routing::Endpoints } else { Routing::ClusterIp };
    let lookup = Arc::new(CatalogLookup::new(catalog.clone()));
    Arc::new(HttpCaller::new(ServiceResolver { lookup, routing, own_address: None, env: env.clone() }))
}

/// Keeps the authorizer of nodes at what the store holds, from the first request of a node on.
async fn feed_nodes(catalog: Arc<Catalog>, nodes: Arc<Nodes>) {
    nodes.first_request().await;
    feed::feed(&catalog, node::RESOURCES, nodes).await;
}

async fn open_pools(
    flags: &ServerFlags,
    ranges: Vec<Cidr>,
    catalog: &Arc<Catalog>,
    storage: Arc<dyn Storage>,
    env: &Env,
) -> Result<()> {
    let text = &flags.services.service_node_port_range;
    let ports =
        text.split_once('-').and_then(|(first, last)| Some((first.parse::<u16>().ok()?, last.parse::<u16>().ok()?)));
    let Some(ports) = ports.filter(|(first, last)| first <= last && *first > 0) else {
        bail!("--service-node-port-range={text}: write it as FIRST-LAST, such as 30000-32767")
    };
    let served = catalog.served().clone();
    let (Some(services), Some(addresses)) =
        (served.get("", "v1", "services"), served.get("networking.k8s.io", "v1", "ipaddresses"))
    else {
        bail!("services are not served")
    };
    let pools = Arc::new(ServicePools::new(PoolOptions {
        ranges,
        ports,
        ids: env.ids.clone(),
        storage,
        prefix: catalog.prefix().to_owned(),
        addresses: addresses.clone(),
    }));
    // set once, here
    let _ = services.store.service_pools.set(pools.clone());
    feed::feed(catalog, feed::SERVICES, pools).await;
    Ok(())
}

/// The address that this machine has towards others, which Endpoints need: loopback is not allowed there. Nothing is
/// sent; `None` on a machine without a network.
fn outbound_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // a documentation address: connecting a datagram socket only asks the routing table
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

fn seeds(
    at: Option<&KubernetesService>,
    cidrs: &[String],
    pki: &Pki,
    proxy: Option<&RequestHeader>,
    env: &Env,
) -> Vec<Seed> {
    let mut seeds = bootstrap::namespaces();
    seeds.extend(bootstrap::policy());
    seeds.extend(bootstrap::priority_classes());
    seeds.extend(pintle_registry::bootstrap::flow_control());
    seeds.extend(at.map(bootstrap::kubernetes_service).unwrap_or_default());
    seeds.push(bootstrap::extension_apiserver_authentication(Some(&pki.ca.certificate), proxy));
    seeds.push(bootstrap::legacy_token_tracking(env.clock.now()));
    seeds.push(bootstrap::service_cidr(cidrs, env.clock.now()));
    seeds.extend(pintle_registry::bootstrap::api_services());
    seeds
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

/// Who may sign clients' certificates, in PEM.
fn client_authorities(flags: &ServerFlags, pki: &Pki) -> Result<String> {
    let mut authorities = pki.ca.certificate.clone();
    if let Some(path) = &flags.certificates.client_ca_file {
        authorities.push('\n');
        authorities.push_str(&read(path)?);
    }
    Ok(authorities)
}

fn authentication(
    flags: &ServerFlags,
    pki: &Pki,
    keys: &TokenKeys,
    lookup: &Arc<dyn Lookup>,
    env: &Env,
) -> Result<(Config, Vec<Str>)> {
    let access = &flags.access;
    let issuers: Vec<Str> = access.service_account_issuer.iter().map(Str::new).collect();
    let audiences: Vec<Str> = if access.api_audiences.is_empty() {
        issuers.clone()
    } else {
        access.api_audiences.iter().map(Str::new).collect()
    };
    let authorities = client_authorities(flags, pki)?;
    let mut tokens: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
    if let Some(path) = &access.token_auth_file {
        let file = TokenFile::parse(&read(path)?, &path.display().to_string()).map_err(anyhow::Error::msg)?;
        tokens.push(Arc::new(AudienceAgnostic { tokens: file, api_audiences: audiences.clone() }));
    }
    tokens.push(Arc::new(ServiceAccountTokens {
        issuers,
        keys: keys.verifying.clone(),
        api_audiences: audiences.clone(),
        lookup: lookup.clone(),
        env: env.clone(),
    }));
    let bootstrap = BootstrapTokens { lookup: lookup.clone(), env: env.clone() };
    tokens.push(Arc::new(AudienceAgnostic { tokens: bootstrap, api_audiences: audiences.clone() }));
    // whom everything is allowed must at least say who they are
    let allows_everybody = access.authorization_mode.iter().any(|mode| mode == "AlwaysAllow");
    let config = Config {
        front_proxy: front_proxy(&flags.request_header)?,
        client_ca: Some(
            ClientCa::from_pem(authorities.as_bytes()).map_err(anyhow::Error::msg).context("--client-ca-file")?,
        ),
        tokens,
        is_anonymous_allowed: access.anonymous_auth && !allows_everybody,
        api_audiences: audiences.clone(),
        ..Config::default()
    };
    Ok((config, audiences))
}

/// The proxies whose word on users counts.
fn front_proxy(flags: &RequestHeaderFlags) -> Result<Option<FrontProxy>> {
    let Some(path) = &flags.requestheader_client_ca_file else { return Ok(None) };
    let authorities = read(path)?;
    let ca = ClientCa::from_pem(authorities.as_bytes()).map_err(anyhow::Error::msg);
    Ok(Some(FrontProxy {
        ca: ca.context("--requestheader-client-ca-file")?,
        allowed_names: flags.requestheader_allowed_names.clone(),
        username_headers: flags.requestheader_username_headers.clone(),
        uid_headers: flags.requestheader_uid_headers.clone(),
        group_headers: flags.requestheader_group_headers.clone(),
        extra_header_prefixes: flags.requestheader_extra_headers_prefix.clone(),
    }))
}

/// The same proxies, as extension servers learn of them.
fn request_header(flags: &RequestHeaderFlags) -> Result<Option<RequestHeader>> {
    let Some(path) = &flags.requestheader_client_ca_file else { return Ok(None) };
    Ok(Some(RequestHeader {
        client_ca: read(path)?,
        allowed_names: flags.requestheader_allowed_names.clone(),
        username_headers: flags.requestheader_username_headers.clone(),
        uid_headers: flags.requestheader_uid_headers.clone(),
        group_headers: flags.requestheader_group_headers.clone(),
        extra_header_prefixes: flags.requestheader_extra_headers_prefix.clone(),
    }))
}

fn health(backends: storage::Backends, stopping: watch::Receiver<bool>) -> Health {
    Health::new(
        move || {
            let backends = backends.clone();
            Box::pin(async move { backends.health().await })
        },
        stopping,
    )
}

/// Completes on Ctrl-C and SIGTERM.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = match signal(SignalKind::terminate()) {
        Ok(terminated) => terminated,
        Err(why) => {
            tracing::warn!(%why, "SIGTERM will end the process at once");
            let _ = tokio::signal::ctrl_c().await;
            return;
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
    tracing::info!("stopping");
}

/// `pintle apiserver`.
pub(crate) async fn apiserver(flags: ServerFlags) -> Result<()> {
    let server = Server::open(&flags, Purpose::Server).await?;
    tracing::info!(url = server.url, kubeconfig = %server.kubeconfig.display(), "ready");
    server.run(interrupted()).await;
    Ok(())
}
