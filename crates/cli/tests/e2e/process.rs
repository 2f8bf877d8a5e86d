//! Starting, stopping, and what stands in the way.

use crate::server::{Dir, Server, end_of};
use expect_test::{Expect, expect};
use rustix::process::Signal;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#)
}

/// The code and the last line of a command that fails, without what differs from run to run.
fn check_failure(dir: &Dir, command: Command, expected: Expect) {
    let output = end_of(command);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = text.lines().last().unwrap_or_default().replace(&dir.path().display().to_string(), "DIR");
    // what is behind a damaged place depends on what the server wrote at its start
    let last = match (last.split_once(" cannot be read"), last.split_once("; `pintle")) {
        (Some((before, _)), Some((_, advice))) => format!("{before} cannot be read ..; `pintle{advice}"),
        _ => last,
    };
    expected.assert_eq(&format!("{:?}: {last}", output.status.code().expect("a code")));
}

#[test]
fn a_signal_ends_it_and_the_next_process_goes_on() {
    let server = Server::start("signals");
    assert_eq!(server.request("POST", MAPS, &map("kept")).status, 201);
    let mode = std::fs::metadata(server.kubeconfig()).expect("a kubeconfig").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "others must not read the administrator's key");
    let port = server.port;
    let (status, dir) = server.signal(Signal::TERM);
    assert_eq!(status.code(), Some(0), "a stop that was asked for is no failure");
    let server = Server::start_in(dir, port, "apiserver", &[]);
    assert_eq!(server.request("GET", &format!("{MAPS}/kept"), "").status, 200);
    let (status, _) = server.signal(Signal::INT);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_directory_has_one_process() {
    let server = Server::start("second");
    check_failure(
        &server.dir,
        server.dir.command("apiserver", 0),
        expect!["4: error: cannot open the store in DIR/data/store: the data directory is in use by another process"],
    );
    assert_eq!(server.request("POST", MAPS, &map("still-served")).status, 201);
}

#[test]
fn a_port_has_one_process() {
    let dir = Dir::new("busy");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let output = end_of(dir.command("apiserver", port));
    let text = String::from_utf8_lossy(&output.stderr).replace(&port.to_string(), "PORT");
    assert_eq!(output.status.code(), Some(3), "{text}");
    expect!["error: cannot listen on 127.0.0.1:PORT (choose another port with --secure-port (0 takes any free one), or another address with --bind-address): Address already in use (os error 98)"].assert_eq(text.lines().last().unwrap_or_default());
}

#[test]
fn directories_that_cannot_be_used() {
    let dir = Dir::new("unwritable");
    // a file where the directory should be: nobody can write there, not even the superuser
    std::fs::write(dir.data(), "").expect("a file");
    check_failure(
        &dir,
        dir.command("apiserver", 0),
        expect![
            "5: error: cannot use the data directory DIR/data (give one that can be written with --data-dir): File exists (os error 17)"
        ],
    );
}

/// The store's first log file.
fn log_of(dir: &Dir) -> PathBuf {
    let entries =
        std::fs::read_dir(dir.data().join("store")).expect("a store").map(|entry| entry.expect("an entry").path());
    let logs = entries.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.min().expect("a log")
}

#[test]
fn a_damaged_store_is_refused_and_left_as_it_is() {
    let server = Server::start("damaged");
    assert_eq!(server.request("POST", MAPS, &map("precious")).status, 201);
    let (_, dir) = server.signal(Signal::TERM);
    let path = log_of(&dir);
    let mut bytes = std::fs::read(&path).expect("the log");
    // in the midst of the records, so that whole ones follow: no torn end
    let at = bytes.windows(9).position(|window| window == b"/registry").expect("a record");
    bytes[at] ^= 0x40;
    std::fs::write(&path, &bytes).expect("the log");
    check_failure(
        &dir,
        dir.command("apiserver", 0),
        expect![
            "6: error: cannot open the store in DIR/data/store: the store is damaged: 00000001.log is damaged at byte 64: revision 2 cannot be read ..; `pintle storage check` tells more, `pintle storage repair` keeps what is intact"
        ],
    );
    assert_eq!(std::fs::read(&path).expect("the log"), bytes, "nothing was thrown away");
    // what the message says helps: everything but the damaged record is there again
    assert!(!tool(&dir, &["storage", "check"]).status.success(), "the damage is found");
    let repaired = tool(&dir, &["storage", "repair"]);
    assert!(repaired.status.success(), "{}", String::from_utf8_lossy(&repaired.stderr));
    let server = Server::start_in(dir, 0, "apiserver", &[]);
    assert_eq!(server.request("GET", &format!("{MAPS}/precious"), "").status, 200);
}

/// Runs one of the commands that work on a data directory.
fn tool(dir: &Dir, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
    command.args(arguments).arg("--data-dir").arg(dir.data());
    end_of(command)
}

#[test]
fn a_snapshot_of_a_running_server_is_a_server() {
    let server = Server::start("saved");
    let version = server.request("POST", MAPS, &map("before")).version();
    let file = server.dir.path().join("snapshot");
    let file = file.to_str().expect("a path of letters");
    let saved = tool(&server.dir, &["snapshot", "save", file]);
    assert!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stderr));
    assert_eq!(server.request("POST", MAPS, &map("after")).status, 201);

    let other = Dir::new("restored");
    let restored = tool(&other, &["snapshot", "restore", file]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let other = Server::start_in(other, 0, "apiserver", &[]);
    assert_eq!(other.request("GET", &format!("{MAPS}/before"), "").version(), version);
    assert_eq!(other.request("GET", &format!("{MAPS}/after"), "").status, 404);
    let next: u64 = other.request("POST", MAPS, &map("next")).version().parse().expect("a number");
    let known: u64 = server.request("GET", MAPS, "").version().parse().expect("a number");
    assert!(next > known, "versions that clients know are not given out again: {next}, {known}");
}

#[test]
fn flags_that_make_no_sense() {
    let dir = Dir::new("flags");
    let cases: [(&[&str], Expect); 4] = [
        (
            &["--storage-backend=etcd2"],
            expect![
                "2: error: --storage-backend=etcd2: no supported etcd speaks the v2 API any more. Leave the flag out for the embedded store, or use etcd3 with --etcd-servers"
            ],
        ),
        (
            &["--service-node-port-range=9-1"],
            expect!["1: error: --service-node-port-range=9-1: write it as FIRST-LAST, such as 30000-32767"],
        ),
        (
            &["--watch-cache-sizes=pods"],
            expect![
                "1: error: --watch-cache-sizes=pods: write it as resource[.group]#size, such as pods#1000 or deployments.apps#0"
            ],
        ),
        (&["--no-such-flag"], expect!["2: For more information, try '--help'."]),
    ];
    for (flags, expected) in cases {
        let mut command = dir.command("apiserver", 0);
        command.args(flags);
        check_failure(&dir, command, expected);
    }
}
