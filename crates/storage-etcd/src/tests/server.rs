//! Members of etcd for tests. The program is the one that `PINTLE_ETCD` names, or `etcd` on the path, or built from Go's
//! module once, into the target directory. Without any of them the tests say so and test nothing.

use super::store_on;
use crate::EtcdStore;
use pintle_storage::Storage;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What is built when no etcd is there.
const MODULE: &str = "go.etcd.io/etcd/server/v3@v3.6.16";

/// Time for a member to answer.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The program.
pub(super) fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(find).as_deref()
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PINTLE_ETCD") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) = std::env::split_paths(&path).map(|dir| dir.join("etcd")).find(|file| file.is_file()) {
        return Some(found);
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/etcd");
    let program = built.join("server");
    if !program.is_file() {
        let status = Command::new("go").args(["install", MODULE]).env("GOBIN", &built).env("CGO_ENABLED", "0").status();
        if !status.is_ok_and(|status| status.success()) {
            say("SKIPPED: no etcd is there (PINTLE_ETCD, PATH), and Go cannot build one");
            return None;
        }
    }
    Some(program)
}

fn say(words: &str) {
    // Past the harness, which keeps what succeeding tests print.
    drop(writeln!(std::io::stderr(), "{words}"));
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    listener.local_addr().expect("it is bound").port()
}

/// A directory that is removed in the end.
#[derive(Debug)]
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    pub(super) fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pintle-etcd-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// One member.
#[derive(Debug)]
pub(super) struct Server {
    name: String,
    pub(super) url: String,
    peer_url: String,
    cluster: String,
    extra: Vec<String>,
    directory: Directory,
    process: Option<Process>,
}

/// A running program. It is killed when this is dropped, and also when this process dies.
#[derive(Debug)]
struct Process {
    keeper: Child,
    pid: u32,
}

impl Process {
    fn start(program: &Path, args: &[String]) -> Process {
        // Its standard input ends with this process.
        let script = r#""$0" "$@" </dev/null >/dev/null 2>&1 & echo $!; cat >/dev/null; kill -9 $!"#;
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().expect("a shell");
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(keeper.stdout.take().expect("it was asked for"));
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("text");
        Process { keeper, pid: line.trim().parse().expect("a number") }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "{signal} {}", self.pid);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        drop(self.keeper.wait());
    }
}

impl Server {
    /// The only member of a cluster.
    pub(super) async fn start() -> Option<Server> {
        Server::with(&[]).await
    }

    /// The same, with further flags.
    pub(super) async fn with(extra: &[&str]) -> Option<Server> {
        let server = Server::cluster(1, extra)?.pop()?;
        server.ready().await;
        Some(server)
    }

    /// The members of a cluster, which may not be ready yet.
    pub(super) fn cluster(n_members: usize, extra: &[&str]) -> Option<Vec<Server>> {
        program()?;
        let scheme = if extra.iter().any(|flag| flag.starts_with("--cert-file")) { "https" } else { "http" };
        let peers: Vec<(String, String)> =
            (0..n_members).map(|n| (format!("m{n}"), format!("http://127.0.0.1:{}", free_port()))).collect();
        let cluster: Vec<String> = peers.iter().map(|(name, url)| format!("{name}={url}")).collect();
        let members = peers.into_iter().map(|(name, peer_url)| {
            let mut server = Server {
                name,
                url: format!("{scheme}://127.0.0.1:{}", free_port()),
                peer_url,
                cluster: cluster.join(","),
                extra: extra.iter().map(|&flag| flag.to_owned()).collect(),
                directory: Directory::new(),
                process: None,
            };
            server.run();
            server
        });
        Some(members.collect())
    }

    /// Starts it, or starts it again with what it has stored.
    pub(super) fn run(&mut self) {
        let mut args = vec![
            format!("--name={}", self.name),
            format!("--data-dir={}", self.directory.0.display()),
            format!("--listen-client-urls={}", self.url),
            format!("--advertise-client-urls={}", self.url),
            format!("--listen-peer-urls={}", self.peer_url),
            format!("--initial-advertise-peer-urls={}", self.peer_url),
            format!("--initial-cluster={}", self.cluster),
            // Elections are short, and leases may be, too.
            "--heartbeat-interval=20".to_owned(),
            "--election-timeout=200".to_owned(),
            "--log-level=error".to_owned(),
        ];
        args.extend(self.extra.iter().cloned());
        self.process = program().map(|program| Process::start(program, &args));
    }

    /// Kills it.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Stops its clock, so to speak: its connections stay and nothing answers.
    pub(super) fn freeze(&self) {
        self.process.iter().for_each(|process| process.signal("-STOP"));
    }

    pub(super) fn thaw(&self) {
        self.process.iter().for_each(|process| process.signal("-CONT"));
    }

    /// A store on this member alone.
    pub(super) fn store(&self) -> EtcdStore {
        store_on(std::slice::from_ref(&self.url))
    }

    /// Waits until it answers.
    pub(super) async fn ready(&self) {
        let store = self.store();
        until(async || store.health().await.is_ok()).await;
    }
}

/// Waits until something is so.
pub(super) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(START_TIMEOUT, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.expect("it takes too long");
}
