//! What stands around message bodies: the envelope that names the kind, lists, and the frames of a watch.

use super::wire::{Forward, kind, varint, varint_len};
use super::{DecodeError, EncodeError, decode_into, encode};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupVersion, Object, Str, Value};
use pintle_schema::{Kind, kind as kind_named};

/// What every enveloped object begins with.
const PREFIX: &[u8; 4] = b"k8s\0";

/// Bytes of one watch frame that a reader takes; a longer one ends the stream. 16 MiB is client-go's limit.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An opened envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The `apiVersion`, perhaps empty.
    pub api_version: Str,
    /// The `kind`, perhaps empty.
    pub kind: Str,
    /// The message.
    pub body: &'a [u8],
    /// How the body is encoded; empty for not at all.
    pub content_encoding: Str,
    /// What the body is; empty for protobuf.
    pub content_type: Str,
}

/// The metadata of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta<'a> {
    /// A field that no server sets any more.
    pub self_link: &'a str,
    /// The version at which the list was read.
    pub resource_version: &'a str,
    /// Where the next page begins; empty on the last one.
    pub continue_token: &'a str,
    /// How many items come after this page, when that is known.
    pub remaining_item_count: Option<i64>,
}

/// Appends tag and length of a field of `len` bytes.
fn put_head(out: &mut Vec<u8>, number: u32, len: usize) {
    put_varint(out, u64::from(number) << 3 | kind::BYTES);
    put_varint(out, len as u64);
}

fn put_varint(out: &mut Vec<u8>, n: u64) {
    let (bytes, len) = varint(n);
    out.extend_from_slice(&bytes[..len]);
}

fn put_field(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// The length of a field of `len` bytes with a number below 16.
fn field_len(len: usize) -> usize {
    1 + varint_len(len as u64) + len
}

/// Appends the beginning of an envelope around a body of `body_len` bytes: everything in front of the body.
fn put_envelope_head(out: &mut Vec<u8>, api_version: &str, kind: &str, body_len: usize) {
    out.extend_from_slice(PREFIX);
    put_head(out, 1, field_len(api_version.len()) + field_len(kind.len()));
    put_field(out, 1, api_version.as_bytes());
    put_field(out, 2, kind.as_bytes());
    put_head(out, 2, body_len);
}

/// What stands behind the body: content encoding and content type, both empty and both written.
const ENVELOPE_TAIL: [u8; 4] = [0x1a, 0, 0x22, 0];

/// Room for the parts of an envelope that are not the body, in bytes.
const ENVELOPE_CAPACITY: usize = 64;

/// The enveloped form of a message body.
pub fn envelope(api_version: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(ENVELOPE_CAPACITY + api_version.len() + kind.len() + body.len());
    put_envelope_head(&mut out, api_version, kind, body.len());
    out.extend_from_slice(body);
    out.extend_from_slice(&ENVELOPE_TAIL);
    out
}

/// Opens an envelope.
///
/// # Errors
/// [`DecodeError`] when the bytes are none.
pub fn open_envelope(bytes: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let body = bytes.strip_prefix(PREFIX).ok_or(DecodeError::Prefix)?;
    if body.is_empty() {
        return Err(DecodeError::EmptyBody);
    }
    let mut envelope = Envelope {
        api_version: Str::default(),
        kind: Str::default(),
        body: &[],
        content_encoding: Str::default(),
        content_type: Str::default(),
    };
    let mut reader = Forward::new(body, "Unknown");
    while let Some(tag) = reader.tag()? {
        if !(1..=4).contains(&tag.number) {
            reader.skip(tag)?;
            continue;
        }
        if tag.wire != kind::BYTES {
            return Err(DecodeError::WireType { field: Str::const_new("TypeMeta"), wire: tag.wire });
        }
        let content = reader.bytes()?;
        match tag.number {
            1 => type_meta(content, &mut envelope)?,
            2 => envelope.body = content,
            3 => envelope.content_encoding = lossy(content),
            _ => envelope.content_type = lossy(content),
        }
    }
    Ok(envelope)
}

fn lossy(bytes: &[u8]) -> Str {
    Str::from_utf8_lossy(bytes)
}

fn type_meta(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), DecodeError> {
    let mut reader = Forward::new(bytes, "TypeMeta");
    while let Some(tag) = reader.tag()? {
        match (tag.number, tag.wire) {
            (1, kind::BYTES) => envelope.api_version = lossy(reader.bytes()?),
            (2, kind::BYTES) => envelope.kind = lossy(reader.bytes()?),
            (1..=2, wire) => return Err(DecodeError::WireType { field: Str::const_new("TypeMeta"), wire }),
            _ => reader.skip(tag)?,
        }
    }
    Ok(())
}

/// The built-in kind of this `apiVersion` and `kind`. `v1` stands for the core group, and for the kinds of
/// `meta.k8s.io` that every group serves.
fn kind_of(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let gv = GroupVersion::parse(api_version)?;
    let found = kind_named(&gv.group, &gv.version, kind);
    found.or_else(|| {
        if is_common(kind) {
            kind_named("", "v1", kind).or_else(|| kind_named("meta.k8s.io", "v1", kind))
        } else {
            None
        }
    })
}

/// The kinds that are registered in every group and version.
fn is_common(kind: &str) -> bool {
    matches!(
        kind,
        "DeleteOptions"
            | "ListOptions"
            | "GetOptions"
            | "CreateOptions"
            | "UpdateOptions"
            | "PatchOptions"
            | "WatchEvent"
            | "Status"
    )
}

/// An object of a built-in kind in its enveloped form, by its own `apiVersion` and `kind`.
///
/// # Errors
/// [`EncodeError::NoMessage`] for a kind without protobuf form, [`EncodeError::Mismatch`] for an object that was not
/// decoded along its kind.
pub fn encode_object(object: &Value) -> Result<Vec<u8>, EncodeError> {
    let (api_version, kind) = (object.api_version(), object.kind());
    let Some(found) = kind_of(api_version, kind) else {
        return Err(EncodeError::NoMessage { api_version: api_version.to_owned(), kind: kind.to_owned() });
    };
    Ok(envelope(api_version, kind, &encode(object, found.id)?))
}

/// Reads an enveloped object of a built-in kind. `apiVersion` and `kind` that the envelope does not give are taken
/// from `default`.
///
/// # Errors
/// [`DecodeError`] when the bytes are no such object or the kind is unknown.
pub fn decode_object(bytes: &[u8], default: Option<(&str, &str)>) -> Result<Value, DecodeError> {
    let envelope = open_envelope(bytes)?;
    let (default_version, default_kind) = default.unwrap_or_default();
    let or = |given: Str, default: &str| if given.is_empty() { Str::new(default) } else { given };
    let (api_version, kind) = (or(envelope.api_version, default_version), or(envelope.kind, default_kind));
    if kind.is_empty() {
        return Err(DecodeError::MissingKind(api_version.to_string()));
    }
    let Some(found) = kind_of(&api_version, &kind) else {
        return Err(DecodeError::UnknownKind { api_version: api_version.to_string(), kind: kind.to_string() });
    };
    let mut members = Vec::with_capacity(8);
    decode_into(envelope.body, found.id, &mut members)?;
    members.push((Str::const_new("apiVersion"), Value::String(api_version)));
    members.push((Str::const_new("kind"), Value::String(kind)));
    Ok(Value::Object(Object::from_unsorted(members)))
}

/// A list in its enveloped form, from the bodies of its items (without their envelopes). `kind` is the list's, such as
/// `PodList`. All list kinds have the same message: metadata is field 1, items are field 2.
pub fn list<'i, I>(api_version: &str, kind: &str, meta: &ListMeta<'_>, items: I) -> Vec<u8>
where
    I: IntoIterator<Item = &'i [u8], IntoIter: Clone>,
{
    let items = items.into_iter();
    let mut head = Vec::with_capacity(64);
    put_field(&mut head, 1, meta.self_link.as_bytes());
    put_field(&mut head, 2, meta.resource_version.as_bytes());
    put_field(&mut head, 3, meta.continue_token.as_bytes());
    if let Some(count) = meta.remaining_item_count {
        put_varint(&mut head, 4 << 3 | kind::VARINT);
        put_varint(&mut head, count.cast_unsigned());
    }
    let body_len = field_len(head.len()) + items.clone().map(|item| field_len(item.len())).sum::<usize>();
    let mut out = Vec::with_capacity(ENVELOPE_CAPACITY + api_version.len() + kind.len() + body_len);
    put_envelope_head(&mut out, api_version, kind, body_len);
    put_field(&mut out, 1, &head);
    for item in items {
        put_field(&mut out, 2, item);
    }
    out.extend_from_slice(&ENVELOPE_TAIL);
    out
}

