//! OpenAPI documents as the protobuf messages of gnostic, which client-go and older kubectl ask for.
//!
//! The messages are tables ([`v2`], [`v3`]); this is what walks a document along them. Whatever has no field of its own
//! (extensions, enumerated values) goes as YAML text.
//!
//! Follows: gnostic-models v0.7 `OpenAPIv2.proto`, `OpenAPIv3.proto`.

mod v2;
mod v3;

use pintle_apimachinery::Value;
use pintle_codec::yaml;

/// A v2 document as `openapi.v2.Document`.
pub fn v2_protobuf(document: &Value) -> Vec<u8> {
    encode(&v2::DOCUMENT, document)
}

/// A v3 document as `openapi.v3.Document`.
pub fn v3_protobuf(document: &Value) -> Vec<u8> {
    encode(&v3::DOCUMENT, document)
}

/// What a message is made of.
enum Form {
    /// A message whose fields are the members of an object.
    Object(Object),
    /// One of several messages: the number of the field, and what stands in it.
    OneOf(fn(&Value) -> (u32, &'static Form)),
    /// A message with one repeated field: the items of a list, or one that stands for a list of itself.
    Items(u32, &'static Form),
    /// A string or a list of strings, as a message with one repeated field.
    Texts(u32),
    /// `DefaultType`: a number, a flag or a text; for anything else an empty message.
    Default,
    /// A flag, as a message with that field.
    Flag(u32),
}

/// See [`Form::Object`].
struct Object {
    /// The declared members by name, with the number of the field; in order of the numbers.
    fields: &'static [(&'static str, u32, Kind)],
    /// Where other members go by name: paths, statuses.
    others: Option<(u32, &'static Form)>,
    /// Where members go whose names begin with `x-`.
    extensions: u32,
}

/// What a field holds.
enum Kind {
    Text,
    Flag,
    Integer,
    Number,
    /// Strings.
    Texts,
    /// Any value, as YAML.
    Any,
    /// A list of values, each as YAML.
    Anys,
    /// A message.
    One(&'static Form),
    /// A list of messages.
    Many(&'static Form),
    /// An object whose members are messages: a message of pairs.
    Members(&'static Form),
}

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f).to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    out.push(n.to_le_bytes()[0]);
}

fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_flag(out: &mut Vec<u8>, number: u32, flag: bool) {
    put_varint(out, u64::from(number) << 3);
    out.push(u8::from(flag));
}

fn put_number(out: &mut Vec<u8>, number: u32, value: f64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A name and what it stands for: field 1 and field 2.
fn put_named(out: &mut Vec<u8>, number: u32, name: &str, value: &[u8]) {
    let mut pair = Vec::with_capacity(name.len() + value.len() + 12);
    put_bytes(&mut pair, 1, name.as_bytes());
    put_bytes(&mut pair, 2, value);
    put_bytes(out, number, &pair);
}

/// The message `Any`: its text is field 2.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, 2, &yaml::write(value));
    out
}

fn encode(form: &Form, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match form {
        Form::Object(object) => object.encode(&mut out, value),
        Form::OneOf(choose) => {
            let (number, form) = choose(value);
            match (form, value) {
                // a flag stands in the field itself
                (Form::Flag(number), _) => put_flag(&mut out, *number, value.is_true()),
                _ => put_bytes(&mut out, number, &encode(form, value)),
            }
        }
        Form::Items(number, form) => match value {
            Value::Array(items) => items.iter().for_each(|item| put_bytes(&mut out, *number, &encode(form, item))),
            single => put_bytes(&mut out, *number, &encode(form, single)),
        },
        Form::Texts(number) => match value {
            Value::Array(items) => items.iter().for_each(|t| put_bytes(&mut out, *number, t.str_or_empty().as_bytes())),
            single => put_bytes(&mut out, *number, single.str_or_empty().as_bytes()),
        },
        Form::Default => match value {
            Value::Bool(flag) => put_flag(&mut out, 2, *flag),
            Value::String(text) => put_bytes(&mut out, 3, text.as_bytes()),
            other => {
                if let Some(number) = other.as_f64() {
                    put_number(&mut out, 1, number);
                }
            }
        },
        Form::Flag(number) => put_flag(&mut out, *number, value.is_true()),
    }
    out
}

impl Object {
    fn encode(&self, out: &mut Vec<u8>, value: &Value) {
        let others = |out: &mut Vec<u8>| {
            let Some((number, form)) = self.others else { return };
            let is_other = |key: &str| !key.starts_with("x-") && !self.fields.iter().any(|(name, ..)| *name == key);
            for (key, member) in value.entries().filter(|(key, _)| is_other(key)) {
                put_named(out, number, key, &encode(form, member));
            }
        };
        let mut has_others = false;
        for (name, number, kind) in self.fields {
            if self.others.is_some_and(|(at, _)| at < *number) && !std::mem::replace(&mut has_others, true) {
                others(out);
            }
            if value.has(name) {
                kind.encode(out, *number, value.get(name));
            }
        }
        let extensions = |out: &mut Vec<u8>| {
            for (key, member) in value.entries().filter(|(key, _)| key.starts_with("x-")) {
                put_named(out, self.extensions, key, &any(member));
            }
        };
        let others_first = self.others.is_none_or(|(at, _)| at < self.extensions);
        if !others_first {
            extensions(out);
        }
        if !has_others {
            others(out);
        }
        if others_first {
            extensions(out);
        }
    }
}

impl Kind {
    /// Zero values are not written.
    fn encode(&self, out: &mut Vec<u8>, number: u32, value: &Value) {
        match self {
            Kind::Text => {
                if let Some(text) = value.as_str().filter(|t| !t.is_empty()) {
                    put_bytes(out, number, text.as_bytes());
                }
            }
            Kind::Flag => {
                if value.is_true() {
                    put_flag(out, number, true);
                }
            }
            Kind::Integer => {
                if let Some(n) = value.as_i64().filter(|n| *n != 0) {
                    put_varint(out, u64::from(number) << 3);
                    put_varint(out, n.cast_unsigned());
                }
            }
            Kind::Number => {
                if let Some(n) = value.as_f64().filter(|n| *n != 0.0) {
                    put_number(out, number, n);
                }
            }
            Kind::Texts => value.items().iter().for_each(|t| put_bytes(out, number, t.str_or_empty().as_bytes())),
            Kind::Any => put_bytes(out, number, &any(value)),
            Kind::Anys => value.items().iter().for_each(|item| put_bytes(out, number, &any(item))),
            Kind::One(form) => put_bytes(out, number, &encode(form, value)),
            Kind::Many(form) => value.items().iter().for_each(|item| put_bytes(out, number, &encode(form, item))),
            Kind::Members(form) => {
                let mut members = Vec::new();
                for (name, member) in value.entries() {
                    put_named(&mut members, 1, name, &encode(form, member));
                }
                put_bytes(out, number, &members);
            }
        }
    }
}
