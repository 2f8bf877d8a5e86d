//! Where the parts of an object's metadata stand in its JSON.

use pintle_client::wire::{members, text_of};

/// A stretch of the object's bytes; empty when the member is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of(part: &[u8], whole: &[u8]) -> Option<Span> {
        // both are slices of one buffer: the distance of their starts is the offset
        let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
        Some(Span { start: u32::try_from(start).ok()?, len: u32::try_from(part.len()).ok()? })
    }

    fn bytes(self, whole: &[u8]) -> &[u8] {
        let start = self.start as usize;
        whole.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// The parts of the metadata that a cache needs, as positions in the object's bytes.
#[derive(Debug, Default)]
pub(crate) struct Head {
    name: Span,
    namespace: Span,
    uid: Span,
    resource_version: Span,
    labels: Span,
    annotations: Span,
    owner_references: Span,
    pub(crate) is_terminating: bool,
    /// Name, namespace, uid and version, when one of them has characters that JSON escapes.
    unescaped: Option<Box<[String; 4]>>,
}

impl Head {
    /// Reads the metadata; `None` when there is none or it has no name.
    pub(crate) fn read(raw: &[u8]) -> Option<Head> {
        let (_, metadata) = members_until_metadata(raw)?;
        let mut head = Head::default();
        let mut reader = members(metadata);
        while let Some((key, start)) = reader.next_key() {
            let value = reader.skip_value(start)?;
            let span = Span::of(value, raw)?;
            match key {
                b"name" => head.name = span,
                b"namespace" => head.namespace = span,
                b"uid" => head.uid = span,
                b"resourceVersion" => head.resource_version = span,
                b"labels" => head.labels = span,
                b"annotations" => head.annotations = span,
                b"ownerReferences" => head.owner_references = span,
                b"deletionTimestamp" => head.is_terminating = value != b"null",
                _ => {}
            }
        }
        head.strip_quotes(raw)?;
        (!head.name(raw).is_empty()).then_some(head)
    }

    /// Turns the spans of the four names from JSON strings into their text.
    fn strip_quotes(&mut self, raw: &[u8]) -> Option<()> {
        let spans = [&mut self.name, &mut self.namespace, &mut self.uid, &mut self.resource_version];
        if spans.iter().any(|span| span.bytes(raw).contains(&b'\\')) {
            let texts = spans.map(|span| text_of(span.bytes(raw)).unwrap_or_default().into_owned());
            self.unescaped = Some(Box::new(texts));
            return Some(());
        }
        for span in spans {
            if span.len == 0 {
                continue;
            }
            let text = text_of(span.bytes(raw)).or_else(|| (span.bytes(raw) == b"null").then_some("".into()))?;
            *span = Span { start: span.start + 1, len: u32::try_from(text.len()).ok()? };
        }
        Some(())
    }

    fn text<'a>(&'a self, idx: usize, span: Span, raw: &'a [u8]) -> &'a str {
        match &self.unescaped {
            Some(texts) => &texts[idx],
            None => std::str::from_utf8(span.bytes(raw)).unwrap_or_default(),
        }
    }

    pub(crate) fn name<'a>(&'a self, raw: &'a [u8]) -> &'a str {
        self.text(0, self.name, raw)
    }

    pub(crate) fn namespace<'a>(&'a self, raw: &'a [u8]) -> &'a str {
        self.text(1, self.namespace, raw)
    }

    pub(crate) fn uid<'a>(&'a self, raw: &'a [u8]) -> &'a str {
        self.text(2, self.uid, raw)
    }

    pub(crate) fn resource_version<'a>(&'a self, raw: &'a [u8]) -> &'a str {
        self.text(3, self.resource_version, raw)
    }

    pub(crate) fn labels<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        self.labels.bytes(raw)
    }

    pub(crate) fn annotations<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        self.annotations.bytes(raw)
    }

    pub(crate) fn owner_references<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        self.owner_references.bytes(raw)
    }
}

/// The members before `metadata` are stepped over; what comes after it is not looked at. The slice goes on past the
/// end of the metadata.
fn members_until_metadata(raw: &[u8]) -> Option<(usize, &[u8])> {
    let mut reader = members(raw);
    loop {
        let (key, start) = reader.next_key()?;
        if key == b"metadata" {
            return Some((start, raw.get(start..)?));
        }
        reader.skip_value(start)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_order_and_escaped() {
        for (raw, name, uid) in [
            (r#"{"kind":"Pod","metadata":{"name":"a","uid":"u","resourceVersion":"1","managedFields":[]}}"#, "a", "u"),
            (
                r#"{"spec":{"metadata":{"name":"not me"}},"metadata":{"managedFields":[{}],"name":"a","uid":"u"}}"#,
                "a",
                "u",
            ),
            (r#"{"metadata":{"name":"a\u0026b","uid":"u"}}"#, "a&b", "u"),
            (r#"{"metadata":{"name":"a","uid":null}}"#, "a", ""),
        ] {
            let head = Head::read(raw.as_bytes()).unwrap();
            assert_eq!((head.name(raw.as_bytes()), head.uid(raw.as_bytes())), (name, uid), "{raw}");
        }
        for raw in ["", "{}", "[]", r#"{"metadata":null}"#, r#"{"metadata":{"uid":"u"}}"#, r#"{"metadata":{"name":7}}"#]
        {
            assert!(Head::read(raw.as_bytes()).is_none(), "{raw}");
        }
    }
}
