//! JSON out: the bytes Go's `encoding/json` would write (without HTML escaping) for the same document.

use super::Value;

/// Appends the canonical JSON of `value`.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(i) => out.extend_from_slice(itoa::Buffer::new().format(*i).as_bytes()),
        Value::Float(f) => out.extend_from_slice(go_float(*f).as_bytes()),
        Value::String(s) => write_json_string(out, s),
        Value::Array(items) => {
            out.push(b'[');
            for (idx, item) in items.iter().enumerate() {
                if idx > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (idx, (key, member)) in object.iter().enumerate() {
                if idx > 0 {
                    out.push(b',');
                }
                write_json_string(out, key);
                out.push(b':');
                write_value(out, member);
            }
            out.push(b'}');
        }
    }
}

/// For each byte: 0 if it stands for itself in a JSON string, else what follows the backslash (`u` for the long form).
const ESCAPES: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[0x08] = b'b';
    table[0x0c] = b'f';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Appends `s` as a JSON string with its quotes.
pub fn write_json_string(out: &mut Vec<u8>, s: &str) {
    out.push(b'"');
    let bytes = s.as_bytes();
    let mut done = 0;
    for (idx, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[done..idx]);
        done = idx + 1;
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

/// A float as Go's `encoding/json` writes it: shortest digits, plain notation from 1e-6 up to 1e21, exponents without
/// a padded zero.
pub fn go_float(f: f64) -> String {
    if f == 0.0 {
        return if f.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    if !f.is_finite() {
        return "null".to_owned();
    }
    // Rust's {:e} gives the shortest digits that read back: d.ddde-7
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    if !(1e-6..1e21).contains(&f.abs()) {
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        // Go pads to two digits, and encoding/json then takes the zero out of e-09 only
        let digits = if sign == '+' && digits.len() < 2 { format!("0{digits}") } else { digits.to_owned() };
        return format!("{mantissa}e{sign}{digits}");
    }
    format!("{f}")
}

/// A float as Go's `%v` prints it: shortest digits, with an exponent below 1e-4 and from 1e6 on (`1e+06`).
pub fn go_g(f: f64) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if f != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    if f == 0.0 && f.is_sign_negative() { "-0".to_owned() } else { format!("{f}") }
}

/// A value as Go's `%v` prints one read from JSON: `map[a:1 b:[x y]]`, strings as they are, null as `<nil>`.
pub fn go_v(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => go_g(*f),
        Value::String(s) => s.to_string(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_v).collect::<Vec<_>>().join(" ")),
        Value::Object(object) => {
            let members: Vec<String> = object.iter().map(|(key, member)| format!("{key}:{}", go_v(member))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

/// The JSON of a value as Go's `json.Marshal` writes it, which escapes what HTML reads: `<`, `>`, `&` and the line
/// separators U+2028 and U+2029.
pub fn html_escaped(value: &Value) -> String {
    let json = value.to_json_string();
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_go_writes_them() {
        for (f, want) in [
            (1.5, "1.5"),
            (1.0, "1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (-2.5e-10, "-2.5e-10"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(go_float(f), want);
        }
    }

    #[test]
    fn floats_as_go_prints_them() {
        for (f, want) in [
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1e5, "100000"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(go_g(f), want);
        }
    }

    #[test]
    fn strings_escape_only_what_json_needs() {
        let mut out = Vec::new();
        write_json_string(&mut out, "a\"b\\c\n\u{1}<é>");
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"b\\\\c\\n\\u0001<é>\"");
    }
}
