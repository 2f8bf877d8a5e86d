//! Composes and runs the API server.

use crate::admission::{PluginFlags, admission};
use anyhow::{Context, Result};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::{GroupResource, Str};
use pintle_apiserver::State;
use pintle_apiserver::health::Health;
use pintle_auth::authn::{Authenticator, ClientCa, Config, TokenFile};
use pintle_auth::authz::rbac::Rbac;
use pintle_auth::authz::{Authorizer, Chain};
use pintle_auth::pki::{Kubeconfig, Pki, ServingNames, server_config};
use pintle_registry::catalog::DEFAULT_PREFIX;
use pintle_registry::fields::Fields;
use pintle_registry::{Catalog, StorageFactory, World};
use pintle_storage::memory::MemoryStore;
use pintle_storage::{Key, Storage};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Flags of `pintle apiserver`.
#[derive(Debug, clap::Args)]
pub(crate) struct ApiserverArgs {
    /// Where keys, certificates, kubeconfig and data are kept.
    #[arg(long, default_value = "pintle-data")]
    data_dir: PathBuf,
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    bind_address: IpAddr,
    /// The port to listen on.
    #[arg(long, default_value_t = 6443)]
    secure_port: u16,
    /// Bearer tokens: a CSV file with token, user, uid and groups.
    #[arg(long, value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plugins to switch off, besides those that are off by default.
    #[arg(long, value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    /// Bearer tokens.
    #[arg(long)]
    token_auth_file: Option<PathBuf>,
}

#[derive(Debug)]
struct Shared(Arc<MemoryStore>);

impl StorageFactory for Shared {
    fn storage(&self, _resource: &GroupResource, _root: &Key, _fields: &Fields) -> Arc<dyn Storage> {
        self.0.clone()
    }
    fn forget(&self, _resource: &GroupResource) {}
}

pub(crate) async fn apiserver(args: ApiserverArgs) -> Result<()> {
    let env = Env::system();
    let pki = Pki::open(&args.data_dir.join("pki"), &env).context("cannot prepare keys and certificates")?;
    let names = ServingNames::of_cluster(&[], &[IpAddr::from([10, 0, 0, 1])], "cluster.local");
    let serving = pki.serving(&names)?;
    let admin = pki.client("admin", "admin", &["system:masters"])?;
    let store = Arc::new(MemoryStore::new());
    let catalog = Arc::new(Catalog::new(Arc::new(Shared(store.clone())), DEFAULT_PREFIX));
    let rbac = Arc::new(Rbac::new());
    let rbac_dyn: Arc<dyn Authorizer> = rbac.clone();
    let authorizer = Arc::new(Chain::of_modes(&["RBAC"], &[("RBAC", rbac_dyn)]).map_err(anyhow::Error::msg)?);
    let plugins = PluginFlags { enable: &args.enable_admission_plugins, disable: &args.disable_admission_plugins };
    let admission = admission(&plugins, &catalog, authorizer.clone(), &env)?;
    let world = World { env: env.clone(), admission };
    let mut seeds = pintle_auth::bootstrap::namespaces();
    seeds.extend(pintle_auth::bootstrap::policy());
    seeds.extend(pintle_auth::bootstrap::priority_classes());
    pintle_registry::bootstrap::seed(&catalog, &world, seeds).await.context("cannot write the first objects")?;
    let (filled, is_filled) = tokio::sync::oneshot::channel();
    tokio::spawn(pintle_registry::lookup::feed_rbac(catalog.clone(), rbac.clone(), move || {
        // whoever waited may be gone
        let _ = filled.send(());
    }));
    is_filled.await?;
    let mut config = Config {
        client_ca: Some(ClientCa::from_pem(pki.ca.certificate.as_bytes()).map_err(anyhow::Error::msg)?),
        is_anonymous_allowed: true,
        api_audiences: vec![Str::const_new("https://kubernetes.default.svc.cluster.local")],
        ..Config::default()
    };
    if let Some(path) = &args.token_auth_file {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = TokenFile::parse(&text, &path.display().to_string()).map_err(anyhow::Error::msg)?;
        config.tokens.push(Arc::new(file));
    }
    let (stop, stopping) = tokio::sync::watch::channel(false);
    let state = Arc::new(State {
        env: env.clone(),
        catalog,
        world,
        authenticator: Authenticator::new(config, env.clone()),
        authorizer,
        metrics: pintle_apiserver::metrics::Metrics::default(),
        health: Health::new(|| Box::pin(std::future::ready(Ok(()))), stopping.clone()),
        stopping,
    });
    let address = SocketAddr::new(args.bind_address, args.secure_port);
    let listener = tokio::net::TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let tls = server_config(&serving, &[b"h2", b"http/1.1"])?;
    let kubeconfig = args.data_dir.join("kubeconfig");
    let server = format!("https://127.0.0.1:{}", args.secure_port);
    Kubeconfig { name: "pintle", server: &server, ca: &pki.ca.certificate, user: "admin", client: &admin }.write(&kubeconfig)?;
    tracing::info!(%address, kubeconfig = %kubeconfig.display(), "serving");
    let ended = async move {
        let _ = tokio::signal::ctrl_c().await;
        let _ = stop.send(true);
    };
    pintle_apiserver::serve(listener, Arc::new(tls).into(), state, ended, Duration::from_secs(5)).await;
    Ok(())
}
