//! Requests about objects: the verbs over whatever resource the path names.

use crate::encode::Encoder;
use crate::handle::{Incoming, read_body};
use crate::list::{ListBody, ListView};
use crate::negotiate::{Allowed, Form, Output, input, output};
use crate::options::{self, Params, WriteVerb};
use crate::reply::{self, Reply};
use crate::watch::WatchView;
use crate::websocket::{self, Framing};
use bytes::Bytes;
use futures_util::StreamExt;
use http::Method;
use parking_lot::Mutex;
use pintle_apimachinery::Status;
use pintle_apimachinery::status::Result;
use pintle_auth::authz::Attributes;
use pintle_kinds::table::IncludeObject;
use pintle_registry::call::MayCreate;
use pintle_registry::decode::{Body, Media, decode_delete_options, decode_object};
use pintle_registry::patch::{Patch, PatchType};
use pintle_registry::{Answer, Call, DeleteOptions, ListOptions, Resource, Warnings, Written};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A watch without `timeoutSeconds` ends after half an hour to an hour, so that clients spread over servers again.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(1_800);

/// Answers a request about objects.
pub(crate) async fn serve<B>(incoming: &Incoming<'_>, body: B, upgrade: Option<hyper::upgrade::OnUpgrade>) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let info = incoming.info;
    let found = incoming.state.catalog.served().get(&info.group, &info.version, &info.resource).cloned();
    let Some(resource) = found else {
        return crate::virtual_resources::serve(incoming, body).await;
    };
    let warnings = Mutex::new(Warnings::default());
    if (info.group.as_str(), info.resource.as_str(), info.subresource.is_empty()) == ("", "endpoints", true) {
        warnings.lock().add("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
    }
    if let Some(text) = resource.deprecation_warning() {
        warnings.lock().add(text);
    }
    let served = Request { incoming, resource: &resource, warnings: &warnings };
    let mut answer =
        served.dispatch(body, upgrade).await.unwrap_or_else(|status| reply::status(&status, incoming.accept()));
    reply::add_warnings(&mut answer, warnings.lock().texts());
    answer
}

/// A request about a resource's objects.
pub(crate) struct Request<'a> {
    pub(crate) incoming: &'a Incoming<'a>,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) warnings: &'a Mutex<Warnings>,
}

/// Asks the authorizer whether whoever updates may also create.
#[derive(Debug)]
struct CreateCheck<'a> {
    state: &'a crate::state::State,
    attributes: Attributes<'a>,
}

impl MayCreate for CreateCheck<'_> {
    fn check(&self) -> Result<()> {
        self.state.authorizer.check(&self.attributes)
    }
}

