//! A [`Value`], or a stored object, as a protobuf message.

use super::EncodeError;
use super::document::Document;
use super::tape::Tape;
use super::wire::{Backward, kind};
use base64::Engine as _;
use pintle_apimachinery::time::parse_time;
use pintle_apimachinery::{Str, Value};
use pintle_schema::{Field, Schema, Shape, ShapeId, Slot, TypeId, builtin, type_named};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::marker::PhantomData;

/// Room that most objects do not outgrow, in bytes.
const MESSAGE_CAPACITY: usize = 4096;

/// The message of `value`, which is in canonical form, as type `id` of the built-in schema. Without an envelope.
///
/// # Errors
/// [`EncodeError::Mismatch`] when `value` was not decoded along that type.
pub fn encode(value: &Value, id: TypeId) -> Result<Vec<u8>, EncodeError> {
    write(value, id)
}

/// [`encode`] of a stored object: its canonical JSON, of which no value is made.
///
/// # Errors
/// As [`encode`], and when the bytes are no JSON.
pub fn encode_json(json: &[u8], id: TypeId) -> Result<Vec<u8>, EncodeError> {
    match Tape::read(json) {
        Some(tape) => write(tape.root(), id),
        None => {
            let kind = builtin().ty(id).name;
            Err(EncodeError::Mismatch { kind, field: String::new(), wanted: "JSON document" })
        }
    }
}

fn write<'d, D: Document<'d>>(document: D, id: TypeId) -> Result<Vec<u8>, EncodeError> {
    let out = Backward::with_capacity(MESSAGE_CAPACITY);
    let mut writer = Writer { schema: builtin(), out, mismatch: None, document: PhantomData };
    writer.message(id, document);
    match writer.mismatch {
        None => Ok(writer.out.finish()),
        Some((field, wanted)) => {
            Err(EncodeError::Mismatch { kind: builtin().ty(id).name, field: field.to_string(), wanted })
        }
    }
}

/// Types have at most this many fields: the places of [`Writer::message`].
pub(super) const TYPE_FIELDS_MAX: usize = 64;

/// Writes from the end to the beginning: fields by descending number, items from the last to the first.
struct Writer<'s, D> {
    schema: &'s Schema,
    out: Backward,
    /// The first value of a wrong type: where, and what was wanted.
    mismatch: Option<(Str, &'static str)>,
    document: PhantomData<D>,
}

