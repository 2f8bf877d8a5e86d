//! How the reference implementation shows a value inside a message: as JSON of its *internal* types, whose fields come
//! in declaration order, mostly under their Go names and with nothing left out
//! (`{"Name":"c","ResourceClaimName":null}`).
//!
//! Only errors need this, so the table behind it is read when the first one does.

use pintle_apimachinery::Value;
use pintle_apimachinery::value::{write_json_string, write_value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// One field of a type as it is shown.
struct Row {
    /// The key; `-` for an embedded struct, whose fields stand among the others.
    shown: &'static str,
    /// The member of the wire form; `?` when the wire has it elsewhere or not at all.
    wire: &'static str,
    /// What it holds: `string`, `int`, `bool`, a type's name, or one of them behind `*`, `[]`, `{}`.
    kind: &'static str,
    omit_empty: bool,
}

type Table = BTreeMap<&'static str, Vec<Row>>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::new();
        let mut rows = &mut Vec::new();
        for line in include_str!("../../facts/internal-fields.tsv").lines().filter(|l| !l.starts_with('#')) {
            match line.strip_prefix('\t') {
                None => rows = table.entry(line).or_default(),
                Some(row) => {
                    let mut cells = row.split('\t');
                    let mut cell = || cells.next().unwrap_or_default();
                    rows.push(Row { shown: cell(), wire: cell(), kind: cell(), omit_empty: cell() == "e" });
                }
            }
        }
        table
    })
}

/// `value` on one line. `kind` says what it is: a type of the schema (`core/v1.Toleration`), or one behind `*`
/// (pointer), `[]` (list) or `{}` (map); `""` for what has no type of its own.
pub fn compact(value: &Value, kind: &str) -> String {
    Writer::write(value, kind, false)
}

/// `value` over several lines, each level indented by one space.
pub fn pretty(value: &Value, kind: &str) -> String {
    Writer::write(value, kind, true)
}

struct Writer<'v> {
    out: Vec<u8>,
    is_pretty: bool,
    depth: usize,
    /// The pod spec around: it holds on the wire what the internal security context holds.
    pod_spec: &'v Value,
}

impl<'v> Writer<'v> {
    fn write(value: &'v Value, kind: &str, is_pretty: bool) -> String {
        let mut writer = Writer { out: Vec::with_capacity(256), is_pretty, depth: 0, pod_spec: const { &Value::NULL } };
        let n_marks = kind.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(kind.len());
        let (marks, name) = kind.split_at(n_marks);
        writer.any(value, &format!("{marks}{}", internal_name(name)));
        let text = String::from_utf8(writer.out).unwrap_or_default();
        // these characters can stand only inside strings, where Go escapes them
        text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
    }

    fn any(&mut self, value: &'v Value, kind: &str) {
        if let Some(inner) = kind.strip_prefix('*') {
            return if value.is_null() { self.text("null") } else { self.any(value, inner) };
        }
        if let Some(inner) = kind.strip_prefix("[]") {
            return match value.as_array() {
                None => self.text("null"),
                Some(items) => self.list(items, inner),
            };
        }
        if let Some(inner) = kind.strip_prefix("{}") {
            return match value.as_object() {
                None => self.text("null"),
                Some(_) => self.map(value, inner),
            };
        }
        match (kind, value) {
            ("string", Value::Null) => self.text("\"\""),
            ("int" | "util/intstr.IntOrString", Value::Null) => self.text("0"),
            ("bool", Value::Null) => self.text("false"),
            ("api/resource.Quantity", Value::Null) => self.text("\"0\""),
            _ => match table().get_key_value(kind) {
                Some((name, _)) => self.object(value, name),
                None => write_value(&mut self.out, value),
            },
        }
    }

    fn list(&mut self, items: &'v [Value], kind: &str) {
        self.open('[');
        for (idx, item) in items.iter().enumerate() {
            self.next(idx == 0);
            self.any(item, kind);
        }
        self.close(']', items.is_empty());
    }