impl Request<'_> {
    async fn dispatch<B>(&self, body: B, upgrade: Option<hyper::upgrade::OnUpgrade>) -> Result<Reply>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let info = self.incoming.info;
        if !self.resource.is_namespaced && !info.namespace.is_empty() && info.resource != "namespaces" {
            return self.out_of_scope();
        }
        if self.incoming.parts.method == Method::HEAD && !self.resource.is_custom() && info.subresource != "proxy" {
            // no route of a built-in resource is for heads
            return Err(Box::new(Status::method_not_allowed()));
        }
        if !info.subresource.is_empty() {
            if !self.resource.subresources.iter().any(|s| *s == info.subresource) {
                return Err(self.no_such_subresource());
            }
            if info.parts.len() > 3 && info.subresource != "proxy" {
                return Err(Box::new(Status::not_found_path()));
            }
            return crate::subresources::serve(self, body, upgrade).await;
        }
        if self.needs_namespace() {
            return self.out_of_scope();
        }
        if matches!(info.path_name(), "." | "..") || info.path_name().contains('%') {
            let name = info.path_name();
            let why = if name.contains('%') { "contain '%'".to_owned() } else { format!("be '{name}'") };
            let text = format!("Name parameter invalid: \"{name}\": may not {why}");
            return Err(Box::new(Status::bad_request(text)));
        }
        if !self.resource.verbs.iter().any(|v| *v == info.verb) {
            return Err(self.method_refused());
        }
        match info.verb {
            "get" => self.get().await,
            "list" => self.list().await,
            "watch" => self.watch(upgrade).await,
            "update" | "patch" if info.path_name().is_empty() && self.resource.is_custom() => {
                Err(Box::new(Status::bad_request("name must be provided")))
            }
            // custom resources are routed by verb: a name does not matter to a create
            "create" if !info.path_name().is_empty() && !self.resource.is_custom() => {
                Err(Box::new(Status::method_not_allowed()))
            }
            "create" => self.create(read_body(body).await?).await,
            "update" if info.path_name().is_empty() => Err(Box::new(Status::method_not_allowed())),
            "update" => self.update(read_body(body).await?).await,
            "patch" if info.path_name().is_empty() => Err(Box::new(Status::method_not_allowed())),
            "patch" => self.patch(read_body(body).await?).await,
            "delete" => self.delete(read_body(body).await?).await,
            "deletecollection" => self.delete_collection(read_body(body).await?).await,
            _ => Err(Box::new(Status::method_not_allowed())),
        }
    }

    /// 404 for a subresource that is not served: a custom one is answered as if the object were missing.
    fn no_such_subresource(&self) -> Box<Status> {
        if self.resource.is_custom() {
            let name = self.incoming.info.path_name();
            return Box::new(Status::not_found(self.resource.group_resource(), name));
        }
        Box::new(Status::not_found_path())
    }

    /// 405: built-in resources have no such route, custom ones do not support the verb.
    pub(crate) fn method_refused(&self) -> Box<Status> {
        if self.resource.is_custom() {
            return Box::new(Status::method_not_supported(self.resource.group_resource(), self.incoming.info.verb));
        }
        Box::new(Status::method_not_allowed())
    }

    /// A path that names a namespace for a resource without, or none for one with: no route of a built-in group has
    /// it, and a custom one is not found by the handler of all of them.
    fn out_of_scope(&self) -> Result<Reply> {
        let info = self.incoming.info;
        if self.resource.is_custom() {
            return Ok(reply::page_not_found());
        }
        if self.resource.is_namespaced && info.path_name().is_empty() {
            return Err(Box::new(Status::method_not_allowed()));
        }
        Err(Box::new(Status::not_found_path()))
    }

    /// Objects of namespaced resources are reached through their namespace only.
    fn needs_namespace(&self) -> bool {
        let info = self.incoming.info;
        self.resource.is_namespaced
            && info.namespace.is_empty()
            && (!info.path_name().is_empty() || matches!(info.verb, "create" | "deletecollection"))
            && !info.is_watch_prefix
    }

    pub(crate) fn call<'c>(&'c self, caller: &'c pintle_registry::Caller, may_create: &'c dyn MayCreate) -> Call<'c> {
        let info = self.incoming.info;
        Call {
            world: &self.incoming.state.world,
            caller,
            namespace: if self.resource.is_namespaced { &info.namespace } else { "" },
            name: info.path_name(),
            subresource: &info.subresource,
            now: self.incoming.state.env.clock.now(),
            warnings: self.warnings,
            may_create,
        }
    }

    /// Runs `act` with the request as a [`Call`].
    pub(crate) async fn with_call<T>(&self, act: impl AsyncFnOnce(&Call<'_>) -> Result<T>) -> Result<T> {
        let caller = self.incoming.caller();
        let attributes = Attributes { verb: "create", ..self.incoming.attributes() };
        let check = CreateCheck { state: self.incoming.state, attributes };
        let call = self.call(&caller, &check);
        act(&call).await
    }

    pub(crate) fn output(&self, is_watch: bool, is_list: bool) -> Result<Output> {
        let allowed = Allowed {
            protobuf: !self.resource.is_custom(),
            transforms: true,
            watch: is_watch,
            watchable: is_list || is_watch,
        };
        let mut output = output(self.incoming.accept(), allowed)?;
        match output.form {
            Form::Object => {
                output = self.incoming.laid_out(output);
            }
            Form::Partial(_) | Form::PartialList(_) | Form::Table(_) => {
                // a Table has no protobuf form
                if output.media == Media::Protobuf && matches!(output.form, Form::Table(_)) {
                    output.media = Media::Json;
                }
            }
        }
        Ok(output)
    }

    /// Upstream's name of the internal type, which some of its texts show.
    fn go_type(&self) -> String {
        if self.resource.is_custom() {
            return "unstructured.Unstructured".to_owned();
        }
        let package = match self.resource.gvr.group.as_str() {
            "" => "core",
            group => group.split('.').next().unwrap_or_default(),
        };
        format!("{package}.{}", self.resource.kind.kind)
    }

    pub(crate) fn include(&self) -> Result<IncludeObject> {
        include_object(self.incoming)
    }

    /// What shows objects in this output; `is_list` is `None` for a watch. Upstream asks when there is something to
    /// show: a write is done by then.
    ///
    /// # Errors
    /// 406 where one was asked for and there is a list, or the other way round; 400 for a bad `includeObject`.
    pub(crate) fn encoder(&self, output: Output, is_list: Option<bool>) -> Result<Encoder<'_>> {
        match (output.form, is_list) {
            (Form::Partial(_), Some(true)) => {
                return Err(Box::new(Status::not_acceptable(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list (*{}List)",
                    self.go_type()
                ))));
            }
            (Form::PartialList(_), Some(false)) => {
                return Err(Box::new(Status::not_acceptable(format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list (*{})",
                    self.go_type()
                ))));
            }
            _ => {}
        }
        let include = if matches!(output.form, Form::Table(_)) { self.include()? } else { IncludeObject::default() };
        Ok(Encoder { resource: self.resource, output, now: self.incoming.state.env.clock.now(), include })
    }

    /// What a write answers.
    pub(crate) async fn written(&self, written: Written, output: Output) -> Result<Reply> {
        let code = if written.is_created { 201 } else { 200 };
        let body = match &written.answer {
            Answer::Record(record) => self.encoder(output, Some(false))?.record(record, record.revision).await?,
            Answer::Object(object) => self.encoder(output, Some(false))?.object(object)?,
            Answer::Status(status) => {
                let plain = Output { form: Form::Object, ..output };
                crate::encode::value(&status.to_value(), &plain)?
            }
        };
        Ok(reply::bytes(code, output.content_type(), body))
    }

    pub(crate) async fn get(&self) -> Result<Reply> {
        let output = self.output(false, false)?;
        let version = options::get_version(self.incoming.query)?;
        let record = self.with_call(async |call| self.resource.get(call, version).await).await?;
        let body = self.encoder(output, Some(false))?.record(&record, record.revision).await?;
        Ok(reply::bytes(200, output.content_type(), body))
    }

    async fn list(&self) -> Result<Reply> {
        let output = self.output(false, true)?;
        let options = options::list_options(self.incoming.query, false)?;
        let listed = self.with_call(async |call| self.resource.list(call, &options).await).await?;
        let encoder = self.encoder(output, Some(true))?;
        let view = ListView { resource: self.resource.clone(), output, now: encoder.now, include: encoder.include };
        let content_type = output.content_type();
        Ok(crate::compress::list_reply(self.incoming.parts, content_type, view.render(listed).await?))
    }

    async fn watch(&self, upgrade: Option<hyper::upgrade::OnUpgrade>) -> Result<Reply> {
        let info = self.incoming.info;
        let output = self.output(true, true)?;
        let mut options = options::list_options(self.incoming.query, true)?;
        if info.is_watch_prefix && !info.path_name().is_empty() {
            let pinned = pintle_apimachinery::fieldselector::FieldSelector::equal("metadata.name", info.path_name());
            options.fields.terms.extend(pinned.terms);
        }
        let deadline = Instant::now() + options.timeout.unwrap_or_else(|| self.default_timeout());
        let watch = self.with_call(async |call| self.resource.watch(call, &options, deadline).await).await?;
        let encoder = self.encoder(output, None)?;
        let view = WatchView {
            resource: self.resource.clone(),
            output,
            include: encoder.include,
            clock: self.incoming.state.env.clock.clone(),
            has_told_columns: false,
        };
        let content_type = match output.media {
            Media::Protobuf if output.form == Form::Object => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        };
        let mut stopping = self.incoming.state.stopping.clone();
        let stopped = async move {
            // an error means that the server is gone: an end as well
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        };
        let pieces = view.stream(watch, deadline).take_until(stopped);
        if let (Some(upgrade), Some(key)) = (upgrade, websocket::handshake(&self.incoming.parts.headers)) {
            let is_lines = content_type == "application/json";
            return Ok(websocket::watch(
                key,
                upgrade,
                if is_lines { Framing::Lines } else { Framing::Lengths },
                pieces,
            ));
        }
        let mut reply = reply::bytes(200, content_type, Bytes::new());
        *reply.body_mut() = crate::body::ResponseBody::stream(pieces);
        Ok(reply)
    }

    fn default_timeout(&self) -> Duration {
        let spread = self.incoming.state.env.ids.random_u64() % WATCH_TIMEOUT_MIN.as_secs();
        WATCH_TIMEOUT_MIN + Duration::from_secs(spread)
    }

    pub(crate) fn body<'b>(&self, bytes: &'b Bytes) -> Result<Body<'b>> {
        Ok(Body { bytes, media: input(self.incoming.content_type(), !self.resource.is_custom())? })
    }

    async fn create(&self, bytes: Bytes) -> Result<Reply> {
        let output = self.output(false, false)?;
        let body = self.body(&bytes)?;
        let options = options::write_options(self.incoming.query, WriteVerb::Create)?;
        let written = self
            .with_call(async |call| {
                let object = decode_object(call, self.resource, body, options.field_validation)?;
                self.resource.create(call, object, &options).await
            })
            .await?;
        self.written(written, output).await
    }

    pub(crate) async fn update(&self, bytes: Bytes) -> Result<Reply> {
        let output = self.output(false, false)?;
        let options = options::write_options(self.incoming.query, WriteVerb::Update)?;
        let body = self.body(&bytes)?;
        let written = self
            .with_call(async |call| {
                let object = decode_object(call, self.resource, body, options.field_validation)?;
                self.resource.replace(call, object, &options).await
            })
            .await?;
        self.written(written, output).await
    }

    /// The patch in a body.
    pub(crate) fn read_patch(&self, bytes: Bytes) -> Result<(Patch, pintle_registry::WriteOptions)> {
        let content_type = self.incoming.content_type().split(';').next().unwrap_or_default().trim();
        let kind = PatchType::of_media_type(content_type, self.resource.is_custom())?;
        let options =
            options::write_options(self.incoming.query, WriteVerb::Patch { is_apply: kind == PatchType::Apply })?;
        Ok((Patch::new(kind, bytes, &options)?, options))
    }

    pub(crate) async fn patch(&self, bytes: Bytes) -> Result<Reply> {
        let content_type = self.incoming.content_type().split(';').next().unwrap_or_default().trim();
        PatchType::of_media_type(content_type, self.resource.is_custom())?;
        let output = self.output(false, false)?;
        let (patch, options) = self.read_patch(bytes)?;
        let written = self.with_call(async |call| self.resource.patch(call, &patch, &options).await).await?;
        self.written(written, output).await
    }

    /// DeleteOptions from body or query.
    pub(crate) async fn delete_options(&self, bytes: &Bytes) -> Result<DeleteOptions> {
        if bytes.is_empty() {
            return options::delete_options(self.incoming.query, None);
        }
        let media = input(self.incoming.content_type(), true)?;
        let decoded = decode_delete_options(Body { bytes, media })?;
        options::delete_options(self.incoming.query, Some(&decoded))
    }

    async fn delete(&self, bytes: Bytes) -> Result<Reply> {
        let output = self.output(false, false)?;
        let options = self.delete_options(&bytes).await?;
        let deleted = self.with_call(async |call| self.resource.delete(call, &options).await).await?;
        let is_accepted = !deleted.is_gone && options.orphan_dependents == Some(false);
        let mut reply = self.written(deleted.into(), output).await?;
        if is_accepted {
            *reply.status_mut() = http::StatusCode::ACCEPTED;
        }
        Ok(reply)
    }

    async fn delete_collection(&self, bytes: Bytes) -> Result<Reply> {
        let output = self.output(false, true)?;
        let list: ListOptions = options::list_options(self.incoming.query, false)?;
        let options = self.delete_options(&bytes).await?;
        let listed = self.with_call(async |call| self.resource.delete_collection(call, &options, &list).await).await?;
        let encoder = self.encoder(output, Some(true))?;
        let view = ListView { resource: self.resource.clone(), output, now: encoder.now, include: encoder.include };
        match view.render(listed).await? {
            ListBody::Whole(body) => Ok(reply::bytes(200, output.content_type(), body)),
            ListBody::Chunks(chunks) => {
                let mut reply = reply::bytes(200, output.content_type(), Bytes::new());
                *reply.body_mut() = crate::body::ResponseBody::Stream(chunks);
                Ok(reply)
            }
        }
    }
}

/// The `includeObject` of a request for a table.
///
/// # Errors
/// 400 for what it cannot be.
pub(crate) fn include_object(incoming: &Incoming<'_>) -> Result<IncludeObject> {
    IncludeObject::parse(Params::of(incoming.query).get("includeObject").unwrap_or_default())
        .map_err(|why| Box::new(Status::bad_request(why)))
}
