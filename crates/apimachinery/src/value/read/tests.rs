use super::*;
use proptest::prelude::*;

fn error(text: &str) -> String {
    parse(text.as_bytes()).unwrap_err().message
}

#[test]
fn faults_in_gos_words() {
    assert_eq!(error(""), "unexpected end of JSON input");
    assert_eq!(error("{"), "unexpected end of JSON input");
    assert_eq!(error("{}x"), "invalid character 'x' after top-level value");
    assert_eq!(error("{,}"), "invalid character ',' looking for beginning of object key string");
    assert_eq!(error("not json"), "invalid character 'o' in literal null (expecting 'u')");
    assert_eq!(error("[1 2]"), "invalid character '2' after array element");
    assert_eq!(error("{\"a\" 1}"), "invalid character '1' after object key");
    assert_eq!(error("{\"a\":1 \"b\"}"), "invalid character '\"' after object key:value pair");
    assert_eq!(error("\"a\nb\""), "invalid character '\\n' in string literal");
    assert_eq!(error("-x"), "invalid character 'x' in numeric literal");
    assert_eq!(error("1.x"), "invalid character 'x' after decimal point in numeric literal");
}

#[test]
fn numbers_strings_and_nesting() {
    let v =
        parse(br#"{"i":-5,"f":1.50,"e":1e3,"big":99999999999999999999,"s":"\u00e9\ud83d\ude00\ud800x\n"}"#).unwrap();
    assert_eq!(v["i"], Value::Int(-5));
    assert_eq!(v["f"], Value::Float(1.5));
    assert_eq!(v["e"], Value::Float(1000.0));
    assert_eq!(v["big"], Value::Float(1e20));
    assert_eq!(v["s"].as_str(), Some("é😀\u{fffd}x\n"));
    let deep = "[".repeat(NESTING_DEPTH_MAX + 1);
    assert!(error(&deep).contains("max depth"));
}

#[test]
fn duplicates_are_told_with_their_paths() {
    let parsed = parse_guided(br#"{"a":{"b":[{"c":1,"c":2}]},"a":3}"#, Free).unwrap();
    let told: Vec<String> = parsed.issues.strict.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["duplicate field \"a.b[0].c\"", "duplicate field \"a\""]);
    assert_eq!(parsed.value.to_json_string(), r#"{"a":3}"#);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>()
            .prop_filter("JSON has no such number", |f| f.is_finite() && f.fract() != 0.0)
            .prop_map(Value::Float),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_values_read_back(value in any_value()) {
        prop_assert_eq!(parse(&value.to_json()).unwrap(), value);
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }
}
