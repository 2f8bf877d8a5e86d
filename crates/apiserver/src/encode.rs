//! Answers into bytes: objects, lists and watch events in every encoding and form. Whatever is made of a record is made
//! at most once per revision where it pays (its JSON is cut from stored bytes, its protobuf kept beside it).

use crate::negotiate::{Form, MetaVersion, Output};
use bytes::Bytes;
use jiff::Timestamp;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{Status, Value, json};
use pintle_codec::protobuf;
use pintle_kinds::table::{self, IncludeObject};
use pintle_registry::decode::Media;
use pintle_registry::resource::{Resource, set_revision};
use pintle_storage::{Record, Revision};

/// Keys of the wire forms that heads of records keep.
mod form_key {
    /// The protobuf message without envelope, as of the record's own revision.
    pub(super) const PROTOBUF: u32 = 1;
}

/// A value in an encoding.
///
/// # Errors
/// 500 when it has no such form.
pub(crate) fn value(object: &Value, output: &Output) -> Result<Bytes> {
    match output.media {
        Media::Json if output.pretty => Ok(Bytes::from(indented(&object.to_json()))),
        Media::Json => {
            let mut out = object.to_json();
            out.push(b'\n');
            Ok(Bytes::from(out))
        }
        Media::Yaml => Ok(Bytes::from(pintle_codec::yaml::write(object))),
        Media::Protobuf => match protobuf::encode_object(object) {
            Ok(bytes) => Ok(Bytes::from(bytes)),
            Err(why) => Err(Box::new(Status::internal(why))),
        },
    }
}

