//! A [`Value`] as a protobuf message.

use super::EncodeError;
use super::wire::{Backward, kind};
use base64::Engine as _;
use pintle_apimachinery::time::parse_time;
use pintle_apimachinery::{Str, Value};
use pintle_schema::{Field, Schema, Shape, ShapeId, Slot, TypeId, builtin, type_named};

/// Room that most objects do not outgrow, in bytes.
const MESSAGE_CAPACITY: usize = 4096;

/// The message of `value`, which is in canonical form, as type `id` of the built-in schema. Without an envelope.
///
/// # Errors
/// [`EncodeError::Mismatch`] when `value` was not decoded along that type.
pub fn encode(value: &Value, id: TypeId) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer { schema: builtin(), out: Backward::with_capacity(MESSAGE_CAPACITY), mismatch: None };
    writer.message(id, value);
    match writer.mismatch {
        None => Ok(writer.out.finish()),
        Some((field, wanted)) => {
            Err(EncodeError::Mismatch { kind: builtin().ty(id).name, field: field.to_string(), wanted })
        }
    }
}

/// Writes from the end to the beginning: fields by descending number, items from the last to the first.
struct Writer<'s> {
    schema: &'s Schema,
    out: Backward,
    /// The first value of a wrong type: where, and what was wanted.
    mismatch: Option<(Str, &'static str)>,
}