    fn map(&mut self, value: &'v Value, kind: &str) {
        self.open('{');
        for (idx, (key, member)) in value.entries().enumerate() {
            self.next(idx == 0);
            self.key(key);
            self.any(member, kind);
        }
        self.close('}', value.entries().len() == 0);
    }

    fn object(&mut self, value: &'v Value, name: &'static str) {
        let around = self.pod_spec;
        if name == "core.PodSpec" {
            self.pod_spec = value;
        }
        self.open('{');
        let mut is_first = true;
        self.fields(value, name, &mut is_first);
        self.close('}', is_first);
        self.pod_spec = around;
    }

    fn fields(&mut self, value: &'v Value, name: &str, is_first: &mut bool) {
        for row in table().get(name).into_iter().flatten() {
            if row.shown == "-" {
                // metadata is embedded in Go and a member on the wire
                let value = if row.kind == "meta/v1.ObjectMeta" { value.get("metadata") } else { value };
                self.fields(value, row.kind.trim_start_matches('*'), is_first);
                continue;
            }
            let member = self.member(value, name, row);
            if row.omit_empty && member.is_empty() && !table().contains_key(row.kind) {
                continue;
            }
            self.next(*is_first);
            *is_first = false;
            self.key(row.shown);
            if name == "core.PodSpec" && row.wire == "securityContext" {
                self.any(member, "core.PodSecurityContext");
            } else {
                self.any(member, row.kind);
            }
        }
    }

    fn member(&self, value: &'v Value, name: &str, row: &Row) -> &'v Value {
        match (name, row.wire) {
            ("core.PodSecurityContext", "?") => {
                let mut wire = row.shown.to_owned();
                wire[..1].make_ascii_lowercase();
                self.pod_spec.get(&wire)
            }
            (_, wire) => value.get(wire),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn key(&mut self, key: &str) {
        write_json_string(&mut self.out, key);
        self.text(if self.is_pretty { ": " } else { ":" });
    }

    fn open(&mut self, bracket: char) {
        self.text(bracket.encode_utf8(&mut [0; 4]));
        self.depth += 1;
    }

    fn next(&mut self, is_first: bool) {
        if !is_first {
            self.text(",");
        }
        self.line();
    }

    fn close(&mut self, bracket: char, is_empty: bool) {
        self.depth -= 1;
        if !is_empty {
            self.line();
        }
        self.text(bracket.encode_utf8(&mut [0; 4]));
    }

    fn line(&mut self) {
        if self.is_pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + self.depth, b' ');
        }
    }
}

/// `core.PodSpec` of `core/v1.PodSpec`: internal types have no version, shared ones (`meta/v1.LabelSelector`) keep it.
fn internal_name(name: &str) -> String {
    match name.split_once('/') {
        Some((group, rest)) if group != "meta" => match rest.split_once('.') {
            Some((_, kind)) => format!("{group}.{kind}"),
            None => name.to_owned(),
        },
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn values_as_messages_show_them() {
        let claim = json!({"name": "c", "resourceClaimName": "<x>"});
        expect![[r#"{"Name":"c","ResourceClaimName":"\u003cx\u003e","ResourceClaimTemplateName":null}"#]]
            .assert_eq(&compact(&claim, "core/v1.PodResourceClaim"));
        let selector = json!({"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchLabels": {"b": "c"}});
        expect![[r#"{"matchLabels":{"b":"c"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#]]
            .assert_eq(&compact(&selector, "*meta/v1.LabelSelector"));
        assert_eq!(compact(&Value::Null, "*meta/v1.LabelSelector"), "null");
        assert_eq!(compact(&json!(["a"]), "[]string"), r#"["a"]"#);
        let spec = json!({"hostPID": true, "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]});
        let shown = pretty(&spec, "core/v1.PodSpec");
        let context: Vec<&str> = shown.lines().skip_while(|l| !l.contains("SecurityContext")).take(4).collect();
        expect![[r#" "SecurityContext": {|  "HostNetwork": false,|  "HostPID": true,|  "HostIPC": false,"#]]
            .assert_eq(&context.join("|"));
    }
}
