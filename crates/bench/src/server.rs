//! Servers that the run starts itself: Pintle, or kube-apiserver with etcd, each with data and certificates in a
//! directory of its own.

use crate::link::{Call, Dialer};
use crate::process::Processes;
use anyhow::{Context, Result, bail};
use pintle_apimachinery::env::Env;
use pintle_auth::pki::{Kubeconfig, Pki, ServingNames};
use pintle_client::Config;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// A server that is not ready by then is given up.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Pause between attempts to connect to a server that starts.
const CONNECT_PAUSE: Duration = Duration::from_millis(1);
/// Pause after an answer that says "not yet".
const NOT_READY_PAUSE: Duration = Duration::from_millis(5);

/// How a server is started.
#[derive(Clone, Debug)]
pub(crate) enum Recipe {
    /// Pintle's API server on its embedded store.
    Pintle { program: PathBuf, flags: Vec<String> },
    /// kube-apiserver on an etcd of its own.
    Upstream { kube_apiserver: PathBuf, etcd: PathBuf },
}

impl Recipe {
    /// Reads `kube-apiserver=PATH,etcd=PATH`.
    pub(crate) fn upstream(text: &str) -> Result<Recipe> {
        let (mut kube_apiserver, mut etcd) = (None, None);
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("kube-apiserver", path)) => kube_apiserver = Some(PathBuf::from(path)),
                Some(("etcd", path)) => etcd = Some(PathBuf::from(path)),
                _ => bail!("--peer={text}: write it as kube-apiserver=PATH,etcd=PATH"),
            }
        }
        match (kube_apiserver, etcd) {
            (Some(kube_apiserver), Some(etcd)) => Ok(Recipe::Upstream { kube_apiserver, etcd }),
            _ => bail!("--peer={text}: both kube-apiserver=PATH and etcd=PATH are needed"),
        }
    }

    /// What reports call it.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Recipe::Pintle { .. } => "pintle",
            Recipe::Upstream { .. } => "kube-apiserver+etcd",
        }
    }

    /// Starts it on an empty directory and waits until it says that it is ready.
    pub(crate) async fn start(&self, directory: &Path) -> Result<Running> {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let port = free_port()?;
        // certificates of the pair are made beforehand: its own work begins with its processes
        let prepared = match self {
            Recipe::Pintle { .. } => None,
            Recipe::Upstream { .. } => Some(Prepared::new(directory, port)?),
        };
        let begun = Instant::now();
        let children = match self {
            Recipe::Pintle { program, flags } => {
                let mut command = Command::new(program);
                command.arg("apiserver").args([
                    "--bind-address",
                    "127.0.0.1",
                    "--disable-admission-plugins",
                    "ServiceAccount",
                ]);
                command
                    .arg("--secure-port")
                    .arg(port.to_string())
                    .arg("--data-dir")
                    .arg(directory.join("data"))
                    .args(flags);
                vec![spawn(command, directory, "pintle.log")?]
            }
            Recipe::Upstream { kube_apiserver, etcd } => upstream(kube_apiserver, etcd, directory, port)?,
        };
        let mut running =
            Running { children, ready_after: Duration::ZERO, kubeconfig: directory.join("data/kubeconfig") };
        ready(port, &mut running).await.with_context(|| log_tails(directory))?;
        running.ready_after = begun.elapsed();
        if let Some(prepared) = prepared {
            running.kubeconfig = prepared.kubeconfig;
        }
        Ok(running)
    }
}

/// A server that runs; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    children: Vec<Child>,
    /// From the start of its processes to its word that it is ready.
    pub(crate) ready_after: Duration,
    kubeconfig: PathBuf,
}

impl Running {
    /// How to reach it as its administrator.
    pub(crate) fn config(&self) -> Result<Config> {
        Config::from_file(&self.kubeconfig).with_context(|| format!("{}", self.kubeconfig.display()))
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> Processes {
        Processes::new(self.children.iter().filter_map(Child::id).collect())
    }

    /// Ends it. Its data are thrown away, so nothing is asked to end in order.
    pub(crate) async fn stop(mut self) -> Result<()> {
        for child in &mut self.children {
            child.kill().await.context("cannot end a server")?;
        }
        Ok(())
    }

    fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.children.iter_mut().find_map(|child| child.try_wait().ok().flatten())
    }
}

/// Certificates of a pair.
struct Prepared {
    kubeconfig: PathBuf,
}

