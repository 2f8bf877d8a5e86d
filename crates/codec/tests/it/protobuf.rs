//! Protobuf: equal bytes one way, equal values the other, for every kind.

use crate::pairs::{Pair, fixtures, generate, kinds_with_names};
use pintle_apimachinery::{Object, Value, json, value};
use pintle_codec::protobuf::{
    FrameReader, ListMeta, decode, decode_object, encode, encode_json, encode_object, envelope, list, open_envelope,
    watch_frame,
};
use pintle_schema::kinds;

/// Every way in which a pair can disagree with us; empty when it does not.
fn faults(pair: &Pair) -> Vec<String> {
    let mut faults = Vec::new();
    let mut differ = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            let at = ours.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(80);
            let tail = |text: &str| text.bytes().skip(at).take(240).map(char::from).collect::<String>();
            faults.push(format!("{}: {what}\n  ours   {}\n  theirs {}", pair.name, tail(&ours), tail(&theirs)));
        }
    };
    // Go gives the members of its structs in their order
    let canonical = |json: &[u8]| pintle_schema::decode(json, pair.kind.id).unwrap().value;
    let object = canonical(&pair.json);
    let from_bytes = encode_json(&object.to_json(), pair.kind.id).unwrap();
    let from_bytes = envelope(&pair.api_version, pair.kind.kind, &from_bytes);
    differ("stored JSON to protobuf", from_bytes.escape_ascii().to_string(), pair.proto.escape_ascii().to_string());
    let encoded = encode_object(&object).map_or_else(|why| why.to_string(), |bytes| bytes.escape_ascii().to_string());
    differ("JSON to protobuf", encoded, pair.proto.escape_ascii().to_string());
    let decoded = decode_object(&pair.proto, None).map_or_else(|why| why.to_string(), |value| value.to_json_string());
    differ("protobuf to JSON", decoded, canonical(&pair.read).to_json_string());

    if let Some((wild, wild_json)) = &pair.wild {
        let body = envelope(&pair.api_version, pair.kind.kind, wild);
        let ours = decode_object(&body, None).map_or_else(|why| why.to_string(), |value| value.to_json_string());
        differ("wild protobuf to JSON", ours, canonical(&wild_json.to_json()).to_json_string());
    }
    if let Some(frame) = &pair.frame {
        differ(
            "watch frame",
            watch_frame("ADDED", &pair.proto).escape_ascii().to_string(),
            frame.escape_ascii().to_string(),
        );
    }
    faults
}

