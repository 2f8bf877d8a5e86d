//! Content negotiation: what encoding a body has, and in which form an answer is wanted.
//!
//! Follows: apiserver/pkg/endpoints/handlers/negotiation (v0.35).

use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;
use pintle_registry::decode::Media;

/// An `as=` transformation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    Object,
    /// `Table`, with its version of meta.k8s.io.
    Table(MetaVersion),
    /// `PartialObjectMetadata`.
    Partial(MetaVersion),
    /// `PartialObjectMetadataList`.
    PartialList(MetaVersion),
}

/// Versions of meta.k8s.io that transformations have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl MetaVersion {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MetaVersion::V1 => "v1",
            MetaVersion::V1Beta1 => "v1beta1",
        }
    }

    /// The apiVersion.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What an answer is to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// Its encoding.
    pub media: Media,
    /// Its form.
    pub form: Form,
    /// Indented JSON.
    pub pretty: bool,
}

impl Output {
    /// Plain JSON.
    pub(crate) const JSON: Output = Output { media: Media::Json, form: Form::Object, pretty: false };

    /// The `Content-Type`.
    pub(crate) fn content_type(&self) -> &'static str {
        content_type(self.media)
    }
}

/// The media type of an encoding.
pub(crate) fn content_type(media: Media) -> &'static str {
    match media {
        Media::Json => "application/json",
        Media::Yaml => "application/yaml",
        Media::Protobuf => "application/vnd.kubernetes.protobuf",
    }
}

/// What a resource can be shown as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    /// Whether there is a protobuf form (built-in kinds).
    pub protobuf: bool,
    /// Whether Table and PartialObjectMetadata may be asked for.
    pub transforms: bool,
    /// Whether the answer is a watch.
    pub watch: bool,
    /// Whether the path also serves watches (lists do).
    pub watchable: bool,
}

/// One range of an `Accept` header.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    q: u32,
    params: Vec<(&'a str, &'a str)>,
}

fn ranges(accept: &str) -> Vec<Range<'_>> {
    let mut out: Vec<Range<'_>> = accept
        .split(',')
        .filter_map(|part| {
            let mut pieces = part.split(';').map(str::trim);
            let (kind, subtype) = pieces.next()?.split_once('/').unwrap_or(("", ""));
            let mut q = 1000;
            let mut params = Vec::new();
            for (key, value) in pieces.filter_map(|p| p.split_once('=')) {
                match key.trim() {
                    "q" => q = quality(value.trim()),
                    key => params.push((key, value.trim().trim_matches('"'))),
                }
            }
            Some(Range { kind: kind.trim(), subtype: subtype.trim(), q, params })
        })
        .collect();
    // by quality, then by how narrow the range is; the sort keeps the order of equals
    out.sort_by_key(|r| (std::cmp::Reverse(r.q), u8::from(r.kind == "*"), u8::from(r.subtype == "*")));
    out
}

/// A quality in thousandths.
fn quality(text: &str) -> u32 {
    let value = text.parse::<f64>().unwrap_or(1.0).clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
    {
        (value * 1000.0) as u32
    }
}

/// Chooses the output for an `Accept` header (empty when there is none).
///
/// # Errors
/// 406 when nothing fits.
pub(crate) fn output(accept: &str, allowed: Allowed) -> Result<Output> {
    if accept.trim().is_empty() {
        return Ok(Output::JSON);
    }
    for range in ranges(accept) {
        let media = match (range.kind, range.subtype) {
            ("*", "*") | ("application", "*") if range.subtype == "*" && range.kind == "*" => Some(Media::Json),
            ("application", "json") => Some(Media::Json),
            ("application", "yaml") if !allowed.watch => Some(Media::Yaml),
            ("application", "vnd.kubernetes.protobuf") if allowed.protobuf => Some(Media::Protobuf),
            _ => None,
        };
        let Some(media) = media else { continue };
        if let Some(output) = with_params(media, &range, allowed) {
            return Ok(output);
        }
    }
    Err(not_acceptable(accept, allowed))
}

fn with_params(media: Media, range: &Range<'_>, allowed: Allowed) -> Option<Output> {
    let param = |name: &str| range.params.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let pretty = param("pretty") == Some("1");
    if let Some(stream) = param("stream")
        && (stream != "watch" || media == Media::Yaml)
    {
        return None;
    }
    if param("export").is_some_and(|v| v == "1") {
        return None;
    }
    let form = match param("as") {
        None => {
            // a version without a transformation is ignored
            Form::Object
        }
        Some(kind) => {
            if !allowed.transforms || param("g") != Some("meta.k8s.io") {
                return None;
            }
            let version = match param("v") {
                Some("v1") => MetaVersion::V1,
                Some("v1beta1") => MetaVersion::V1Beta1,
                _ => return None,
            };
            match kind {
                "Table" => Form::Table(version),
                "PartialObjectMetadata" => Form::Partial(version),
                "PartialObjectMetadataList" => Form::PartialList(version),
                _ => return None,
            }
        }
    };
    Some(Output { media, form, pretty })
}

/// 406, in one of upstream's two ways: a media type that no route produces is refused before a parameter that no
/// encoder knows.
fn not_acceptable(accept: &str, allowed: Allowed) -> Box<Status> {
    // custom resources have no protobuf form; what reads of them is told of it all the same
    let mut types = vec!["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    let is_known_type =
        ranges(accept).iter().any(|r| types.iter().any(|t| t.split_once('/') == Some((r.kind, r.subtype))));
    if is_known_type || !allowed.protobuf {
        let text = format!("only the following media types are accepted: {}", types.join(", "));
        return Box::new(Status::not_acceptable(text));
    }
    if allowed.watchable {
        types.extend(["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"]);
    }
    let text = format!("406: Not Acceptable\n\nAvailable representations: {}", types.join(", "));
    Box::new(Status::not_acceptable(text).with_details(pintle_apimachinery::status::Details::default()))
}

/// The encoding of a body by its `Content-Type` (empty when there is none).
///
/// # Errors
/// 415 when it is none that is read.
pub(crate) fn input(content_type: &str, protobuf: bool) -> Result<Media> {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        "application/vnd.kubernetes.protobuf" if protobuf => Ok(Media::Protobuf),
        _ => {
            let mut types = vec!["application/json", "application/yaml"];
            if protobuf {
                types.push("application/vnd.kubernetes.protobuf");
            }
            Err(Box::new(Status::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                types.join(", ")
            ))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Allowed = Allowed { protobuf: true, transforms: true, watch: false, watchable: false };

    #[test]
    fn outputs() {
        let chosen = |accept: &str| output(accept, ALL).map(|o| (o.media, o.form)).map_err(|s| s.code);
        assert_eq!(chosen(""), Ok((Media::Json, Form::Object)));
        assert_eq!(chosen("*/*"), Ok((Media::Json, Form::Object)));
        assert_eq!(chosen("application/*"), Err(406));
        assert_eq!(chosen("text/plain"), Err(406));
        assert_eq!(
            chosen(
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
            ),
            Ok((Media::Json, Form::Table(MetaVersion::V1)))
        );
        assert_eq!(
            chosen("application/vnd.kubernetes.protobuf, application/json"),
            Ok((Media::Protobuf, Form::Object))
        );
        assert_eq!(chosen("application/json;q=0.1,application/yaml"), Ok((Media::Yaml, Form::Object)));
        assert_eq!(
            chosen("application/json;as=Table;v=v2;g=meta.k8s.io, application/json"),
            Ok((Media::Json, Form::Object))
        );
        assert_eq!(chosen("application/json;as=Nothing;v=v1;g=meta.k8s.io"), Err(406));
    }
}
