//! Custom resources: a version of a CustomResourceDefinition as the registry serves it.

use crate::call::Call;
use crate::conversion::Converter;
use crate::decode::{Body, Expected, Media, cannot_be_handled, claim, strict_text, unrecognized};
use crate::options::FieldValidation;
use crate::resource::Resource;
use jiff::Timestamp;
use pintle_apiextensions::conversion::{Conversion, convert_plainly};
use pintle_apiextensions::{CompiledDefinition, CompiledVersion};
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::value::{Issues, parse_free};
use pintle_apimachinery::{GroupVersion, GroupVersionKind, Status, Value};
use pintle_schema::Node;
use std::sync::Arc;

/// A version of a definition.
#[derive(Debug)]
pub struct CustomVersion {
    definition: Arc<CompiledDefinition>,
    version: Arc<CompiledVersion>,
    /// Whether the definition's deletion has begun: nothing may be created any more.
    is_terminating: bool,
    converter: Arc<Converter>,
}

impl CustomVersion {
    /// The version `version` of `definition`.
    pub fn new(
        definition: Arc<CompiledDefinition>,
        version: Arc<CompiledVersion>,
        is_terminating: bool,
        converter: Arc<Converter>,
    ) -> CustomVersion {
        CustomVersion { definition, version, is_terminating, converter }
    }

    /// The compiled version.
    pub fn version(&self) -> &Arc<CompiledVersion> {
        &self.version
    }

    /// The compiled definition.
    pub fn definition(&self) -> &Arc<CompiledDefinition> {
        &self.definition
    }

    /// Whether the definition's deletion has begun.
    pub fn is_terminating(&self) -> bool {
        self.is_terminating
    }