impl Prepared {
    fn new(directory: &Path, port: u16) -> Result<Prepared> {
        let pki = Pki::open(&directory.join("pki"), &Env::system()).context("cannot make certificates")?;
        let address = [IpAddr::from(Ipv4Addr::new(10, 0, 0, 1))];
        pki.serving(&ServingNames::of_cluster(&[], &address, "cluster.local"))?;
        let client = pki.client("admin", "admin", &["system:masters"])?;
        let kubeconfig = directory.join("kubeconfig");
        let server = format!("https://127.0.0.1:{port}");
        Kubeconfig { name: "peer", server: &server, ca: &pki.ca.certificate, user: "admin", client: &client }
            .write(&kubeconfig)?;
        Ok(Prepared { kubeconfig })
    }
}

fn upstream(kube_apiserver: &Path, etcd: &Path, directory: &Path, port: u16) -> Result<Vec<Child>> {
    let (client_url, peer_url) =
        (format!("http://127.0.0.1:{}", free_port()?), format!("http://127.0.0.1:{}", free_port()?));
    let mut store = Command::new(etcd);
    store.arg("--data-dir").arg(directory.join("data"));
    store.args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url]);
    store.args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url]);
    store.arg("--initial-cluster").arg(format!("default={peer_url}"));
    let pki = |file: &str| directory.join("pki").join(file);
    let mut server = Command::new(kube_apiserver);
    server.args(["--etcd-servers", &client_url, "--bind-address", "127.0.0.1", "--secure-port", &port.to_string()]);
    server.args([
        "--service-cluster-ip-range",
        "10.0.0.0/24",
        "--authorization-mode",
        "Node,RBAC",
        "--allow-privileged",
    ]);
    // nobody makes service accounts here
    server.args(["--disable-admission-plugins", "ServiceAccount"]);
    server.args(["--service-account-issuer", "https://kubernetes.default.svc.cluster.local"]);
    for (flag, file) in [
        ("--tls-cert-file", "apiserver.crt"),
        ("--tls-private-key-file", "apiserver.key"),
        ("--client-ca-file", "ca.crt"),
        // no token is issued or shown here: any pair will do, and it reads no public key from ours
        ("--service-account-key-file", "apiserver.crt"),
        ("--service-account-signing-key-file", "apiserver.key"),
    ] {
        server.arg(flag).arg(pki(file));
    }
    Ok(vec![spawn(store, directory, "etcd.log")?, spawn(server, directory, "kube-apiserver.log")?])
}

fn spawn(mut command: Command, directory: &Path, log: &str) -> Result<Child> {
    let log = std::fs::File::create(directory.join(log)).context("cannot write a log")?;
    let program = command.as_std().get_program().to_owned();
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
    command.spawn().with_context(|| format!("cannot start {}", Path::new(&program).display()))
}

/// The last lines of what the processes wrote: their directory goes when the run ends.
fn log_tails(directory: &Path) -> String {
    /// Lines of each log.
    const LINES: usize = 3;
    let mut out = String::from("the last lines of its logs:");
    for name in ["pintle.log", "etcd.log", "kube-apiserver.log"] {
        let Ok(text) = std::fs::read_to_string(directory.join(name)) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(LINES)..] {
            out.push_str(&format!("\n  {name}: {line}"));
        }
    }
    out
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

/// Asks `/readyz`, as anybody may, until the answer is yes.
async fn ready(port: u16, running: &mut Running) -> Result<()> {
    let mut config = Config::new(&format!("https://127.0.0.1:{port}"))?;
    config.tls.insecure_skip_verify = true;
    let (dialer, call) = (Dialer::new(&config)?, Call::get("/readyz")?);
    let deadline = Instant::now() + READY_TIMEOUT;
    let mut link = None;
    while Instant::now() < deadline {
        if let Some(status) = running.ended() {
            bail!("the server ended: {status}");
        }
        let open = match link.take() {
            Some(open) => Some(open),
            None => dialer.link().await.ok(),
        };
        let Some(mut open) = open else {
            sleep(CONNECT_PAUSE).await;
            continue;
        };
        match open.count(&call).await {
            Ok(_) => return Ok(()),
            Err(fault) if fault.kind == "connection" => sleep(CONNECT_PAUSE).await,
            Err(_) => {
                link = Some(open);
                sleep(NOT_READY_PAUSE).await;
            }
        }
    }
    bail!("not ready after {} s", READY_TIMEOUT.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_needs_both_of_its_programs() {
        let recipe = Recipe::upstream("kube-apiserver=/bin/k,etcd=/bin/e").unwrap();
        assert_eq!(recipe.label(), "kube-apiserver+etcd");
        for bad in ["kube-apiserver=/bin/k", "etcd=/bin/e", "k3s=/bin/k", ""] {
            assert!(Recipe::upstream(bad).is_err(), "{bad}");
        }
    }
}
