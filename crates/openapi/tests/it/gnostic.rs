//! The protobuf forms: byte for byte what gnostic makes of the same document.

use crate::custom::with_custom;
use pintle_apimachinery::value;
use pintle_openapi::{v2, v2_protobuf, v3, v3_protobuf};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What the reference program makes of a document; what is missing to run it, if it cannot be run.
fn reference(version: &str, document: &[u8]) -> Result<Vec<u8>, String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go");
    let mut child = Command::new("go")
        .args(["run", ".", version])
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| format!("cannot run go: {why}"))?;
    child.stdin.take().unwrap().write_all(document).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the reference program failed; can it fetch its modules?");
    Ok(output.stdout)
}

#[test]
fn the_same_bytes_as_gnostic() {
    if std::env::var_os("SLOW").is_none() {
        eprintln!("skipped: comparing protobuf documents with those of gnostic (SLOW is not set)");
        return;
    }
    with_custom(|custom| {
        let document = v2::document(custom);
        match reference("v2", &document.to_json()) {
            Ok(theirs) => assert!(v2_protobuf(&document) == theirs, "v2 differs"),
            Err(why) => return eprintln!("skipped: comparing protobuf documents with those of gnostic ({why})"),
        }
        for path in ["api/v1", "apis/apiextensions.k8s.io/v1", "apis/shop.example.com/v1", "version"] {
            let json = v3::document(path, custom).unwrap();
            let ours = v3_protobuf(&value::parse(&json).unwrap());
            assert!(ours == reference("v3", &json).unwrap(), "{path} differs");
        }
    });
}

/// A part small enough to read: names and numbers as in the message definitions.
#[test]
fn a_document_in_bytes() {
    let json = v3::document("version", &[]).unwrap();
    let message = v3_protobuf(&value::parse(&json).unwrap());
    assert!(
        message.starts_with(b"\x0a\x053.0.0\x12\x12\x0a\x0aKubernetes\x32\x041.35\x22"),
        "{}",
        message[..40].escape_ascii()
    );
    let empty =
        v2_protobuf(&value::parse(br#"{"swagger":"2.0","definitions":{"a":{"type":"string","x-k":[1]}}}"#).unwrap());
    assert_eq!(
        empty.escape_ascii().to_string(),
        r#"\n\x032.0J\"\n \n\x01a\x12\x1b\xb2\x01\x08\n\x06string\xfa\x01\r\n\x03x-k\x12\x06\x12\x04- 1\n"#
    );
}