/// Compact JSON with two spaces of indentation, as `pretty=true` asks for.
pub(crate) fn indented(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * compact.len());
    let mut depth = 0;
    let mut bytes = compact.trim_ascii().iter().copied().peekable();
    let newline = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                out.push(byte);
                while let Some(byte) = bytes.next() {
                    out.push(byte);
                    match byte {
                        b'\\' => out.extend(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'{' | b'[' => {
                out.push(byte);
                match bytes.next_if(|next| matches!(next, b'}' | b']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        newline(&mut out, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                newline(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    out
}

/// Shows objects of one resource in one output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder<'r> {
    /// Whose objects.
    pub resource: &'r Resource,
    /// How.
    pub output: Output,
    /// Ages in tables are relative to this.
    pub now: Timestamp,
    /// What a table's rows carry.
    pub include: IncludeObject,
}

impl Encoder<'_> {
    /// Whether an object's JSON can be cut from its stored bytes.
    fn is_cut(&self) -> bool {
        self.output.media == Media::Json
            && self.output.form == Form::Object
            && self.resource.is_stored_form()
            && !self.output.pretty
            && !self.resource.is_custom()
    }

    /// A record as the answer to a request for one object.
    ///
    /// # Errors
    /// 500 when what is stored cannot be shown.
    pub(crate) async fn record(&self, record: &Record, revision: Revision) -> Result<Bytes> {
        if self.is_cut() {
            let head = self.resource.store.head(record);
            let mut out = Vec::with_capacity(head.bytes().len() + 48);
            head.write_object(&mut out, revision);
            out.push(b'\n');
            return Ok(Bytes::from(out));
        }
        if self.output.media == Media::Protobuf && self.output.form == Form::Object {
            return self.enveloped(record, revision).await.map(Bytes::from);
        }
        let mut object = self.shown(record).await?;
        set_revision(&mut object, revision);
        self.object(&object)
    }

    /// An object (served form) as the answer to a request for one.
    ///
    /// # Errors
    /// 500 when it cannot be shown.
    pub(crate) fn object(&self, object: &Value) -> Result<Bytes> {
        value(&self.transformed(object), &self.output)
    }

    /// The object in the form asked for.
    fn transformed(&self, object: &Value) -> Value {
        match self.output.form {
            Form::Object => object.clone(),
            Form::Partial(version) | Form::PartialList(version) => {
                self.resource.partial_metadata(object, version.name())
            }
            Form::Table(version) => {
                let meta = json!({"resourceVersion": object["metadata"]["resourceVersion"].clone()});
                let rows = vec![self.row(object, version)];
                self.table(version, meta, rows, true)
            }
        }
    }

    /// A row of a table.
    pub(crate) fn row(&self, object: &Value, version: MetaVersion) -> Value {
        self.resource.table_row(object, self.include, version.name(), self.now)
    }

    /// A table of rows.
    pub(crate) fn table(&self, version: MetaVersion, meta: Value, rows: Vec<Value>, with_columns: bool) -> Value {
        let columns = with_columns.then(|| self.resource.table_columns().items().to_vec());
        table::table_of(columns, rows, meta, version.name())
    }

    /// The protobuf message of a record as of `revision`, without envelope. It is made from the stored bytes where they
    /// have the served form, and kept beside them.
    ///
    /// # Errors
    /// 500 when what is stored cannot be shown.
    pub(crate) async fn message(&self, record: &Record, revision: Revision) -> Result<Bytes> {
        let id = self.resource.type_id();
        let id = id.ok_or_else(|| Box::new(Status::internal("custom resources have no protobuf form")))?;
        if !self.resource.is_stored_form() {
            let mut object = self.resource.object(record).await?;
            set_revision(&mut object, revision);
            return protobuf::encode(&object, id).map(Bytes::from).map_err(|why| Box::new(Status::internal(why)));
        }
        let head = self.resource.store.head(record);
        let make = || {
            let mut json = Vec::with_capacity(head.bytes().len() + 48);
            head.write_object(&mut json, revision);
            protobuf::encode_json(&json, id).map(Bytes::from).map_err(|why| Box::new(Status::internal(why)))
        };
        if revision == record.revision { head.form(form_key::PROTOBUF, make) } else { make() }
    }

    /// [`Encoder::message`] in its envelope.
    ///
    /// # Errors
    /// As [`Encoder::message`].
    pub(crate) async fn enveloped(&self, record: &Record, revision: Revision) -> Result<Vec<u8>> {
        let message = self.message(record, revision).await?;
        Ok(protobuf::envelope(&self.resource.kind.api_version(), &self.resource.kind.kind, &message))
    }

    /// The object that a record is shown as. Tables and partial metadata of built-in kinds are made of the stored form:
    /// what conversion adds for older versions is not shown in them.
    ///
    /// # Errors
    /// 500 when what is stored cannot be shown.
    pub(crate) async fn shown(&self, record: &Record) -> Result<Value> {
        let is_reduced = self.output.form != Form::Object && self.include != IncludeObject::Object;
        if is_reduced && !self.resource.is_custom() {
            return self.resource.stored_object(record);
        }
        self.resource.object(record).await
    }

    /// A record as an item of a JSON list, appended to `out`.
    ///
    /// # Errors
    /// 500 when what is stored cannot be shown.
    pub(crate) async fn write_json_item(&self, out: &mut Vec<u8>, record: &Record) -> Result<()> {
        if self.is_cut() {
            self.resource.store.head(record).write_item(out, record.revision);
            return Ok(());
        }
        let mut object = self.shown(record).await?;
        match self.output.form {
            Form::Object if self.resource.is_custom() => {}
            Form::Object => {
                object.remove("apiVersion");
                object.remove("kind");
            }
            Form::Partial(version) | Form::PartialList(version) => {
                object = self.resource.partial_metadata(&object, version.name())
            }
            Form::Table(version) => object = self.row(&object, version),
        }
        pintle_apimachinery::value::write_value(out, &object);
        Ok(())
    }
}

/// The PartialObjectMetadata of an object.
pub(crate) fn partial(object: &Value, version: MetaVersion) -> Value {
    table::partial_object_metadata(object, version.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn laid_out_for_people() {
        let compact = br#"{"a":{},"b":[],"c":[1,{"d":"x,\"y\":[z]\\"}],"e":null}"#;
        expect![[r#"
            {
              "a": {},
              "b": [],
              "c": [
                1,
                {
                  "d": "x,\"y\":[z]\\"
                }
              ],
              "e": null
            }"#]]
        .assert_eq(&String::from_utf8_lossy(&indented(compact)));
    }
}
