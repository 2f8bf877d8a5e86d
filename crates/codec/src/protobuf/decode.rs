//! A protobuf message as the canonical [`Value`] of its type.

use super::DecodeError;
use super::wire::{Forward, Tag, kind};
use base64::Engine as _;
use jiff::Timestamp;
use pintle_apimachinery::quantity::Quantity;
use pintle_apimachinery::time::{micro_time_value, time_value};
use pintle_apimachinery::value::NESTING_DEPTH_MAX;
use pintle_apimachinery::{Object, Str, Value, value};
use pintle_schema::{
    Field, MessageField, Schema, Shape, ShapeId, Slot, TypeId, absent_member, builtin, type_named, zero_value,
};

/// Reads a message without an envelope as type `id` of the built-in schema. Fields that the type does not declare are
/// passed over.
///
/// # Errors
/// [`DecodeError`] when the bytes are no such message.
pub fn decode(message: &[u8], id: TypeId) -> Result<Value, DecodeError> {
    let mut members = Vec::new();
    decode_into(message, id, &mut members)?;
    Ok(Value::Object(Object::from_unsorted(members)))
}

/// [`decode`], adding the members to those of an object that is being made (its kind, say).
///
/// # Errors
/// As [`decode`].
pub fn decode_into(message: &[u8], id: TypeId, members: &mut Vec<(Str, Value)>) -> Result<(), DecodeError> {
    Reader { schema: builtin(), depth: 0 }.message(message, id, members)
}

/// A list or map that is still being read: its items may stand anywhere in the message.
enum Open {
    List(Vec<Value>),
    Map(Vec<(Str, Value)>),
}

/// The state of one message.
struct Message<'s, 'o> {
    fields: &'s [MessageField],
    /// By index in `fields`.
    seen: u128,
    /// Lists and maps, with their index in `fields`.
    open: Vec<(usize, Open)>,
    members: &'o mut Vec<(Str, Value)>,
}

/// Messages declare at most this many fields: the bits of [`Message::seen`].
pub(super) const MESSAGE_FIELDS_MAX: usize = 128;

#[derive(Clone, Copy)]
struct Reader<'s> {
    schema: &'s Schema,
    depth: usize,
}

