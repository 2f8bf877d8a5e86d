//! Objects in JSON and in protobuf as the reference types write them: a committed set, and as many more as one likes
//! from the program in `tests/go`.

use base64::Engine as _;
use pintle_apimachinery::{Str, Value, value};
use pintle_schema::{Kind, kind, kinds};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Made by `go run . -seeds 2 -small` in `tests/go`, Kubernetes v1.35.4, from [`kind_lines`].
const FIXTURES: &str = include_str!("../fixtures/protobuf.jsonl");

/// One object in both forms; `tests/go/main.go` says what the members are.
pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) kind: &'static Kind,
    pub(crate) api_version: String,
    pub(crate) json: Vec<u8>,
    pub(crate) proto: Vec<u8>,
    /// The object as it is read from `proto`: lists that `json` has empty are absent in it.
    pub(crate) read: Vec<u8>,
    pub(crate) frame: Option<Vec<u8>>,
    pub(crate) wild: Option<(Vec<u8>, Value)>,
}

impl Pair {
    fn parse(line: &str) -> Pair {
        let row = value::parse(line.as_bytes()).unwrap();
        let bytes = |member: &str| base64::engine::general_purpose::STANDARD.decode(row[member].as_str()?).ok();
        let (group, version, name) =
            (row["group"].str_or_empty(), row["version"].str_or_empty(), row["kind"].str_or_empty());
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Pair {
            name: format!("{api_version} {name} seed {}", row["seed"]),
            kind: kind(group, version, name).unwrap(),
            api_version,
            json: row["json"].to_json(),
            proto: bytes("proto").unwrap(),
            read: if row.has("read") { row["read"].to_json() } else { row["json"].to_json() },
            frame: bytes("frame"),
            wild: bytes("wild").filter(|_| row.has("wildJSON")).map(|wild| (wild, row["wildJSON"].clone())),
        }
    }
}

pub(crate) fn fixtures() -> Vec<Pair> {
    FIXTURES.lines().map(Pair::parse).collect()
}

/// The kinds that say what they are. A WatchEvent does not; the frames are compared instead.
pub(crate) fn kinds_with_names() -> impl Iterator<Item = &'static Kind> {
    kinds().iter().filter(|k| k.kind != "WatchEvent")
}

fn kind_lines() -> String {
    kinds_with_names().map(|k| format!("{}\t{}\t{}\n", k.group, k.version, k.kind)).collect()
}

/// `n_seeds` objects of every kind from the reference program; what is missing to run it, if it cannot be run.
pub(crate) fn generate(n_seeds: usize) -> Result<Vec<Pair>, Str> {
    if std::env::var_os("SLOW").is_none() {
        return Err(Str::const_new("SLOW is not set"));
    }
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go");
    let mut child = Command::new("go")
        .args(["run", ".", "-seeds", &n_seeds.to_string()])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| Str::from(format!("cannot run go: {why}")))?;
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(kind_lines().as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "the reference program failed; can it fetch its modules?");
    let text = String::from_utf8(output.stdout).unwrap();
    Ok(text.lines().map(Pair::parse).collect())
}