impl<'d, D: Document<'d>> Writer<'_, D> {
    fn message(&mut self, id: TypeId, document: D) {
        let schema = self.schema;
        let ty = schema.ty(id);
        // members and fields are both sorted by name: one walk brings them together
        let mut members = [D::NULL; TYPE_FIELDS_MAX];
        self.assign(schema.fields(ty), document, &mut members);
        let first = ty.fields.first;
        for slot in schema.message(ty).iter().rev() {
            match slot.slot {
                Slot::Field(idx) => self.field(slot.number, schema.field_at(idx), members[(idx - first) as usize]),
                Slot::Embedded { id, .. } => {
                    let before = self.out.len();
                    self.message(id, document);
                    self.out.close(slot.number, before);
                }
            }
        }
    }

    /// Puts each member in the place of its field; members that are no fields are passed over.
    fn assign(&self, fields: &[Field], document: D, members: &mut [D; TYPE_FIELDS_MAX]) {
        debug_assert!(fields.len() <= TYPE_FIELDS_MAX);
        let Some(entries) = document.as_members() else { return };
        let mut next = 0;
        for (name, member) in entries {
            while fields.get(next).is_some_and(|field| *field.name < *name) {
                next += 1;
            }
            let found = match fields.get(next) {
                Some(field) if *field.name == *name => Some(next),
                // a name out of order, or one of nobody
                _ => fields.binary_search_by(|field| (*field.name).cmp(&name)).ok(),
            };
            if let Some(idx) = found {
                members[idx] = member;
                next = idx + 1;
            }
        }
    }

    fn field(&mut self, number: u32, field: &Field, value: D) {
        match self.schema.shape(field.shape) {
            Shape::List { item, .. } => {
                for item_value in self.items(value, field).into_iter().rev() {
                    self.single(number, *item, item_value, field);
                }
            }
            Shape::Map { value: shape, .. } => {
                self.expect(value.is_null() || value.as_members().is_some(), field, "map");
                let Some(members) = value.as_members() else { return };
                let members: SmallVec<[(Cow<'d, str>, D); 8]> = members.collect();
                for (key, member) in members.into_iter().rev() {
                    self.entry(number, &key, *shape, member, field);
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

    /// The items of a list, or nothing.
    fn items(&mut self, value: D, field: &Field) -> SmallVec<[D; 8]> {
        match value.as_items() {
            Some(items) => items.collect(),
            None => {
                self.expect(value.is_null(), field, "list");
                SmallVec::new()
            }
        }
    }

    fn entry(&mut self, number: u32, key: &str, shape: ShapeId, value: D, field: &Field) {
        let before = self.out.len();
        if !(value.is_null() && *self.schema.shape(shape) == Shape::Bytes) {
            self.single(2, shape, value, field);
        }
        self.out.put_bytes(1, key.as_bytes());
        self.out.close(number, before);
    }

    /// One value with its tag. Absent values are written as zero.
    fn single(&mut self, number: u32, shape: ShapeId, value: D, field: &Field) {
        let before = self.out.len();
        match self.schema.shape(shape) {
            Shape::Bool => {
                self.expect(value.is_null() || value.as_bool().is_some(), field, "boolean");
                self.flag(number, value.as_bool().unwrap_or_default());
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
            Shape::Struct { id, .. } => {
                self.expect(value.is_null() || value.as_members().is_some(), field, "object");
                self.message(*id, value);
            }
            shape => self.content(shape, value, field),
        }
        self.out.close(number, before);
    }

    /// What stands behind tag and length of a value that is no struct.
    fn content(&mut self, shape: &Shape, value: D, field: &Field) {
        match shape {
            Shape::String => {
                let text = self.text(value, field);
                self.out.put(text.as_bytes());
            }
            Shape::Bytes => self.base64(value, field),
            Shape::Quantity => {
                let text = if value.is_null() { Cow::Borrowed("0") } else { self.text(value, field) };
                self.out.put_bytes(1, text.as_bytes());
            }
            Shape::IntOrString => self.int_or_string(value, field),
            Shape::Time => self.time(value, field, false),
            Shape::MicroTime => self.time(value, field, true),
            Shape::Raw | Shape::FieldsV1 => {
                if !value.is_null() {
                    self.out.put_bytes(1, &value.json());
                }
            }
            Shape::StringList => self.texts(1, value, field),
            Shape::SchemaOrBool if value.as_members().is_some() => {
                self.schema_props(2, value);
                self.flag(1, true);
            }
            Shape::SchemaOrBool => self.flag(1, value.as_bool().unwrap_or_default()),
            Shape::SchemaOrArray | Shape::SchemaOrStrings if value.as_members().is_some() => {
                self.schema_props(1, value)
            }
            Shape::SchemaOrArray => {
                self.items(value, field).into_iter().rev().for_each(|item| self.schema_props(2, item));
            }
            Shape::SchemaOrStrings => self.texts(2, value, field),
            _ => self.expect(false, field, "message: lists of lists have no protobuf form"),
        }
    }

    fn texts(&mut self, number: u32, value: D, field: &Field) {
        for item in self.items(value, field).into_iter().rev() {
            let text = self.text(item, field);
            self.out.put_bytes(number, text.as_bytes());
        }
    }

    fn flag(&mut self, number: u32, is_set: bool) {
        self.out.put_varint(u64::from(is_set));
        self.out.put_tag(number, kind::VARINT);
    }

    fn schema_props(&mut self, number: u32, value: D) {
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

    fn text(&mut self, value: D, field: &Field) -> Cow<'d, str> {
        let text = value.as_text();
        self.expect(text.is_some() || value.is_null(), field, "string");
        text.unwrap_or_default()
    }

    /// Negative numbers as 64-bit two's complement, whatever their declared size.
    fn integer(&mut self, value: D, field: &Field) -> u64 {
        self.expect(value.is_null() || value.as_i64().is_some(), field, "integer");
        value.as_i64().unwrap_or_default().cast_unsigned()
    }

    fn base64(&mut self, value: D, field: &Field) {
        let text = self.text(value, field);
        match base64::engine::general_purpose::STANDARD.decode(text.as_bytes()) {
            Ok(bytes) => self.out.put(&bytes),
            Err(_) => self.expect(false, field, "base64"),
        }
    }

    /// All three fields, whichever of them counts.
    fn int_or_string(&mut self, value: D, field: &Field) {
        let (variant, int, text) = match value.as_text() {
            Some(text) => (1, 0, text),
            None => (0, self.integer(value, field), Cow::Borrowed("")),
        };
        self.out.put_bytes(3, text.as_bytes());
        self.out.put_varint(int);
        self.out.put_tag(2, kind::VARINT);
        self.out.put_varint(variant);
        self.out.put_tag(1, kind::VARINT);
    }

    /// Seconds and nanoseconds, both written; nothing for no time.
    fn time(&mut self, value: D, field: &Field, is_micro: bool) {
        if value.is_null() {
            return;
        }
        let Some(at) = value.as_text().and_then(|text| parse_time(&text)) else {
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
