//! Warnings about files of one volume that would overwrite each other.
//!
//! Follows: pkg/api/pod/warnings.go, warningsForOverlappingVirtualPaths (v1.35).

use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use std::fmt;

/// A file of a volume and what it comes from; the source is empty where the volume has one only.
#[derive(PartialEq)]
struct File {
    path: String,
    source: String,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&go_quote(&self.path))?;
        if self.source.is_empty() { Ok(()) } else { write!(f, " ({})", self.source) }
    }
}

impl File {
    fn overlaps(&self, other: &File) -> bool {
        let is_within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (is_within(&self.path, &other.path) || is_within(&other.path, &self.path))
    }
}

/// Warns of each pair of overlapping files of each volume.
pub(super) fn warn_of_overlapping_paths(volumes: &Value, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        for (source, name) in [("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")] {
            let items = &volume[source]["items"];
            if !items.is_null() {
                let told = describe(source, volume[source][name].str_or_empty());
                tell(volume, &told, files(items, ""), &mut Vec::new(), warnings);
            }
        }
        let mut seen = Vec::new();
        for projection in volume["projected"]["sources"].items() {
            if projection.is_empty() {
                let name = go_quote(volume["name"].str_or_empty());
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
            }
            tell(volume, "Projected", projected_files(projection), &mut seen, warnings);
        }
    }
}

fn describe(source: &str, name: &str) -> String {
    match source {
        "configMap" => format!("ConfigMap {}", go_quote(name)),
        "secret" => format!("Secret {}", go_quote(name)),
        _ => "DownwardAPI".to_owned(),
    }
}

fn files(items: &Value, source: &str) -> Vec<File> {
    let file = |item: &Value| File { path: trimmed(item["path"].str_or_empty()), source: source.to_owned() };
    items.items().iter().map(file).collect()
}

fn trimmed(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

fn projected_files(projection: &Value) -> Vec<File> {
    for source in ["configMap", "secret", "downwardAPI"] {
        let items = &projection[source]["items"];
        if !items.is_null() {
            return files(items, &describe(source, projection[source]["name"].str_or_empty()));
        }
    }
    match &projection["serviceAccountToken"] {
        Value::Null => Vec::new(),
        token => {
            vec![File { path: trimmed(token["path"].str_or_empty()), source: "ServiceAccountToken".to_owned() }]
        }
    }
}

fn tell(volume: &Value, what: &str, files: Vec<File>, seen: &mut Vec<File>, warnings: &mut Vec<String>) {
    for file in files {
        for other in seen.iter().filter(|other| file.overlaps(other)) {
            let name = go_quote(volume["name"].str_or_empty());
            warnings.push(format!("volume {name} ({what}): overlapping paths: {file} with {other}"));
        }
        seen.push(file);
    }
}
