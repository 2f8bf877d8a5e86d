//! What ARCHITECTURE.md and CONTRIBUTING.md say of the tree, compared with the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines that a source file may have.
const LINES_MAX: usize = 700;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file of the tree")
}

/// Every file below `dir` with this extension.
fn files(dir: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "target" | ".git" | "node_modules" | ".cache") {
            files(&path, extension, into);
        } else if path.extension().is_some_and(|own| own == extension) {
            into.push(path);
        }
    }
}

/// The crates and what they use, by the manifests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.stdout).expect("cargo's metadata");
    let short = |name: &serde_json::Value| name.as_str()?.strip_prefix("pintle-").map(str::to_owned);
    let packages = metadata["packages"].as_array().expect("packages");
    let used = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().expect("dependencies").iter();
        all.filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| short(&dependency["name"]))
            .collect()
    };
    packages.iter().filter_map(|package| Some((short(&package["name"])?, used(package)))).collect()
}

/// The table of layers in ARCHITECTURE.md.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let (_, table) = text.split_once("<!-- layers -->").expect("the beginning of the table");
    let (table, _) = table.split_once("<!-- /layers -->").expect("the end of the table");
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].to_owned(), cells[2].split_whitespace().map(str::to_owned).collect())
    })
    .collect()
}

#[test]
fn crates_use_only_what_the_table_of_layers_allows() {
    let (allowed, found) = (allowed(), dependencies());
    assert_eq!(
        allowed.keys().collect::<Vec<_>>(),
        found.keys().collect::<Vec<_>>(),
        "crates in the table, and in the tree"
    );
    for (name, uses) in &found {
        let more: Vec<_> = uses.difference(&allowed[name]).collect();
        assert!(
            more.is_empty(),
            "{name} uses {more:?}: change the design, or the table in ARCHITECTURE.md with a reason"
        );
    }
}

#[test]
fn the_table_of_layers_has_no_circle() {
    let allowed = allowed();
    let mut placed: BTreeSet<&str> = BTreeSet::new();
    while placed.len() < allowed.len() {
        let free = allowed.iter().filter(|(name, _)| !placed.contains(name.as_str()));
        let next: Vec<&str> = free
            .filter(|(_, uses)| uses.iter().all(|used| placed.contains(used.as_str())))
            .map(|(name, _)| &**name)
            .collect();
        assert!(!next.is_empty(), "a circle among the crates beyond {placed:?}");
        placed.extend(next);
    }
}

#[test]
fn source_files_are_of_readable_length() {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    assert!(sources.len() > 300, "the sources were found");
    let long: Vec<String> = sources
        .iter()
        .map(|path| (path, read(path).lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "more than {LINES_MAX} lines: {long:#?}");
}

#[test]
fn sources_say_what_is_in_them() {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    let is_tests = |path: &Path| path.file_name().is_some_and(|name| name == "tests.rs");
    let silent: Vec<_> = sources.iter().filter(|path| !is_tests(path) && !read(path).starts_with("//!")).collect();
    assert!(silent.is_empty(), "files without a header: {silent:#?}");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = Vec::new();
    files(&root(), "md", &mut documents);
    let mut dead = Vec::new();
    for document in &documents {
        let text = read(document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            if !document.parent().expect("a folder").join(target).exists() {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}
