//! Bodies into objects: JSON, YAML or protobuf, with upstream's strictness and error texts.

use crate::call::Call;
use crate::options::FieldValidation;
use crate::resource::{Definition, Resource};
use crate::unserved;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::{Issues, Parsed};
use pintle_apimachinery::{GroupVersion, GroupVersionKind, Status, Value};
use pintle_schema::TypeId;

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// A request's body.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Their encoding.
    pub media: Media,
}

/// The kind that a body must have, and how its fields are known.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The kind.
    pub kind: &'a GroupVersionKind,
    /// Its type; `None` for custom resources.
    pub type_id: Option<TypeId>,
}

/// What a body says it is, before it is read in full.
pub(crate) struct Claimed {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Reads a body as an object of `resource`'s served form, defaulted.
///
/// # Errors
/// 400 in upstream's words.
pub fn decode_object(
    call: &Call<'_>,
    resource: &Resource,
    body: Body<'_>,
    strictness: FieldValidation,
) -> Result<Value> {
    match &resource.definition {
        Definition::Builtin(id) => {
            let expected = Expected { kind: &resource.kind, type_id: Some(*id) };
            let mut object = decode_as(call, expected, body, strictness)?;
            object.remove_at("metadata.selfLink");
            resource.strategy.set_defaults(&mut object);
            Ok(object)
        }
        Definition::Custom(custom) => custom.decode(call, resource, body, strictness),
    }
}

/// Reads a body as an object of a built-in kind.
///
/// # Errors
/// 400 in upstream's words.
pub fn decode_as(
    call: &Call<'_>,
    expected: Expected<'_>,
    body: Body<'_>,
    strictness: FieldValidation,
) -> Result<Value> {
    let type_id = expected.type_id.ok_or_else(|| Box::new(Status::internal("no type to decode as")))?;
    let json;
    let (bytes, yaml_issues) = match body.media {
        Media::Protobuf => return decode_protobuf(expected, type_id, body.bytes),
        Media::Json => (body.bytes, Vec::new()),
        Media::Yaml => {
            let document = pintle_codec::yaml::parse(body.bytes)
                .map_err(|why| unrecognized(expected, &why.to_string(), body.bytes))?;
            json = document.value.to_json();
            (json.as_slice(), document.duplicates)
        }
    };
    let claimed = claim(bytes).map_err(|why| {
        unrecognized(expected, &format!("couldn't get version/kind; json parse error: {why}"), body.bytes)
    })?;
    let gvk = check_claim(expected, &claimed, body.bytes)?;
    let Parsed { mut value, issues } =
        pintle_schema::decode(bytes, type_id).map_err(|why| cannot_be_handled(&gvk, expected, &why.message))?;
    judge(call, expected, &gvk, &issues, &yaml_issues, strictness)?;
    value.set("apiVersion", expected.kind.api_version());
    value.set("kind", expected.kind.kind.clone());
    Ok(value)
}

/// Reads a DeleteOptions body: of whatever group and version, for clients of all times send it in the group that the
/// request is for. What is wrong with it is told without saying what was to be read.
///
/// # Errors
/// 400 in upstream's words.
pub fn decode_delete_options(body: Body<'_>) -> Result<Value> {
    let bad = |why: String| Box::new(Status::bad_request(why));
    let type_id = pintle_schema::kind("", "v1", "DeleteOptions").map(|kind| kind.id);
    let type_id = type_id.ok_or_else(|| Box::new(Status::internal("DeleteOptions are not known")))?;
    let json;
    let bytes = match body.media {
        Media::Protobuf => {
            let envelope = pintle_codec::protobuf::open_envelope(body.bytes).map_err(|why| bad(why.to_string()))?;
            check_is_delete_options(&envelope.api_version, &envelope.kind).map_err(bad)?;
            return pintle_codec::protobuf::decode(envelope.body, type_id).map_err(|why| bad(why.to_string()));
        }
        Media::Json => body.bytes,
        Media::Yaml => {
            json = pintle_codec::yaml::parse(body.bytes).map_err(|why| bad(why.to_string()))?.value.to_json();
            &json
        }
    };
    let claimed = claim(bytes).map_err(|why| bad(format!("couldn't get version/kind; json parse error: {why}")))?;
    check_is_delete_options(&claimed.api_version, &claimed.kind).map_err(bad)?;
    let Parsed { value, issues } = pintle_schema::decode(bytes, type_id).map_err(|why| bad(why.message))?;
    match issues.wrong_type {
        Some(why) => Err(bad(why)),
        None => Ok(value),
    }
}

fn check_is_delete_options(api_version: &str, kind: &str) -> std::result::Result<(), String> {
    let Some(gv) = GroupVersion::parse(api_version) else {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    };
    if matches!(kind, "" | "DeleteOptions") { Ok(()) } else { Err(not_registered(&gv.with_kind(kind))) }
}

fn decode_protobuf(expected: Expected<'_>, type_id: TypeId, bytes: &[u8]) -> Result<Value> {
    let unreadable = |why: &dyn std::fmt::Display| unrecognized(expected, &why.to_string(), bytes);
    let envelope = pintle_codec::protobuf::open_envelope(bytes).map_err(|why| unreadable(&why))?;
    let claimed = Claimed { api_version: envelope.api_version.to_string(), kind: envelope.kind.to_string() };
    let gvk = check_claim(expected, &claimed, bytes)?;
    let mut value = pintle_codec::protobuf::decode(envelope.body, type_id)
        .map_err(|why| cannot_be_handled(&gvk, expected, &why.to_string()))?;
    value.set("apiVersion", expected.kind.api_version());
    value.set("kind", expected.kind.kind.clone());
    Ok(value)
}

/// Reads apiVersion and kind only, with the errors that upstream's first look at a document gives.
pub(crate) fn claim(bytes: &[u8]) -> std::result::Result<Claimed, String> {
    const GO_TYPE: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    // A scan of the top level would do; the document is small against what follows.
    let value = pintle_apimachinery::value::parse(bytes).map_err(|e| e.message)?;
    let wrong = |what: &str| format!("json: cannot unmarshal {what} into Go value of type {GO_TYPE}");
    match &value {
        Value::Object(_) | Value::Null => {}
        Value::Array(_) => return Err(wrong("array")),
        Value::String(_) => return Err(wrong("string")),
        Value::Bool(_) => return Err(wrong("bool")),
        Value::Int(_) | Value::Float(_) => return Err(wrong("number")),
    }
    let text = |field: &str| match value.get(field) {
        Value::String(s) => Ok(s.to_string()),
        Value::Null => Ok(String::new()),
        other => {
            let what = match other {
                Value::Array(_) => "array",
                Value::Object(_) => "object",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            Err(format!("json: cannot unmarshal {what} into Go struct field .{field} of type string"))
        }
    };
    Ok(Claimed { api_version: text("apiVersion")?, kind: text("kind")? })
}

/// The kind that the document is, what it does not say taken from the path.
fn check_claim(expected: Expected<'_>, claimed: &Claimed, body: &[u8]) -> Result<GroupVersionKind> {
    let Some(mut gv) = GroupVersion::parse(&claimed.api_version) else {
        let why = format!("unexpected GroupVersion string: {}", claimed.api_version);
        return Err(unrecognized(expected, &why, body));
    };
    if claimed.api_version.is_empty() {
        gv = expected.kind.group_version();
    }
    let kind = if claimed.kind.is_empty() { expected.kind.kind.as_str() } else { &claimed.kind };
    let gvk = gv.with_kind(kind);
    if gvk == *expected.kind {
        return Ok(gvk);
    }
    let is_known = pintle_schema::kind(&gvk.group, &gvk.version, &gvk.kind).is_some() || unserved::is_known(&gvk);
    if gvk.kind != expected.kind.kind {
        // upstream decodes what it knows and then cannot use it, and does not know the rest
        let why = if is_known {
            format!("converting ({}) to ({}): unknown conversion", go_type(&gvk), go_internal_type(expected.kind))
        } else {
            not_registered(&gvk)
        };
        return Err(cannot_be_handled(&gvk, expected, &why));
    }
    if !is_known {
        return Err(cannot_be_handled(&gvk, expected, &not_registered(&gvk)));
    }
    Err(Box::new(Status::bad_request(format!(
        "the API version in the data ({}) does not match the expected API version ({})",
        gvk.group_version(),
        expected.kind.group_version()
    ))))
}

/// What upstream says of a kind that it does not know.
fn not_registered(gvk: &GroupVersionKind) -> String {
    let (kind, version) = (gvk.kind.as_str(), gvk.group_version());
    format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\"")
}

fn go_type(gvk: &GroupVersionKind) -> String {
    format!("{}.{}", gvk.version, gvk.kind)
}

fn go_internal_type(gvk: &GroupVersionKind) -> String {
    let package = match gvk.group.as_str() {
        "" => "core",
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("{package}.{}", gvk.kind)
}

/// Turns what was found while decoding into the answer that `strictness` asks for.
fn judge(
    call: &Call<'_>,
    expected: Expected<'_>,
    gvk: &GroupVersionKind,
    issues: &Issues,
    yaml_issues: &[String],
    strictness: FieldValidation,
) -> Result<()> {
    if let Some(why) = &issues.wrong_type {
        return Err(cannot_be_handled(gvk, expected, why));
    }
    match strictness {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            for issue in yaml_issues {
                call.warn(issue.clone());
            }
            for issue in &issues.strict {
                call.warn(issue.to_string());
            }
            Ok(())
        }
        FieldValidation::Strict => match strict_text(yaml_issues, issues) {
            None => Ok(()),
            Some(text) => Err(cannot_be_handled(gvk, expected, &text)),
        },
    }
}

/// `strict decoding error: ...` with everything that strictness refuses; `None` when there is nothing.
pub fn strict_text(yaml_issues: &[String], issues: &Issues) -> Option<String> {
    let mut texts = Vec::new();
    if !yaml_issues.is_empty() {
        let lines: Vec<String> = yaml_issues.iter().map(|i| format!("  {i}")).collect();
        texts.push(format!("yaml: unmarshal errors:\n{}", lines.join("\n")));
    }
    texts.extend(issues.strict.iter().map(ToString::to_string));
    if texts.is_empty() { None } else { Some(format!("strict decoding error: {}", texts.join(", "))) }
}

/// 400: the document is of the right form but cannot be read as the kind.
pub fn cannot_be_handled(gvk: &GroupVersionKind, expected: Expected<'_>, why: &str) -> Box<Status> {
    Box::new(Status::bad_request(format!(
        "{} in version \"{}\" cannot be handled as a {}: {why}",
        gvk.kind, gvk.version, expected.kind.kind
    )))
}

pub(crate) fn unrecognized(expected: Expected<'_>, why: &str, body: &[u8]) -> Box<Status> {
    Box::new(Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        expected.kind.kind,
        summary(body)
    )))
}

/// The first 30 bytes of a body, as text when it looks like JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let is_cut = body.len() > SHOWN_BYTES_MAX;
    let shown = &body[..body.len().min(SHOWN_BYTES_MAX)];
    let dots = if is_cut { " ..." } else { "" };
    if body[0] == b'{' {
        return format!("{}{dots}", String::from_utf8_lossy(shown));
    }
    let hex: String = shown.iter().map(|b| format!("{b:02x}")).collect();
    format!("{hex}{dots}")
}