#[test]
fn fixtures_agree_both_ways() {
    let pairs = fixtures();
    assert_eq!(pairs.len(), 2 * kinds_with_names().count(), "two objects of each kind");
    let faults: Vec<String> = pairs.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn generated_objects_agree_both_ways() {
    let pairs = match generate(40) {
        Ok(pairs) => pairs,
        Err(why) => {
            eprintln!("skipped: comparing with freshly generated objects of the Go types ({why})");
            return;
        }
    };
    assert_eq!(pairs.len(), 40 * kinds_with_names().count());
    let faults: Vec<String> = pairs.iter().flat_map(faults).collect();
    assert!(
        faults.is_empty(),
        "{} faults in {} pairs:\n{}",
        faults.len(),
        pairs.len(),
        faults[..faults.len().min(20)].join("\n")
    );
}

/// A list framed from the bodies of its items is the list encoded as one object.
#[test]
fn lists_from_encoded_items() {
    let pairs = fixtures();
    let mut n_lists = 0;
    for list_kind in kinds() {
        let of_item = |p: &&Pair| {
            let is_same_group = p.kind.group == list_kind.group && p.kind.version == list_kind.version;
            is_same_group && list_kind.kind.strip_suffix("List") == Some(p.kind.kind)
        };
        let items: Vec<&Pair> = pairs.iter().filter(of_item).collect();
        let Some(first) = items.first().filter(|_| list_kind.kind != "APIGroupList") else { continue };
        n_lists += 1;
        let objects = items.iter().map(|p| pintle_schema::decode(&p.json, p.kind.id).unwrap().value);
        let whole = json!({
            "apiVersion": first.api_version.as_str(),
            "kind": list_kind.kind,
            "metadata": {"resourceVersion": "12", "continue": "token", "remainingItemCount": -1},
            "items": (objects.collect::<Value>()),
        });
        let bodies: Vec<Vec<u8>> = items.iter().map(|p| open_envelope(&p.proto).unwrap().body.to_vec()).collect();
        let meta =
            ListMeta { resource_version: "12", continue_token: "token", remaining_item_count: Some(-1), self_link: "" };
        let framed = list(&first.api_version, list_kind.kind, &meta, bodies.iter().map(Vec::as_slice));
        assert_eq!(framed.escape_ascii().to_string(), encode_object(&whole).unwrap().escape_ascii().to_string());
    }
    assert_eq!(n_lists, 61, "lists of everything that is stored, and of groups");
}

#[test]
fn frames_arrive_in_pieces() {
    let pairs = fixtures();
    let stream: Vec<u8> = pairs[..8].iter().flat_map(|p| watch_frame("MODIFIED", &p.proto)).collect();
    let mut reader = FrameReader::default();
    let mut got = Vec::new();
    for piece in stream.chunks(7) {
        reader.push(piece);
        while let Some(event) = reader.next_event().unwrap() {
            got.push(event);
        }
    }
    let want: Vec<_> = pairs[..8].iter().map(|p| ("MODIFIED".into(), p.proto.clone())).collect();
    assert_eq!(got, want);
    reader.push(&[0xff, 0xff, 0xff, 0xff]);
    assert_eq!(reader.next_event().unwrap_err().to_string(), "object to decode was longer than maximum allowed size");
}

#[test]
fn envelopes_that_are_none() {
    let text = |bytes: &[u8]| decode_object(bytes, None).unwrap_err().to_string();
    assert_eq!(text(b""), "empty data");
    assert_eq!(text(b"{}"), "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]");
    assert_eq!(text(b"k8s\0"), "empty body");
    assert_eq!(text(b"k8s\0\x0a\x09"), "unexpected EOF");
    assert_eq!(text(&envelope("v1", "", b"")), "Object 'Kind' is missing in 'v1'");
    assert_eq!(
        text(&envelope("example.com/v1", "Foo", b"")),
        r#"no kind "Foo" is registered for version "example.com/v1""#
    );
    assert_eq!(text(&envelope("v1", "Pod", b"\x08\x01")), "proto: wrong wireType = 0 for field metadata");
    // what the envelope leaves out comes from the request
    let body = envelope("", "", b"");
    let pod = decode_object(&body, Some(("v1", "Pod"))).unwrap();
    assert_eq!(
        pod.to_json_string(),
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":null},"status":{}}"#
    );
    assert_eq!(open_envelope(&body).unwrap().body, b"");
}

#[test]
fn messages_that_nest_too_deep_are_refused() {
    // JSONSchemaProps.not is field 28, and holds another one
    let mut schema = Vec::new();
    for _ in 0..2000 {
        let mut around = vec![0xe2, 0x01];
        let mut len = schema.len();
        while len >= 0x80 {
            around.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
            len >>= 7;
        }
        around.push(u8::try_from(len).unwrap());
        around.extend_from_slice(&schema);
        schema = around;
    }
    let id = pintle_schema::type_named("apiextensions/v1.JSONSchemaProps").unwrap();
    assert_eq!(decode(&schema, id).unwrap_err().to_string(), "proto: exceeded max depth");
}

/// The deepest document that is read can be written, on the stack of a test.
#[test]
fn deep_documents_are_written() {
    let levels = value::NESTING_DEPTH_MAX - 1;
    let json = r#"{"not":"#.repeat(levels) + "{}" + &"}".repeat(levels);
    let id = pintle_schema::type_named("apiextensions/v1.JSONSchemaProps").unwrap();
    let from_bytes = encode_json(json.as_bytes(), id).unwrap();
    assert_eq!(from_bytes, encode(&value::parse(json.as_bytes()).unwrap(), id).unwrap());
    let deeper = format!(r#"{{"not":{{"not":{json}}}}}"#);
    assert_eq!(
        encode_json(deeper.as_bytes(), id).unwrap_err().to_string(),
        "apiextensions/v1.JSONSchemaProps: field : the value is no JSON document"
    );
}

/// Members that stand in another order than that of their names are found all the same.
#[test]
fn documents_that_are_not_canonical() {
    let id = pintle_schema::kind("", "v1", "ConfigMap").unwrap().id;
    let json =
        br#" { "metadata" : {"namespace":"n","name":"a\u0062"}, "kind":"ConfigMap", "data":{"k":"\n"}, "other":1} "#;
    let canonical = pintle_schema::decode(json, id).unwrap().value;
    assert_eq!(encode_json(json, id).unwrap(), encode(&canonical, id).unwrap());
}

/// Cut-off and damaged messages give errors or other values, never a panic; and what is read can be written.
#[test]
fn damaged_messages() {
    for pair in fixtures().iter().filter(|p| p.name.ends_with("seed 1")) {
        let envelope = open_envelope(&pair.proto).unwrap();
        for at in (0..envelope.body.len()).step_by(5) {
            let _ = decode(&envelope.body[..at], pair.kind.id);
            let mut damaged = envelope.body.to_vec();
            damaged[at] ^= 0x55;
            if let Ok(value) = decode(&damaged, pair.kind.id) {
                let json = value.to_json();
                assert_eq!(value::parse(&json).unwrap().to_json(), json);
                encode(&value, pair.kind.id).unwrap();
            }
        }
    }
}

#[test]
fn values_of_a_wrong_type_are_told() {
    let pod = Value::Object(Object::from_iter([("apiVersion", "v1"), ("kind", "Pod"), ("spec", "none")]));
    assert_eq!(encode_object(&pod).unwrap_err().to_string(), "core/v1.Pod: field spec: the value is no object");
    let other = Value::Object(Object::from_iter([("apiVersion", "meta.k8s.io/v1"), ("kind", "Table")]));
    assert!(
        encode_object(&other)
            .unwrap_err()
            .to_string()
            .contains("does not implement the protobuf marshalling interface")
    );
}