impl Writer<'_> {
    fn message(&mut self, id: TypeId, value: &Value) {
        let schema = self.schema;
        for slot in schema.message(schema.ty(id)).iter().rev() {
            match slot.slot {
                Slot::Field(idx) => {
                    let field = schema.field_at(idx);
                    self.field(slot.number, field, value.get(&field.name));
                }
                Slot::Embedded { id, .. } => {
                    let before = self.out.len();
                    self.message(id, value);
                    self.out.close(slot.number, before);
                }
            }
        }
    }

    fn field(&mut self, number: u32, field: &Field, value: &Value) {
        match self.schema.shape(field.shape) {
            Shape::List { item, .. } => {
                self.expect(value.is_null() || value.as_array().is_some(), field, "list");
                for item_value in value.items().iter().rev() {
                    self.single(number, *item, item_value, field);
                }
            }
            Shape::Map { value: shape, .. } => {
                self.expect(value.is_null() || value.as_object().is_some(), field, "map");
                let Some(members) = value.as_object() else { return };
                for (key, member) in members.iter().rev() {
                    self.entry(number, key, *shape, member, field);
                }
            }
            shape => {
                let is_absent =
                    value.is_null() && (field.is_pointer || matches!(shape, Shape::Bytes | Shape::StringList));
                if !is_absent {
                    self.single(number, field.shape, value, field);
                }
            }
        }
    }

    fn entry(&mut self, number: u32, key: &str, shape: ShapeId, value: &Value, field: &Field) {
        let before = self.out.len();
        if !(value.is_null() && *self.schema.shape(shape) == Shape::Bytes) {
            self.single(2, shape, value, field);
        }
        self.out.put_bytes(1, key.as_bytes());
        self.out.close(number, before);
    }

    /// One value with its tag. Absent values are written as zero.
    fn single(&mut self, number: u32, shape: ShapeId, value: &Value, field: &Field) {
        let before = self.out.len();
        match self.schema.shape(shape) {
            Shape::Bool => {
                self.expect(matches!(value, Value::Bool(_) | Value::Null), field, "boolean");
                self.out.put_varint(u64::from(value.is_true()));
                self.out.put_tag(number, kind::VARINT);
                return;
            }
            Shape::Int32 | Shape::Int64 => {
                let int = self.integer(value, field);
                self.out.put_varint(int);
                self.out.put_tag(number, kind::VARINT);
                return;
            }
            Shape::Float => {
                self.expect(value.is_null() || value.as_f64().is_some(), field, "number");
                self.out.put(&value.as_f64().unwrap_or_default().to_le_bytes());
                self.out.put_tag(number, kind::FIXED64);
                return;
            }
            Shape::String => {
                let text = self.text(value, field);
                self.out.put(text.as_bytes());
            }
            Shape::Bytes => self.base64(value, field),
            Shape::Quantity => {
                let text = if value.is_null() { "0" } else { self.text(value, field) };
                self.out.put_bytes(1, text.as_bytes());
            }
            Shape::IntOrString => self.int_or_string(value, field),
            Shape::Time => self.time(value, field, false),
            Shape::MicroTime => self.time(value, field, true),
            Shape::Raw | Shape::FieldsV1 => {
                if !value.is_null() {
                    self.out.put_bytes(1, &value.to_json());
                }
            }
            Shape::StringList => {
                for item in value.items().iter().rev() {
                    let text = self.text(item, field);
                    self.out.put_bytes(1, text.as_bytes());
                }
            }
            Shape::Struct { id, .. } => {
                self.expect(matches!(value, Value::Object(_) | Value::Null), field, "object");
                self.message(*id, value);
            }
            Shape::SchemaOrBool => match value {
                Value::Object(_) => {
                    self.schema_props(2, value);
                    self.flag(1, true);
                }
                other => self.flag(1, other.is_true()),
            },
            Shape::SchemaOrArray => match value {
                Value::Object(_) => self.schema_props(1, value),
                other => other.items().iter().rev().for_each(|item| self.schema_props(2, item)),
            },
            Shape::SchemaOrStrings => match value {
                Value::Object(_) => self.schema_props(1, value),
                other => {
                    for item in other.items().iter().rev() {
                        let text = self.text(item, field);
                        self.out.put_bytes(2, text.as_bytes());
                    }
                }
            },
            Shape::List { .. } | Shape::Map { .. } | Shape::Any => {
                self.expect(false, field, "message: lists of lists have no protobuf form");
            }
        }
        self.out.close(number, before);
    }

    fn flag(&mut self, number: u32, is_set: bool) {
        self.out.put_varint(u64::from(is_set));
        self.out.put_tag(number, kind::VARINT);
    }

    fn schema_props(&mut self, number: u32, value: &Value) {
        let Some(id) = type_named("apiextensions/v1.JSONSchemaProps") else { return };
        let before = self.out.len();
        self.message(id, value);
        self.out.close(number, before);
    }

    fn expect(&mut self, is_met: bool, field: &Field, wanted: &'static str) {
        if !is_met && self.mismatch.is_none() {
            self.mismatch = Some((field.name.clone(), wanted));
        }
    }

    fn text<'v>(&mut self, value: &'v Value, field: &Field) -> &'v str {
        self.expect(matches!(value, Value::String(_) | Value::Null), field, "string");
        value.str_or_empty()
    }

    /// Negative numbers as 64-bit two's complement, whatever their declared size.
    fn integer(&mut self, value: &Value, field: &Field) -> u64 {
        self.expect(value.is_null() || value.as_i64().is_some(), field, "integer");
        value.as_i64().unwrap_or_default().cast_unsigned()
    }

    fn base64(&mut self, value: &Value, field: &Field) {
        let text = self.text(value, field);
        match base64::engine::general_purpose::STANDARD.decode(text) {
            Ok(bytes) => self.out.put(&bytes),
            Err(_) => self.expect(false, field, "base64"),
        }
    }

    /// All three fields, whichever of them counts.
    fn int_or_string(&mut self, value: &Value, field: &Field) {
        let (variant, int, text) = match value {
            Value::String(s) => (1, 0, s.as_str()),
            other => (0, self.integer(other, field), ""),
        };
        self.out.put_bytes(3, text.as_bytes());
        self.out.put_varint(int);
        self.out.put_tag(2, kind::VARINT);
        self.out.put_varint(variant);
        self.out.put_tag(1, kind::VARINT);
    }

    /// Seconds and nanoseconds, both written; nothing for no time.
    fn time(&mut self, value: &Value, field: &Field, is_micro: bool) {
        if value.is_null() {
            return;
        }
        let Some(at) = value.as_str().and_then(parse_time) else {
            self.expect(false, field, "time");
            return;
        };
        let (mut seconds, mut nanos) = (at.as_second(), at.subsec_nanosecond());
        if nanos < 0 {
            // before 1970 the fraction still counts forward
            seconds -= 1;
            nanos += 1_000_000_000;
        }
        let nanos = if is_micro { nanos.unsigned_abs() / 1000 * 1000 } else { 0 };
        self.out.put_varint(u64::from(nanos));
        self.out.put_tag(2, kind::VARINT);
        self.out.put_varint(seconds.cast_unsigned());
        self.out.put_tag(1, kind::VARINT);
    }
}
