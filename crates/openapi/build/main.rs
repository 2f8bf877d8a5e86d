//! Makes the published definitions of all built-in types: their structure from the fact tables of the kind catalogue
//! (and two of this crate's own), their prose from k8s-openapi. They go compressed into the binary and are unpacked
//! when a document is asked for; the prose is never part of this project's source.
//!
//! The result has one line a definition, sorted by name: the name, the names it refers to (comma-separated), and its
//! schema as JSON in the form of OpenAPI v3, separated by tabs.

#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

mod definitions;
mod facts;
mod prose;

use std::io::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let (own_facts, schema_facts) = (Path::new(&root).join("facts"), Path::new(&root).join("../schema/facts"));
    for watched in ["build".as_ref(), own_facts.as_path(), schema_facts.as_path()] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let facts = facts::Facts::read(&own_facts, &schema_facts)?;
    let definitions = definitions::all(&facts, &prose::all())?;
    let mut text = String::new();
    for (name, schema) in &definitions {
        let refs = definitions::refs(schema);
        if let Some(missing) = refs.iter().find(|name| !definitions.contains_key(*name)) {
            return Err(format!("{name} refers to {missing}, which is no definition").into());
        }
        let refs: Vec<&str> = refs.iter().map(String::as_str).collect();
        text += &format!("{name}\t{}\t{schema}\n", refs.join(","));
    }
    let out = std::env::var("OUT_DIR")?;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(text.as_bytes())?;
    std::fs::write(Path::new(&out).join("definitions.z"), packed.finish()?)?;
    let consts =
        format!("/// Bytes of the definitions once unpacked.\nconst UNPACKED_BYTES: usize = {};\n", text.len());
    std::fs::write(Path::new(&out).join("definitions.rs"), consts)?;
    Ok(())
}
