//! Watches on the wire: JSON lines or protobuf frames. What an event looks like is made once and shared by all its
//! watchers.

use crate::encode::Encoder;
use crate::negotiate::{Form, MetaVersion, Output};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use jiff::Timestamp;
use parking_lot::Mutex;
use pintle_apimachinery::meta::well_known;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::write_value;
use pintle_apimachinery::{GroupVersion, Status, Value, json};
use pintle_codec::protobuf;
use pintle_kinds::table::IncludeObject;
use pintle_registry::decode::Media;
use pintle_registry::{EventKind, Resource, Watch, WatchEvent};
use pintle_storage::{Event, Record, Revision};
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};

/// The wire forms of an event, made at most once each: by how it looks and in which version and encoding.
#[derive(Debug, Default)]
struct Forms(Mutex<Vec<(FormKey, Bytes)>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FormKey {
    kind: EventKind,
    media: Media,
    version: GroupVersion,
}

/// How one watch is told.
pub(crate) struct WatchView {
    pub(crate) resource: Arc<Resource>,
    pub(crate) output: Output,
    pub(crate) include: IncludeObject,
    pub(crate) clock: Arc<dyn pintle_apimachinery::env::WallClock>,
    /// Tables carry their columns in the first event only.
    pub(crate) has_told_columns: bool,
}

impl WatchView {
    /// The watch as a stream of pieces, ended at `deadline`.
    pub(crate) fn stream(self, watch: Watch, deadline: Instant) -> impl Stream<Item = Bytes> + Send {
        stream::unfold((self, watch), move |(mut view, mut watch)| async move {
            loop {
                let events = tokio::select! {
                    biased;
                    events = watch.next() => events?,
                    () = sleep_until(deadline) => return None,
                };
                let piece = view.tell(&events).await;
                if !piece.is_empty() {
                    return Some((piece, (view, watch)));
                }
            }
        })
    }

    async fn tell(&mut self, events: &[WatchEvent]) -> Bytes {
        if let [only] = events {
            return self.one(only).await;
        }
        let mut out = Vec::new();
        for event in events {
            out.extend_from_slice(&self.one(event).await);
        }
        Bytes::from(out)
    }

    async fn one(&mut self, event: &WatchEvent) -> Bytes {
        let told = match event {
            WatchEvent::Object { kind, record, revision, event } => {
                self.object(*kind, record, *revision, event.as_deref()).await
            }
            WatchEvent::Bookmark { revision, is_initial_end } => self.bookmark(*revision, *is_initial_end),
            WatchEvent::Error(status) => self.frame("ERROR", &status.to_value()),
        };
        match told {
            Ok(bytes) => bytes,
            Err(status) => self.frame("ERROR", &status.to_value()).unwrap_or_default(),
        }
    }

    async fn object(
        &mut self,
        kind: EventKind,
        record: &Record,
        revision: Revision,
        event: Option<&Event>,
    ) -> Result<Bytes> {
        if self.output.form != Form::Object {
            let now = self.clock.now();
            let encoder = Encoder { resource: &self.resource, output: self.output, now, include: self.include };
            let mut object = encoder.shown(record).await?;
            pintle_registry::resource::set_revision(&mut object, revision);
            let shown = self.transformed(&object);
            return self.frame(kind.name(), &shown);
        }
        let Some(event) = event else { return self.make(kind, record, revision).await };
        let key = FormKey { kind, media: self.output.media, version: self.resource.gvr.group_version() };
        let forms = event.note.get_or_make(|| Arc::new(Forms::default()));
        if let Some((_, bytes)) = forms.0.lock().iter().find(|(k, _)| *k == key) {
            return Ok(bytes.clone());
        }
        let bytes = self.make(kind, record, revision).await?;
        forms.0.lock().push((key, bytes.clone()));
        Ok(bytes)
    }

    async fn make(&self, kind: EventKind, record: &Record, revision: Revision) -> Result<Bytes> {
        let encoder = Encoder {
            resource: &self.resource,
            output: self.output,
            now: Timestamp::UNIX_EPOCH,
            include: self.include,
        };
        match self.output.media {
            Media::Protobuf => {
                let enveloped = encoder.enveloped(record, revision).await?;
                Ok(Bytes::from(protobuf::watch_frame(kind.name(), &enveloped)))
            }
            Media::Json | Media::Yaml => {
                let object = encoder.record(record, revision).await?;
                let mut out = Vec::with_capacity(object.len() + 40);
                out.extend_from_slice(b"{\"type\":\"");
                out.extend_from_slice(kind.name().as_bytes());
                out.extend_from_slice(b"\",\"object\":");
                out.extend_from_slice(object.trim_ascii_end());
                out.extend_from_slice(b"}\n");
                Ok(Bytes::from(out))
            }
        }
    }

    /// A Table of one row, or partial metadata.
    fn transformed(&mut self, object: &Value) -> Value {
        let encoder =
            Encoder { resource: &self.resource, output: self.output, now: self.clock.now(), include: self.include };
        match self.output.form {
            Form::Table(version) => {
                let with_columns = !std::mem::replace(&mut self.has_told_columns, true);
                let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"].clone()});
                encoder.table(version, meta, vec![encoder.row(object, version)], with_columns)
            }
            Form::Partial(version) | Form::PartialList(version) => {
                self.resource.partial_metadata(object, version.name())
            }
            Form::Object => object.clone(),
        }
    }

    fn bookmark(&mut self, revision: Revision, is_initial_end: bool) -> Result<Bytes> {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if is_initial_end {
            metadata.set("annotations", json!({(well_known::INITIAL_EVENTS_END): "true"}));
        }
        let object = json!({"kind": self.resource.kind.kind.clone(), "apiVersion": self.resource.kind.api_version(), "metadata": metadata});
        let shown = match self.output.form {
            Form::Object if self.resource.is_custom() => object,
            Form::Object => {
                pintle_schema::decode_value(&object, self.resource.type_id().unwrap_or(pintle_schema::TypeId(0)))
                    .map_or(object, |parsed| parsed.value)
            }
            Form::Table(version) => self.bookmark_table(version, &object),
            Form::Partial(version) | Form::PartialList(version) => {
                self.resource.partial_metadata(&object, version.name())
            }
        };
        self.frame("BOOKMARK", &shown)
    }

    fn bookmark_table(&mut self, version: MetaVersion, object: &Value) -> Value {
        let encoder =
            Encoder { resource: &self.resource, output: self.output, now: self.clock.now(), include: self.include };
        let with_columns = !std::mem::replace(&mut self.has_told_columns, true);
        let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"].clone()});
        encoder.table(version, meta, vec![encoder.row(object, version)], with_columns)
    }

    fn frame(&self, kind: &str, object: &Value) -> Result<Bytes> {
        if self.output.media == Media::Protobuf && self.output.form == Form::Object {
            let enveloped = protobuf::encode_object(object).map_err(|why| Box::new(Status::internal(why)))?;
            return Ok(Bytes::from(protobuf::watch_frame(kind, &enveloped)));
        }
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        write_value(&mut out, object);
        out.extend_from_slice(b"}\n");
        Ok(Bytes::from(out))
    }
}
