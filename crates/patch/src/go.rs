//! Values as Go's `fmt` prints them: error texts of patches and of apply show documents this way.

use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::value::go_g;

/// `%v`: `map[a:1 b:[x y]]`.
pub(crate) fn v(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Verb::V);
    out
}

/// `%s`: as `%v`, but what is no string shows as a misuse of the verb: `%!s(int64=5)`.
pub(crate) fn s(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Verb::S);
    out
}

/// `%#v`: `map[string]interface {}{"a":1}`.
pub(crate) fn sharp_v(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Verb::SharpV);
    out
}

/// `%T`.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Verb {
    V,
    S,
    SharpV,
}

fn write(out: &mut String, value: &Value, verb: Verb) {
    match (value, verb) {
        (Value::Array(items), Verb::SharpV) => {
            out.push_str("[]interface {}{");
            separated(out, items.iter(), ", ", |out, item| write(out, item, verb));
            out.push('}');
        }
        (Value::Object(_), Verb::SharpV) => {
            out.push_str("map[string]interface {}{");
            separated(out, value.entries(), ", ", |out, (key, member)| {
                out.push_str(&go_quote(key));
                out.push(':');
                write(out, member, verb);
            });
            out.push('}');
        }
        (Value::Array(items), Verb::V | Verb::S) => {
            out.push('[');
            separated(out, items.iter(), " ", |out, item| write(out, item, verb));
            out.push(']');
        }
        (Value::Object(_), Verb::V | Verb::S) => {
            out.push_str("map[");
            separated(out, value.entries(), " ", |out, (key, member)| {
                out.push_str(key);
                out.push(':');
                write(out, member, verb);
            });
            out.push(']');
        }
        (Value::String(text), Verb::SharpV) => out.push_str(&go_quote(text)),
        (Value::String(text), Verb::V | Verb::S) => out.push_str(text),
        (Value::Null, Verb::SharpV) => out.push_str("interface {}(nil)"),
        (Value::Null, Verb::V) => out.push_str("<nil>"),
        (Value::Null, Verb::S) => out.push_str("%!s(<nil>)"),
        (Value::Bool(_) | Value::Int(_) | Value::Float(_), Verb::S) => {
            out.push_str(&format!("%!s({}={})", type_name(value), v(value)));
        }
        (Value::Bool(b), Verb::V | Verb::SharpV) => out.push_str(if *b { "true" } else { "false" }),
        (Value::Int(i), Verb::V | Verb::SharpV) => out.push_str(&i.to_string()),
        (Value::Float(f), Verb::V | Verb::SharpV) => out.push_str(&go_g(*f)),
    }
}

fn separated<T>(out: &mut String, items: impl Iterator<Item = T>, by: &str, mut write: impl FnMut(&mut String, T)) {
    for (idx, item) in items.enumerate() {
        if idx > 0 {
            out.push_str(by);
        }
        write(out, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn as_go_prints() {
        let value = json!({"a": [1, "x", null], "b": {"f": 1e6, "t": true}});
        assert_eq!(v(&value), "map[a:[1 x <nil>] b:map[f:1e+06 t:true]]");
        assert_eq!(s(&value["a"]), "[%!s(int64=1) x %!s(<nil>)]");
        assert_eq!(
            sharp_v(&value),
            r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":map[string]interface {}{"f":1e+06, "t":true}}"#
        );
    }
}
