//! A Pintle process under test, in a directory of its own that goes away with it.

use crate::http::{Connection, Response};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// How long anything is waited for before the test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(10);

/// The bearer token of an administrator, on every server under test.
pub(crate) const TOKEN: &str = "admin-token";

/// Waits until `probe` finds something.
pub(crate) fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if let Some(found) = probe() {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("{what}: not within {PATIENCE:?}")
}

/// A directory that is removed at the end.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Dir {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a directory");
        std::fs::write(path.join("tokens.csv"), format!("{TOKEN},admin,1,\"system:masters\"\n")).expect("tokens");
        Dir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where the server keeps its things.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// A command that starts a server here.
    pub(crate) fn command(&self, role: &str, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.arg(role).arg("--data-dir").arg(self.data()).args(["--secure-port", &port.to_string()]);
        command.arg("--token-auth-file").arg(self.0.join("tokens.csv"));
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// A running server.
pub(crate) struct Server {
    // stopped before its directory goes
    process: Process,
    pub(crate) dir: Dir,
    pub(crate) port: u16,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// An API server alone, in a new directory, without the plugin that wants a service account for each pod.
    pub(crate) fn start(name: &str) -> Server {
        Server::start_with(name, "apiserver", &["--disable-admission-plugins", "ServiceAccount"])
    }

    /// A server in a new directory.
    pub(crate) fn start_with(name: &str, role: &str, flags: &[&str]) -> Server {
        Server::start_in(Dir::new(name), 0, role, flags)
    }

    /// A server in a directory that may have been used before; on any free port if 0.
    pub(crate) fn start_in(dir: Dir, port: u16, role: &str, flags: &[&str]) -> Server {
        let kubeconfig = dir.data().join("kubeconfig");
        let _ = std::fs::remove_file(&kubeconfig);
        let log = std::fs::File::create(dir.path().join("log")).expect("a log");
        let mut command = dir.command(role, port);
        command.args(flags).stdout(log.try_clone().expect("a log")).stderr(log);
        let mut process = Process(command.spawn().expect("pintle starts"));
        let port = eventually("a kubeconfig", || {
            if let Some(status) = process.0.try_wait().expect("a child") {
                panic!("{status}: {}", std::fs::read_to_string(dir.path().join("log")).unwrap_or_default());
            }
            // written in one piece once the port is known
            let text = std::fs::read_to_string(&kubeconfig).ok()?;
            let url = text.split_once("server: ")?.1.lines().next()?;
            url.trim_matches('"').rsplit(':').next()?.parse().ok()
        });
        let server = Server { process, dir, port };
        eventually("/readyz", || {
            let ready = Connection::open(&server).ok()?.request("GET", "/readyz", b"").ok()?;
            (ready.status == 200).then_some(())
        });
        server
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.data().join("kubeconfig")
    }

    /// One request on a connection of its own.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Response {
        let mut connection = Connection::open(self).expect("a connection");
        connection.request(method, path, body.as_bytes()).unwrap_or_else(|why| panic!("{method} {path}: {why}"))
    }

    /// As a power cut does: nothing is told to the process. What it leaves stays.
    pub(crate) fn kill(self) -> Dir {
        let Server { process, dir, .. } = self;
        drop(process);
        dir
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn signal(mut self, signal: rustix::process::Signal) -> (ExitStatus, Dir) {
        let pid = rustix::process::Pid::from_child(&self.process.0);
        rustix::process::kill_process(pid, signal).expect("a signal");
        let status = eventually("the end", || self.process.0.try_wait().expect("a child"));
        (status, self.dir)
    }

    /// What the process said, at the end of a failed test.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

/// What a command ends with that is not expected to stay.
pub(crate) fn end_of(mut command: Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process(command.spawn().expect("pintle starts"));
    eventually("the end", || process.0.try_wait().expect("a child"));
    let mut output = Output { status: process.0.wait().expect("a child"), stdout: Vec::new(), stderr: Vec::new() };
    let (stdout, stderr) = (process.0.stdout.take(), process.0.stderr.take());
    std::io::Read::read_to_end(&mut stdout.expect("piped"), &mut output.stdout).expect("stdout");
    std::io::Read::read_to_end(&mut stderr.expect("piped"), &mut output.stderr).expect("stderr");
    output
}
