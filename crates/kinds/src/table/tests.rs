//! Cells against rows that kube-apiserver v1.35.4 made, with their objects (`includeObject=Object`).

use super::*;
use crate::convert::{convert, stored_kind};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::value;

/// One row a line: group, version, resource, the moment of the answer, the names of the columns, and the row.
const ROWS: &str = include_str!("fixtures.jsonl");

fn recorded() -> impl Iterator<Item = Value> {
    ROWS.lines().map(|line| value::parse(line.as_bytes()).unwrap())
}

#[test]
fn cells_as_recorded() {
    let mut faults = Vec::new();
    let mut resources = std::collections::BTreeSet::new();
    for recorded in recorded() {
        let [group, version, resource] = ["group", "version", "resource"].map(|f| recorded[f].str_or_empty());
        let now: Timestamp = recorded["date"].str_or_empty().parse().unwrap();
        let object = &recorded["row"]["object"];
        // cells are made of the stored form
        let kind = object.gvk().unwrap();
        let stored = convert(object.clone(), &kind.group_version(), &stored_kind(&kind).group_version(), &kind.kind);
        let mut ours = row(group, resource, &stored.unwrap(), IncludeObject::Object, "v1", now);
        ours.set("object", object.clone());
        let names: Vec<Value> =
            column_definitions(group, version, resource).into_iter().map(|c| c["name"].clone()).collect();
        if ours != recorded["row"] || Value::Array(names.clone()) != recorded["columns"] {
            faults
                .push(format!("{group} {resource}\n  ours   {}\n  theirs {}", ours["cells"], recorded["row"]["cells"]));
        }
        resources.insert((group.to_owned(), resource.to_owned()));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    let missing: Vec<_> =
        KINDS.iter().filter(|(g, r, _)| !resources.contains(&((*g).to_owned(), (*r).to_owned()))).collect();
    assert!(
        missing.is_empty(),
        "not in the fixtures: {:?}",
        missing.iter().map(|(g, r, _)| (g, r)).collect::<Vec<_>>()
    );
}

#[test]
fn every_printer_has_columns_and_fills_them() {
    assert!(KINDS.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)), "the table is searched");
    for (group, resource, printer) in KINDS {
        let found = pintle_schema::resources().iter().find(|r| r.group == *group && r.plural == *resource).unwrap();
        let n_columns = pintle_schema::columns(group, found.version, resource).count();
        let made = printer(&Subject { object: &Value::NULL, now: Timestamp::UNIX_EPOCH }).len();
        // an IPAddress has a cell for its age and no column
        assert!(
            made == n_columns || (*resource == "ipaddresses" && made == n_columns + 1),
            "{resource}: {made} cells, {n_columns} columns"
        );
    }
}

#[test]
fn documents() {
    let pod = json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}});
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let row = row("", "configmaps", &pod, IncludeObject::parse("").unwrap(), "v1beta1", now);
    let table = table("", "v1", "configmaps", vec![row], json!({"resourceVersion": "7"}), false, "v1beta1");
    assert_eq!(
        table.to_json_string(),
        r#"{"apiVersion":"meta.k8s.io/v1beta1","columnDefinitions":null,"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[{"cells":["a",0,"60m"],"object":{"apiVersion":"meta.k8s.io/v1beta1","kind":"PartialObjectMetadata","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"a"}}}]}"#
    );
    assert_eq!(
        IncludeObject::parse("All").unwrap_err(),
        r#"Unable to convert to Table as requested: includeObject: Invalid value: "All": must be 'Metadata', 'Object', 'None', or empty"#
    );
    let list = partial_object_metadata_list([&pod], json!({}), "v1");
    assert_eq!(list["items"].items().len(), 1);
    assert_eq!(row_of(vec![], &pod, IncludeObject::None, "v1").to_json_string(), r#"{"cells":[],"object":null}"#);
}
