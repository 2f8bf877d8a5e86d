//! YAML: what the reference library reads and writes.

use pintle_apimachinery::{Value, value};
use pintle_codec::yaml;
use std::fmt::Write as _;

/// Made by `go run . -yaml` in `tests/go` (sigs.k8s.io/yaml v1.6.0): texts, and what that library makes of each.
const READINGS: &str = include_str!("../fixtures/yaml.jsonl");

fn readings() -> impl Iterator<Item = Value> {
    READINGS.lines().map(|line| value::parse(line.as_bytes()).unwrap())
}

/// What differs between our reading of a text and the recorded one.
fn differences(reading: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, ours: &str, theirs: &str| {
        if ours != theirs {
            differences
                .push(format!("{:?}: {what}\n  ours   {ours}\n  theirs {theirs}", reading["text"].str_or_empty()));
        }
    };
    match yaml::parse(reading["text"].str_or_empty().as_bytes()) {
        Err(why) => compare("error", &why.to_string(), reading["error"].str_or_empty()),
        Ok(parsed) => {
            compare("error", "", reading["error"].str_or_empty());
            compare("strict", parsed.strict_error().as_deref().unwrap_or_default(), reading["strict"].str_or_empty());
            compare("document", &parsed.value.to_json_string(), &reading["json"].to_json_string());
            let written = String::from_utf8(yaml::write(&parsed.value)).unwrap();
            if reading.has("yaml") && !reading.has("error") {
                compare("written", &written, reading["yaml"].str_or_empty());
            }
        }
    }
    differences
}

/// Texts that we read or write otherwise, and why that may be so.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("k: 9223372036854775808\n", "values hold no integers beyond 64 bits with a sign"),
    ("k: 18446744073709551615\n", "as above"),
    ("? [a]\n: b\n", "the key is shown as JSON, not as Go prints it"),
    ("? {a: b}\n: c\n", "as above"),
    ("1: a\ntrue: b\n1.5: c\n~: d\n", "as above, for the value of the key"),
    ("\ta: b\n", "a tab before the first key is let pass"),
    ("...\n", "an end without a document is let pass"),
    ("a: b\n%c: d\n", "another word for the same fault"),
    ("\"a\n  b\": c\n", "another word for the same fault"),
    ("a: [b, c\nd: e\n", "the fault is seen later"),
    ("a: 'b\nc: d\n", "the fault is seen sooner"),
    ("a: {?b: c}\n", "YAML 1.2 has no key indicator there"),
    (r#"{"k":"a\/b"}"#, "JSON is read as JSON"),
    (r#"{"k":"\ud83d\ude00"}"#, "as above"),
];

#[test]
fn texts_as_the_reference_reads_and_writes_them() {
    let mut faults = String::new();
    for reading in readings() {
        let differences = differences(&reading);
        let is_exception = EXCEPTIONS.iter().any(|(text, _)| reading["text"].as_str() == Some(text));
        assert!(!is_exception || !differences.is_empty(), "{} is no exception any more", reading["text"]);
        if !is_exception {
            differences.iter().for_each(|d| writeln!(faults, "{d}").unwrap());
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn bodies_that_would_take_too_much() {
    let error = |text: &str| yaml::parse(text.as_bytes()).unwrap_err().to_string();
    // a billion laughs: nine levels of ten aliases each
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        writeln!(laughs, "a{level}: &a{level} [{}]", below.trim_end_matches(", ")).unwrap();
    }
    assert_eq!(error(&laughs), "yaml: document contains excessive aliasing");
    assert_eq!(error(&"[".repeat(5000)), "yaml: exceeded max depth");
    let deep: String = (0..600).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(error(&deep), "yaml: line 256: exceeded max depth");
    // an alias may stand deeper than its anchor: together they are too deep
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    assert_eq!(error(&format!("a: &a {open}{close}\nb: {open}*a{close}\n")), "yaml: exceeded max depth of 256");
    // a merge key is no way around the limits
    assert_eq!(error("a: &a\n  <<: *a\n"), "yaml: anchor 'a' value contains itself");
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(yaml::parse(b"a: \xff").unwrap_err().to_string(), "yaml: invalid leading UTF-8 octet");
}

proptest::proptest! {
    /// What is written reads back as the same document, and no text panics.
    #[test]
    fn written_documents_read_back(keys in proptest::collection::vec(".{0,12}", 0..6), texts in proptest::collection::vec("(?s).{0,40}", 0..6)) {
        let members: Value = Value::Object(keys.into_iter().zip(texts.iter().map(String::as_str)).collect());
        let document = pintle_apimachinery::json!({"m": (members.clone()), "l": [(members), (texts.clone())]});
        let written = yaml::write(&document);
        let read = yaml::parse(&written);
        proptest::prop_assert_eq!(read.map(|parsed| parsed.value), Ok(document), "{}", String::from_utf8_lossy(&written));
        for text in &texts {
            let _ = yaml::parse(text.as_bytes());
        }
    }
}