impl<'s> Reader<'s> {
    fn deeper(self) -> Result<Reader<'s>, DecodeError> {
        if self.depth >= NESTING_DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        }
        Ok(Reader { depth: self.depth + 1, ..self })
    }

    fn message(self, bytes: &[u8], id: TypeId, members: &mut Vec<(Str, Value)>) -> Result<(), DecodeError> {
        let ty = self.schema.ty(id);
        let fields = self.schema.message(ty);
        debug_assert!(fields.len() <= MESSAGE_FIELDS_MAX);
        let mut message = Message { fields, seen: 0, open: Vec::new(), members };
        let mut reader = Forward::new(bytes, ty.struct_name());
        // fields come in the order of their numbers, so the next is this one or the one behind it
        let mut hint = 0;
        while let Some(tag) = reader.tag()? {
            let found = match fields.get(hint) {
                Some(field) if field.number == tag.number => Ok(hint),
                _ => match fields.get(hint + 1) {
                    Some(field) if field.number == tag.number => Ok(hint + 1),
                    _ => fields.binary_search_by_key(&tag.number, |f| f.number),
                },
            };
            match found {
                Ok(idx) => {
                    hint = idx;
                    self.slot(&mut reader, tag, idx, &mut message)?;
                }
                Err(_) => reader.skip(tag)?,
            }
        }
        self.finish(message)
    }

    fn slot(
        self,
        reader: &mut Forward<'_>,
        tag: Tag,
        idx: usize,
        message: &mut Message<'s, '_>,
    ) -> Result<(), DecodeError> {
        let field = match message.fields[idx].slot {
            Slot::Field(field) => self.schema.field_at(field),
            Slot::Embedded { id, .. } => {
                message.seen |= 1 << idx;
                let ty = self.schema.ty(id);
                want(tag, kind::BYTES, ty.struct_name())?;
                return self.deeper()?.message(reader.bytes()?, id, message.members);
            }
        };
        match self.schema.shape(field.shape) {
            Shape::List { item, .. } => {
                let Open::List(items) = message.open(idx, || Open::List(Vec::new())) else { return Ok(()) };
                if tag.wire == kind::BYTES && matches!(self.schema.shape(*item), Shape::Int32 | Shape::Int64) {
                    let mut packed = Forward::new(reader.bytes()?, "");
                    while !packed.is_empty() {
                        items.push(self.single(&mut packed, Tag { wire: kind::VARINT, ..tag }, *item, field)?);
                    }
                    return Ok(());
                }
                items.push(self.single(reader, tag, *item, field)?);
            }
            Shape::Map { value, .. } => {
                want(tag, kind::BYTES, &field.name)?;
                let entry = self.entry(reader.bytes()?, *value, field)?;
                let Open::Map(entries) = message.open(idx, || Open::Map(Vec::new())) else { return Ok(()) };
                entries.push(entry);
            }
            _ => {
                let value = self.single(reader, tag, field.shape, field)?;
                message.set(self.schema, idx, field, value);
            }
        }
        Ok(())
    }

    fn entry(self, bytes: &[u8], shape: ShapeId, field: &Field) -> Result<(Str, Value), DecodeError> {
        let mut reader = Forward::new(bytes, "");
        let (mut key, mut value) = (Str::default(), None);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => {
                    want(tag, kind::BYTES, &field.name)?;
                    key = text(reader.bytes()?);
                }
                2 => value = Some(self.single(&mut reader, tag, shape, field)?),
                _ => reader.skip(tag)?,
            }
        }
        let value = value.unwrap_or_else(|| match self.schema.shape(shape) {
            Shape::Bytes => Value::from(""),
            _ => zero_value(pintle_schema::Node { schema: self.schema, shape }),
        });
        Ok((key, value))
    }

    /// One value. What recurses is apart from the rest, which needs more of the stack.
    fn single(self, reader: &mut Forward<'_>, tag: Tag, shape: ShapeId, field: &Field) -> Result<Value, DecodeError> {
        let shape = self.schema.shape(shape);
        match shape {
            Shape::Struct { id, .. } => {
                want(tag, kind::BYTES, &field.name)?;
                self.deeper()?.object(reader.bytes()?, *id)
            }
            Shape::SchemaOrBool | Shape::SchemaOrArray | Shape::SchemaOrStrings => {
                want(tag, kind::BYTES, &field.name)?;
                self.deeper()?.schema_or(reader.bytes()?, shape)
            }
            _ => self.leaf(reader, tag, shape, field),
        }
    }

    fn leaf(self, reader: &mut Forward<'_>, tag: Tag, shape: &Shape, field: &Field) -> Result<Value, DecodeError> {
        let wire = match shape {
            Shape::Bool | Shape::Int32 | Shape::Int64 => kind::VARINT,
            Shape::Float => kind::FIXED64,
            _ => kind::BYTES,
        };
        want(tag, wire, &field.name)?;
        Ok(match shape {
            Shape::Bool => Value::Bool(reader.varint()? != 0),
            #[expect(clippy::cast_possible_truncation, reason = "the declared size cuts the number off, as in Go")]
            Shape::Int32 => Value::Int(i64::from(reader.varint()? as i32)),
            Shape::Int64 => Value::Int(reader.varint()?.cast_signed()),
            Shape::Float => Value::Float(f64::from_bits(reader.fixed64()?)),
            Shape::String => Value::String(text(reader.bytes()?)),
            Shape::Bytes => Value::from(base64::engine::general_purpose::STANDARD.encode(reader.bytes()?)),
            Shape::Quantity => quantity(reader.bytes()?)?,
            Shape::IntOrString => int_or_string(reader.bytes()?)?,
            Shape::Time => time(reader.bytes()?, false)?,
            Shape::MicroTime => time(reader.bytes()?, true)?,
            Shape::Raw | Shape::FieldsV1 => raw(reader.bytes()?)?,
            Shape::StringList => strings(reader.bytes()?, 1)?,
            _ => {
                reader.skip(tag)?;
                Value::Null
            }
        })
    }

    fn object(self, bytes: &[u8], id: TypeId) -> Result<Value, DecodeError> {
        let mut members = Vec::new();
        self.message(bytes, id, &mut members)?;
        Ok(Value::Object(Object::from_unsorted(members)))
    }

    /// `JSONSchemaPropsOrBool`, `JSONSchemaPropsOrArray` and `JSONSchemaPropsOrStringArray`.
    fn schema_or(self, bytes: &[u8], shape: &Shape) -> Result<Value, DecodeError> {
        let Some(id) = type_named("apiextensions/v1.JSONSchemaProps") else { return Ok(Value::Null) };
        let is_bool = *shape == Shape::SchemaOrBool;
        let mut reader = Forward::new(bytes, "JSONSchemaProps");
        let (mut allows, mut schema, mut items) = (false, None, Vec::new());
        while let Some(tag) = reader.tag()? {
            match (tag.number, is_bool) {
                (1, true) => {
                    want(tag, kind::VARINT, "Allows")?;
                    allows = reader.varint()? != 0;
                }
                (1, false) | (2, true) => {
                    want(tag, kind::BYTES, "Schema")?;
                    schema = Some(self.object(reader.bytes()?, id)?);
                }
                (2, false) if *shape == Shape::SchemaOrArray => {
                    want(tag, kind::BYTES, "JSONSchemas")?;
                    items.push(self.object(reader.bytes()?, id)?);
                }
                (2, false) => {
                    want(tag, kind::BYTES, "Property")?;
                    items.push(Value::String(text(reader.bytes()?)));
                }
                _ => reader.skip(tag)?,
            }
        }
        Ok(match (items.is_empty(), schema) {
            (false, _) => Value::Array(items),
            (true, Some(schema)) => schema,
            (true, None) if is_bool => Value::Bool(allows),
            (true, None) => Value::Null,
        })
    }

    /// Closes lists and maps, and adds what is written even when the message does not have it.
    fn finish(self, message: Message<'s, '_>) -> Result<(), DecodeError> {
        let Message { fields, mut seen, open, members } = message;
        for (idx, open) in open {
            let Slot::Field(field) = fields[idx].slot else { continue };
            seen |= 1 << idx;
            let value = match open {
                Open::List(items) => Value::Array(items),
                Open::Map(entries) => Value::Object(Object::from_unsorted(entries)),
            };
            members.push((self.schema.field_at(field).name.clone(), value));
        }
        for (idx, field) in fields.iter().enumerate().filter(|(idx, _)| seen & (1 << idx) == 0) {
            debug_assert!(idx < MESSAGE_FIELDS_MAX);
            match field.slot {
                Slot::Embedded { id, .. } => self.deeper()?.message(&[], id, members)?,
                Slot::Field(field) => {
                    let field = self.schema.field_at(field);
                    if let Some(absent) = absent_member(self.schema, field) {
                        members.push((field.name.clone(), absent));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Message<'_, '_> {
    fn open(&mut self, idx: usize, make: impl FnOnce() -> Open) -> &mut Open {
        let at = match self.open.iter().rposition(|(open, _)| *open == idx) {
            Some(at) => at,
            None => {
                self.open.push((idx, make()));
                self.open.len() - 1
            }
        };
        &mut self.open[at].1
    }

    /// Sets a member by its field's rules; a later value counts more than an earlier one.
    fn set(&mut self, schema: &Schema, idx: usize, field: &Field, value: Value) {
        let is_repeated = self.seen & (1 << idx) != 0;
        self.seen |= 1 << idx;
        if is_repeated {
            self.members.retain(|(name, _)| *name != field.name);
        }
        let is_dropped = (value.is_empty() && schema.is_dropped_when_empty(field))
            || (value.is_null() && field.is_pointer)
            || (field.omit_zero && !field.is_pointer && matches!(&value, Value::Object(o) if o.is_empty()));
        if !is_dropped {
            self.members.push((field.name.clone(), value));
        }
    }
}

fn want(tag: Tag, wire: u64, field: &str) -> Result<(), DecodeError> {
    if tag.wire == wire { Ok(()) } else { Err(wrong_wire(field, tag.wire)) }
}

#[cold]
fn wrong_wire(field: &str, wire: u64) -> DecodeError {
    DecodeError::WireType { field: Str::new(field), wire }
}

fn text(bytes: &[u8]) -> Str {
    match std::str::from_utf8(bytes) {
        Ok(text) => Str::new(text),
        // as Go's JSON encoder shows it later
        Err(_) => Str::from(String::from_utf8_lossy(bytes)),
    }
}

fn strings(bytes: &[u8], number: u32) -> Result<Value, DecodeError> {
    let mut reader = Forward::new(bytes, "");
    let mut items = Vec::new();
    while let Some(tag) = reader.tag()? {
        if tag.number == number {
            want(tag, kind::BYTES, "items")?;
            items.push(Value::String(text(reader.bytes()?)));
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(Value::Array(items))
}

fn quantity(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Forward::new(bytes, "Quantity");
    let mut value = Value::from("0");
    while let Some(tag) = reader.tag()? {
        if tag.number == 1 {
            want(tag, kind::BYTES, "string")?;
            let quantity = Quantity::parse(&text(reader.bytes()?)).map_err(|why| DecodeError::Text(why.to_string()))?;
            value = Value::String(quantity.canonical());
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(value)
}

fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Forward::new(bytes, "IntOrString");
    let (mut is_string, mut int, mut string) = (false, 0, Str::default());
    while let Some(tag) = reader.tag()? {
        match (tag.number, tag.wire) {
            (1, kind::VARINT) => is_string = reader.varint()? == 1,
            #[expect(clippy::cast_possible_truncation, reason = "the declared size cuts the number off, as in Go")]
            (2, kind::VARINT) => int = reader.varint()? as i32,
            (3, kind::BYTES) => string = text(reader.bytes()?),
            (1..=3, wire) => return Err(wrong_wire("intOrString", wire)),
            _ => reader.skip(tag)?,
        }
    }
    Ok(if is_string { Value::String(string) } else { Value::from(int) })
}

fn time(bytes: &[u8], is_micro: bool) -> Result<Value, DecodeError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let mut reader = Forward::new(bytes, "Timestamp");
    let (mut seconds, mut nanos) = (0, 0);
    while let Some(tag) = reader.tag()? {
        match (tag.number, tag.wire) {
            (1, kind::VARINT) => seconds = reader.varint()?.cast_signed(),
            #[expect(clippy::cast_possible_truncation, reason = "the declared size cuts the number off, as in Go")]
            (2, kind::VARINT) => nanos = reader.varint()? as i32,
            (1..=2, wire) => return Err(wrong_wire("seconds", wire)),
            _ => reader.skip(tag)?,
        }
    }
    let nanos = if is_micro { nanos / 1000 * 1000 } else { 0 };
    let at = Timestamp::new(seconds, nanos).map_err(|why| DecodeError::Text(format!("invalid time: {why}")))?;
    Ok(if is_micro { micro_time_value(at) } else { time_value(at) })
}

/// The one field `raw` of `RawExtension`, `JSON` and `FieldsV1`: a JSON document.
fn raw(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Forward::new(bytes, "RawExtension");
    let mut document = Value::Null;
    while let Some(tag) = reader.tag()? {
        if tag.number == 1 {
            want(tag, kind::BYTES, "raw")?;
            let json = reader.bytes()?;
            if !json.is_empty() {
                document = value::parse(json).map_err(|why| DecodeError::Text(why.message))?;
            }
        } else {
            reader.skip(tag)?;
        }
    }
    Ok(document)
}
