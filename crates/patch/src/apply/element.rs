//! Elements of paths in their text form, as FieldsV1 has them: `f:spec`, `k:{"name":"a"}`, `v:"x"`, `i:0`.
//!
//! The text is canonical (keys sorted, numbers and strings in one spelling), so that equal elements have equal texts
//! and sets can be kept and compared as text.

use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::value::{go_g, html_escaped, parse};
use pintle_apimachinery::{Str, Value};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// The member that says of a set's node that it is itself in the set.
pub(super) const SELF: &str = ".";

/// Stands for items that have no path element.
pub(super) const INVALID: &str = "?";

/// A text that is no path element.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed;

/// The element of a member.
pub(super) fn field(name: &str) -> Str {
    let mut text = Str::with_capacity(name.len() + 2);
    text.push_str("f:");
    text.push_str(name);
    text
}

/// The element of an item of a set.
pub(super) fn value(item: &Value) -> Str {
    let mut text = Str::const_new("v:");
    push_go(&mut text, item);
    text
}

/// The element of an item that is known by its keys, which stand sorted by name.
pub(super) fn keys<'a>(keys: impl Iterator<Item = (&'a str, &'a Value)>) -> Str {
    let mut text = Str::const_new("k:{");
    for (idx, (name, value)) in keys.enumerate() {
        if idx > 0 {
            text.push(',');
        }
        push_string(&mut text, name);
        text.push(':');
        push_go(&mut text, value);
    }
    text.push('}');
    text
}

/// Appends JSON as Go writes it, which escapes what HTML reads.
fn push_go(text: &mut Str, value: &Value) {
    match value {
        Value::String(s) => push_string(text, s),
        value => text.push_str(&html_escaped(value)),
    }
}

fn push_string(text: &mut Str, string: &str) {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    if string.bytes().all(is_plain) {
        text.push('"');
        text.push_str(string);
        text.push('"');
    } else {
        text.push_str(&html_escaped(&Value::from(string)));
    }
}

/// Brings the text of an element to its canonical form. `None` for elements of a type that is not known, which sets
/// leave out.
pub(super) fn canonical(text: &str) -> Result<Option<Str>, Malformed> {
    let (kind, rest) = match text.as_bytes() {
        [kind, b':', ..] => (*kind, &text[2..]),
        _ => return Err(Malformed),
    };
    match kind {
        b'f' => Ok(Some(Str::new(text))),
        b'v' => parse(rest.as_bytes()).map(|item| Some(value(&item))).map_err(|_| Malformed),
        b'k' => match parse(rest.as_bytes()) {
            Ok(Value::Object(object)) => Ok(Some(keys(object.iter().map(|(k, v)| (k.as_str(), v))))),
            _ => Err(Malformed),
        },
        b'i' => rest.parse::<i64>().map(|idx| Some(Str::from(format!("i:{idx}")))).map_err(|_| Malformed),
        _ => Ok(None),
    }
}

/// An element as messages show it: `.spec`, `[name="a"]`, `[="x"]`, `[0]`.
pub(super) fn shown(text: &str) -> String {
    let rest = text.get(2..).unwrap_or_default();
    match text.as_bytes().first() {
        Some(b'f') => format!(".{rest}"),
        Some(b'k') => {
            let keys = parse(rest.as_bytes()).unwrap_or_default();
            let pairs: Vec<String> = keys.entries().map(|(k, v)| format!("{k}={}", shown_value(v))).collect();
            format!("[{}]", pairs.join(","))
        }
        Some(b'v') => format!("[={}]", shown_value(&parse(rest.as_bytes()).unwrap_or_default())),
        Some(b'i') => format!("[{rest}]"),
        _ => "{{invalid path element}}".to_owned(),
    }
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => go_g(*f),
        Value::String(s) => go_quote(s),
        Value::Array(items) => format!("[{}]", items.iter().map(shown_value).collect::<Vec<_>>().join(",")),
        Value::Object(object) => object.iter().fold(String::new(), |mut out, (k, v)| {
            write!(out, "{k}={}", shown_value(v)).expect("writing to a String cannot fail");
            out
        }),
    }
}

/// The order in which upstream tells elements: members by name, then keyed items by keys, then values, then indices.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let rank = |text: &str| match text.as_bytes().first() {
        Some(b'f') => 0,
        Some(b'k') => 1,
        Some(b'v') => 2,
        _ => 3,
    };
    let parsed = |text: &str| parse(text.get(2..).unwrap_or_default().as_bytes()).unwrap_or_default();
    match (rank(left), rank(right)) {
        (0, 0) => left.cmp(right),
        (1, 1) => {
            let (left, right) = (parsed(left), parsed(right));
            let pairs = left.entries().zip(right.entries());
            pairs
                .map(|((lk, lv), (rk, rv))| lk.cmp(rk).then_with(|| compare_values(lv, rv)))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| left.entries().len().cmp(&right.entries().len()))
        }
        (2 | 3, 2 | 3) if rank(left) == rank(right) => compare_values(&parsed(left), &parsed(right)),
        (left, right) => left.cmp(&right),
    }
}

/// Numbers before strings before booleans before the rest.
fn compare_values(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        _ => rank(left).cmp(&rank(right)).then_with(|| left.to_json().cmp(&right.to_json())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn canonical_texts() {
        for (text, want) in [
            ("f:a b", Ok(Some("f:a b"))),
            ("f:", Ok(Some("f:"))),
            (r#"k:{ "port":80.0 ,"name":"a"}"#, Ok(Some(r#"k:{"name":"a","port":80}"#))),
            (r#"v: "x<\u0041" "#, Ok(Some(r#"v:"x\u003cA""#))),
            ("v:1e2", Ok(Some("v:100"))),
            ("i:007", Ok(Some("i:7"))),
            ("x:future", Ok(None)),
            ("f", Err(Malformed)),
            ("", Err(Malformed)),
            ("field", Err(Malformed)),
            ("k:[]", Err(Malformed)),
            ("k:{", Err(Malformed)),
            ("i:x", Err(Malformed)),
        ] {
            assert_eq!(canonical(text), want.map(|ok| ok.map(Str::new)), "{text}");
        }
    }

    #[test]
    fn in_messages() {
        for (text, want) in [
            ("f:spec", ".spec"),
            (r#"k:{"name":"a","port":80}"#, r#"[name="a",port=80]"#),
            (r#"v:"x""#, r#"[="x"]"#),
            ("v:1.5", "[=1.5]"),
            ("i:3", "[3]"),
        ] {
            assert_eq!(shown(text), want);
        }
        assert_eq!(value(&json!("a&b")), r#"v:"a\u0026b""#);
    }

    #[test]
    fn the_order_of_messages() {
        let mut texts =
            ["i:10", "i:9", "v:true", r#"v:"a""#, "v:3", r#"k:{"port":443}"#, r#"k:{"port":80}"#, "f:b", "f:a"];
        texts.sort_by(|a, b| compare(a, b));
        assert_eq!(
            texts,
            ["f:a", "f:b", r#"k:{"port":80}"#, r#"k:{"port":443}"#, "v:3", r#"v:"a""#, "v:true", "i:9", "i:10"]
        );
    }
}