    /// Where an object begins in the version's schema.
    pub fn node(&self) -> Node<'_> {
        self.version.node()
    }

    /// Brings a stored object to what the present schema makes of it.
    pub fn on_read(&self, object: &mut Value) {
        self.definition.on_read(object);
    }

    /// The object in another version, as that version's schema has it.
    ///
    /// # Errors
    /// 500 when the conversion fails.
    pub async fn convert(&self, object: Value, to: &GroupVersion) -> Result<Value> {
        if object.api_version() == to.to_string() {
            return Ok(object);
        }
        let Some(target) = self.target(to) else {
            return Err(Box::new(Status::internal(format!("{} has no version {}", self.definition.name, to.version))));
        };
        let refuse = |why: String| Box::new(Status::plain_error(why));
        let mut object = self.converter.convert(&self.definition.conversion, &object, to).await.map_err(refuse)?;
        target.on_convert(&mut object).map_err(refuse)?;
        Ok(object)
    }

    fn target(&self, to: &GroupVersion) -> Option<&Arc<CompiledVersion>> {
        self.definition.version(&to.version).filter(|_| to.group == self.definition.group)
    }

    /// The object in another version as the owners of fields see it, whatever the schema of that version has; `None`
    /// when there is no such version.
    ///
    /// # Errors
    /// Why the conversion fails.
    pub(crate) async fn convert_for_owners(&self, object: &Value, to: &GroupVersion) -> Result<Option<Value>, String> {
        if self.target(to).is_none() {
            return Ok(None);
        }
        self.converter.convert(&self.definition.conversion, object, to).await.map(Some)
    }

    /// The same for definitions whose conversion asks nobody.
    pub(crate) fn convert_for_owners_now(&self, object: &Value, to: &GroupVersion) -> Option<Value> {
        self.target(to)?;
        let mut object = object.clone();
        convert_plainly(&mut object, to);
        Some(object)
    }

    /// Whether conversion asks a webhook.
    pub(crate) fn asks_webhook(&self) -> bool {
        matches!(self.definition.conversion, Conversion::Webhook(_))
    }

    /// The schema of another version.
    pub fn node_of_version(&self, version: &GroupVersion) -> Option<Node<'_>> {
        if version.group != self.definition.group {
            return None;
        }
        self.definition.version(&version.version).map(|v| v.node())
    }

    /// The Scale that shows an object.
    ///
    /// # Errors
    /// 500 when it says nothing of replicas.
    pub fn scale_of(&self, object: &Value) -> Result<Value> {
        match &self.version.scale {
            Some(scale) => scale.get(object),
            None => Err(Box::new(Status::not_found_path())),
        }
    }

    /// The Scale that an update through it begins with.
    ///
    /// # Errors
    /// 500 when the object cannot be read.
    pub fn scale_for_update(&self, object: &Value) -> Result<Value> {
        match &self.version.scale {
            Some(scale) => scale.get_for_update(object),
            None => Err(Box::new(Status::not_found_path())),
        }
    }

    /// Puts a Scale into the object.
    ///
    /// # Errors
    /// 500 when it cannot be put.
    pub fn set_scale(&self, scale: &Value, object: &mut Value) -> Result<()> {
        match &self.version.scale {
            Some(rules) => rules.apply(object, scale),
            None => Err(Box::new(Status::not_found_path())),
        }
    }

    /// Where replicas are kept.
    pub fn replicas_path(&self) -> Vec<String> {
        self.version
            .scale
            .as_ref()
            .map(|scale| scale.spec_replicas.names().iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    /// Column definitions of its tables.
    pub fn table_columns(&self) -> Value {
        self.version.columns.definitions()
    }

    /// Cells of a row.
    pub fn table_cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        self.version.columns.cells(object, now)
    }

    /// Reads what a patch made: the object, and the texts of what strict validation refuses.
    ///
    /// # Errors
    /// What `refuse` makes of a fault.
    pub fn decode_patched(
        &self,
        _resource: &Resource,
        patched: Value,
        refuse: &dyn Fn(&str) -> Box<Status>,
    ) -> Result<(Value, Vec<String>)> {
        let mut object = patched;
        let unknown = self.version.on_body(&mut object).map_err(|why| refuse(&why))?;
        Ok((object, unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect()))
    }

    /// Reads a body.
    ///
    /// # Errors
    /// 400 in upstream's words.
    pub fn decode(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        body: Body<'_>,
        strictness: FieldValidation,
    ) -> Result<Value> {
        let expected = Expected { kind: &resource.kind, type_id: None };
        let (bytes, yaml_duplicates);
        match body.media {
            Media::Yaml => {
                let document = pintle_codec::yaml::parse(body.bytes)
                    .map_err(|why| unrecognized(expected, &why.to_string(), body.bytes))?;
                bytes = document.value.to_json();
                yaml_duplicates = document.duplicates;
            }
            Media::Json | Media::Protobuf => {
                bytes = body.bytes.to_vec();
                yaml_duplicates = Vec::new();
            }
        }
        let claimed = claim(&bytes).map_err(|why| {
            unrecognized(expected, &format!("couldn't get version/kind; json parse error: {why}"), body.bytes)
        })?;
        if claimed.kind.is_empty() {
            let text = String::from_utf8_lossy(&bytes);
            return Err(unrecognized(expected, &format!("Object 'Kind' is missing in '{text}'"), body.bytes));
        }
        let gvk = GroupVersion::parse(&claimed.api_version).unwrap_or_default().with_kind(&claimed.kind);
        let parsed = parse_free(&bytes).map_err(|why| cannot_be_handled(&gvk, expected, &why.message))?;
        if gvk.group_version() != resource.gvr.group_version() {
            return Err(Box::new(Status::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                claimed.api_version,
                resource.gvr.group_version()
            ))));
        }
        let mut object = parsed.value;
        let unknown = self.version.on_body(&mut object).map_err(|why| cannot_be_handled(&gvk, expected, &why))?;
        self.judge(call, expected, &gvk, (&yaml_duplicates, &parsed.issues, &unknown), strictness)?;
        Ok(object)
    }

    fn judge(
        &self,
        call: &Call<'_>,
        expected: Expected<'_>,
        gvk: &GroupVersionKind,
        (yaml, issues, unknown): (&[String], &Issues, &[String]),
        strictness: FieldValidation,
    ) -> Result<()> {
        let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
        match strictness {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                let told = issues.strict.iter().map(ToString::to_string);
                call.warnings.lock().extend(yaml.iter().cloned().chain(told).chain(unknown));
                Ok(())
            }
            FieldValidation::Strict => {
                let mut texts: Vec<String> = Vec::new();
                if let Some(text) = strict_text(yaml, issues) {
                    texts.push(text.trim_start_matches("strict decoding error: ").to_owned());
                }
                texts.extend(unknown);
                if texts.is_empty() {
                    return Ok(());
                }
                Err(cannot_be_handled(gvk, expected, &format!("strict decoding error: {}", texts.join(", "))))
            }
        }
    }
}