/// A watch event as it stands in the stream: four bytes of length, then a `WatchEvent` whose object is `object`, an
/// enveloped one. The event itself has no envelope.
pub fn watch_frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    let raw_len = field_len(object.len());
    let len = field_len(event_type.len()) + field_len(raw_len);
    let mut out = Vec::with_capacity(4 + len);
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    put_field(&mut out, 1, event_type.as_bytes());
    put_head(&mut out, 2, raw_len);
    put_field(&mut out, 1, object);
    out
}

/// Takes the frames of a watch out of the pieces in which they arrive: the client's end of [`watch_frame`].
#[derive(Debug, Default)]
pub struct FrameReader {
    /// What arrived and was not taken.
    pending: Vec<u8>,
}

impl FrameReader {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The type and the enveloped object of the next event, once all of it has arrived.
    ///
    /// # Errors
    /// [`DecodeError`] when the frame is too long or no event.
    pub fn next_event(&mut self) -> Result<Option<(Str, Vec<u8>)>, DecodeError> {
        let Some((head, rest)) = self.pending.split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*head) as usize;
        if len > FRAME_BYTES_MAX {
            return Err(DecodeError::Text("object to decode was longer than maximum allowed size".to_owned()));
        }
        let Some(frame) = rest.get(..len) else { return Ok(None) };
        let event = watch_event(frame)?;
        self.pending.drain(..4 + len);
        Ok(Some(event))
    }
}

fn watch_event(frame: &[u8]) -> Result<(Str, Vec<u8>), DecodeError> {
    // some encoders envelope the event as well
    let body = if frame.starts_with(PREFIX) { open_envelope(frame)?.body } else { frame };
    let (mut event_type, mut object) = (Str::default(), Vec::new());
    let mut reader = Forward::new(body, "WatchEvent");
    while let Some(tag) = reader.tag()? {
        match (tag.number, tag.wire) {
            (1, kind::BYTES) => event_type = lossy(reader.bytes()?),
            (2, kind::BYTES) => {
                let mut raw = Forward::new(reader.bytes()?, "RawExtension");
                while let Some(tag) = raw.tag()? {
                    match (tag.number, tag.wire) {
                        (1, kind::BYTES) => object = raw.bytes()?.to_vec(),
                        _ => raw.skip(tag)?,
                    }
                }
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok((event_type, object))
}
