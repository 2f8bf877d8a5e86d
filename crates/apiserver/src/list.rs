//! Lists on the wire: told in chunks from the snapshot they were read from, so that no list is ever whole in memory.

use crate::encode::Encoder;
use crate::negotiate::{Form, Output};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use jiff::Timestamp;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::{write_json_string, write_value};
use pintle_apimachinery::{Status, Value, json};
use pintle_codec::protobuf::{self, ListMeta};
use pintle_kinds::table::IncludeObject;
use pintle_registry::decode::Media;
use pintle_registry::{Listed, Resource};
use pintle_storage::Record;
use std::sync::Arc;

/// Bytes of one chunk of a streamed list, give or take an item.
const CHUNK_BYTES: usize = 128 * 1024;

/// A list in wire form: whole when it is short, else chunk by chunk.
pub(crate) enum ListBody {
    /// All of it.
    Whole(Bytes),
    /// A stream of chunks.
    Chunks(std::pin::Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

/// What a list's wire form needs to know.
#[derive(Clone)]
pub(crate) struct ListView {
    pub(crate) resource: Arc<Resource>,
    pub(crate) output: Output,
    pub(crate) now: Timestamp,
    pub(crate) include: IncludeObject,
}

impl ListView {
    fn encoder(&self) -> Encoder<'_> {
        Encoder { resource: &self.resource, output: self.output, now: self.now, include: self.include }
    }

    /// Renders a list.
    ///
    /// # Errors
    /// 500 when an object cannot be shown.
    pub(crate) async fn render(self, listed: Listed) -> Result<ListBody> {
        match self.output.media {
            Media::Json if !self.output.pretty => self.json(listed).await,
            Media::Protobuf if self.output.form == Form::Object => self.protobuf(&listed).await.map(ListBody::Whole),
            Media::Json | Media::Yaml | Media::Protobuf => self.by_value(&listed).await.map(ListBody::Whole),
        }
    }

    /// The parts before and behind the items.
    fn json_frame(&self, listed: &Listed) -> (Vec<u8>, &'static [u8]) {
        let (kind, api_version) = match self.output.form {
            Form::Object => (self.resource.list_kind.as_str(), self.resource.kind.api_version()),
            Form::Partial(version) | Form::PartialList(version) => {
                ("PartialObjectMetadataList", version.api_version().to_owned())
            }
            Form::Table(version) => ("Table", version.api_version().to_owned()),
        };
        let mut head = Vec::with_capacity(512);
        head.extend_from_slice(b"{\"kind\":");
        write_json_string(&mut head, kind);
        head.extend_from_slice(b",\"apiVersion\":");
        write_json_string(&mut head, &api_version);
        head.extend_from_slice(b",\"metadata\":");
        write_value(&mut head, &self.meta(listed));
        if matches!(self.output.form, Form::Table(_)) {
            head.extend_from_slice(b",\"columnDefinitions\":");
            write_value(&mut head, &self.resource.table_columns());
            head.extend_from_slice(b",\"rows\":[");
        } else {
            head.extend_from_slice(b",\"items\":[");
        }
        (head, b"]}\n")
    }

    /// Whether a list of nothing has `null` for its items: partial metadata, and tables of kinds without columns of
    /// their own.
    fn is_null_when_empty(&self) -> bool {
        match self.output.form {
            Form::Partial(_) | Form::PartialList(_) => true,
            Form::Table(_) => {
                let gvr = &self.resource.gvr;
                !self.resource.is_custom() && !pintle_kinds::table::has_own_columns(&gvr.group, &gvr.resource)
            }
            Form::Object => false,
        }
    }

    fn meta(&self, listed: &Listed) -> Value {
        let mut meta = json!({"resourceVersion": listed.revision.to_string()});
        if !listed.continue_token.is_empty() {
            meta.set("continue", listed.continue_token.as_str());
            if let Some(remaining) = listed.remaining {
                meta.set("remainingItemCount", remaining);
            }
        } else if self.resource.is_custom() && self.output.form == Form::Object {
            meta.set("continue", "");
        }
        meta
    }

    async fn json(self, listed: Listed) -> Result<ListBody> {
        let (mut out, tail) = self.json_frame(&listed);
        let mut records = listed.records.into_iter();
        let is_whole = self.fill(&mut out, &mut records, true).await?;
        if is_whole {
            if self.is_null_when_empty() && out.ends_with(b"\":[") {
                out.pop();
                out.extend_from_slice(b"null}\n");
                return Ok(ListBody::Whole(Bytes::from(out)));
            }
            out.extend_from_slice(tail);
            return Ok(ListBody::Whole(Bytes::from(out)));
        }
        let rest = Rest { view: self, records, first: Some(Bytes::from(out)), tail };
        Ok(ListBody::Chunks(Box::pin(stream::unfold(Some(rest), Rest::next))))
    }

    /// Appends items until the chunk is full; whether there are none left.
    async fn fill(
        &self,
        out: &mut Vec<u8>,
        records: &mut std::vec::IntoIter<Arc<Record>>,
        is_first: bool,
    ) -> Result<bool> {
        let encoder = self.encoder();
        let mut needs_comma = !is_first;
        while out.len() < CHUNK_BYTES {
            let Some(record) = records.next() else { return Ok(true) };
            if std::mem::replace(&mut needs_comma, true) {
                out.push(b',');
            }
            encoder.write_json_item(out, &record).await?;
        }
        Ok(records.len() == 0)
    }

    async fn protobuf(&self, listed: &Listed) -> Result<Bytes> {
        let encoder = self.encoder();
        let mut items = Vec::with_capacity(listed.records.len());
        for record in &listed.records {
            items.push(encoder.message(record, record.revision).await?);
        }
        let version = listed.revision.to_string();
        let meta = ListMeta {
            self_link: "",
            resource_version: &version,
            continue_token: &listed.continue_token,
            remaining_item_count: listed.remaining.and_then(|n| i64::try_from(n).ok()),
        };
        let api_version = self.resource.kind.api_version();
        Ok(Bytes::from(protobuf::list(&api_version, &self.resource.list_kind, &meta, items.iter().map(|b| &b[..]))))
    }

    /// Forms that are rarely asked for: the whole list as a value.
    async fn by_value(&self, listed: &Listed) -> Result<Bytes> {
        let json = Output { media: Media::Json, pretty: false, ..self.output };
        let plain = ListView { output: json, ..self.clone() };
        let (mut out, tail) = plain.json_frame(listed);
        for (idx, record) in listed.records.iter().enumerate() {
            if idx > 0 {
                out.push(b',');
            }
            plain.encoder().write_json_item(&mut out, record).await?;
        }
        out.extend_from_slice(tail);
        let value = pintle_apimachinery::value::parse(&out).map_err(|why| Box::new(Status::internal(why)))?;
        crate::encode::value(&value, &self.output)
    }
}

/// What of a list is still to be told.
struct Rest {
    view: ListView,
    records: std::vec::IntoIter<Arc<Record>>,
    first: Option<Bytes>,
    tail: &'static [u8],
}

impl Rest {
    async fn next(rest: Option<Rest>) -> Option<(Bytes, Option<Rest>)> {
        let mut rest = rest?;
        if let Some(first) = rest.first.take() {
            return Some((first, Some(rest)));
        }
        let mut out = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
        match rest.view.fill(&mut out, &mut rest.records, false).await {
            Ok(true) => {
                out.extend_from_slice(rest.tail);
                Some((Bytes::from(out), None))
            }
            Ok(false) => Some((Bytes::from(out), Some(rest))),
            // the answer has begun: all that is left is to cut it off, which no JSON reader takes for an end
            Err(_) => None,
        }
    }
}
