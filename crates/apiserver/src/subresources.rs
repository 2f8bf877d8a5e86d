//! Subresources: those that update the same object, and those that do something else.

use crate::handle::read_body;
use crate::negotiate::{Form, Output, input};
use crate::options::{self, WriteVerb};
use crate::reply::{self, Reply};
use crate::resources::Request;
use bytes::Bytes;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, Status, Value};
use pintle_kinds::table;
use pintle_registry::decode::{Body, Expected, decode_as};
use pintle_registry::sub::ScaleWrite;
use pintle_registry::transient::Question;
use pintle_registry::{Answer, Call, WriteOptions, Written, sub};

/// Answers a request for a subresource that the resource has.
pub(crate) async fn serve<B>(
    request: &Request<'_>,
    body: B,
    upgrade: Option<hyper::upgrade::OnUpgrade>,
) -> Result<Reply>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let info = request.incoming.info;
    match (info.subresource.as_str(), info.verb) {
        ("status" | "ephemeralcontainers" | "resize" | "approval" | "finalize", "update") => {
            request.update(read_body(body).await?).await
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", "patch") => {
            request.patch(read_body(body).await?).await
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", "get") => request.get().await,
        ("log" | "exec" | "attach" | "portforward" | "proxy", _) => {
            Box::pin(crate::connect::serve(request, body, upgrade)).await
        }
        ("scale", "get") => read_scale(request).await,
        ("scale", "update") => replace_scale(request, read_body(body).await?).await,
        ("scale", "patch") => patch_scale(request, read_body(body).await?).await,
        ("token", "create") => request_token(request, read_body(body).await?).await,
        ("binding", "create") => bind(request, read_body(body).await?).await,
        ("eviction", "create") => evict(request, read_body(body).await?).await,
        _ => Err(request.method_refused()),
    }
}

/// Reads a body of another kind than the resource's, then acts on it.
async fn create_with(
    request: &Request<'_>,
    bytes: &Bytes,
    kind: GroupVersionKind,
    act: impl AsyncFnOnce(&Call<'_>, Value, &WriteOptions) -> Result<Written>,
) -> Result<Reply> {
    let output = request.output(false, false)?;
    let body = request.body(bytes)?;
    let options = options::write_options(request.incoming.query, WriteVerb::Create)?;
    let type_id = pintle_schema::kind(&kind.group, &kind.version, &kind.kind).map(|k| k.id);
    let expected = Expected { kind: &kind, type_id };
    let written = request
        .with_call(async |call| {
            let object = decode_as(call, expected, body, options.field_validation)?;
            act(call, object, &options).await
        })
        .await?;
    let output = Output { form: crate::negotiate::Form::Object, ..output };
    request.written(written, output).await
}

pub(crate) async fn bind(request: &Request<'_>, bytes: Bytes) -> Result<Reply> {
    let kind = GroupVersionKind::new("", "v1", "Binding");
    create_with(request, &bytes, kind, async |call, binding, options| {
        sub::bind(request.resource, call, binding, options).await
    })
    .await
}

async fn evict(request: &Request<'_>, bytes: Bytes) -> Result<Reply> {
    let kind = GroupVersionKind::new("policy", "v1", "Eviction");
    let budgets = request.incoming.state.catalog.served().get("policy", "v1", "poddisruptionbudgets").cloned();
    let budgets = budgets.ok_or_else(|| Box::new(Status::internal("poddisruptionbudgets are not served")))?;
    create_with(request, &bytes, kind, async |call, eviction, options| {
        let delete = match &eviction["deleteOptions"] {
            Value::Null => pintle_registry::DeleteOptions::default(),
            object => options::delete_options("", Some(object))?,
        };
        sub::evict(request.resource, &budgets, call, eviction, options, delete).await
    })
    .await
}

async fn scale_reply(request: &Request<'_>, scale: &Value, output: Output) -> Result<Reply> {
    let shown = match output.form {
        Form::Object => scale.clone(),
        Form::Partial(version) | Form::PartialList(version) => crate::encode::partial(scale, version),
        Form::Table(version) => {
            let resource = format!("{}/scale", request.resource.gvr.resource);
            let (group, now) = (&request.resource.gvr.group, request.incoming.state.env.clock.now());
            let rows = vec![table::row(group, &resource, scale, request.include()?, version.name(), now)];
            let meta = pintle_apimachinery::json!({"resourceVersion": scale["metadata"]["resourceVersion"].clone()});
            let mut table =
                table::table(group, &request.resource.gvr.version, &resource, rows, meta, true, version.name());
            let columns = table.get_mut("columnDefinitions").and_then(Value::as_array_mut);
            // the handler of custom resources describes the columns a little better
            if let Some([name, .., age]) = columns.filter(|_| request.resource.is_custom()).map(Vec::as_mut_slice) {
                name.set("format", "name");
                age.set("type", "date");
            }
            table
        }
    };
    let plain = Output { form: Form::Object, ..output };
    Ok(reply::bytes(200, plain.content_type(), crate::encode::value(&shown, &plain)?))
}

async fn read_scale(request: &Request<'_>) -> Result<Reply> {
    let output = request.output(false, false)?;
    let version = options::get_version(request.incoming.query)?;
    let record = request.with_call(async |call| request.resource.get(call, version).await).await?;
    let scale = sub::read_scale(request.resource, &record).await?;
    scale_reply(request, &scale, output).await
}

async fn replace_scale(request: &Request<'_>, bytes: Bytes) -> Result<Reply> {
    let output = request.output(false, false)?;
    let options = options::write_options(request.incoming.query, WriteVerb::Update)?;
    let body = Body { bytes: &bytes, media: input(request.incoming.content_type(), true)? };
    let kind = GroupVersionKind::new("autoscaling", "v1", "Scale");
    let type_id = pintle_schema::kind("autoscaling", "v1", "Scale").map(|k| k.id);
    let expected = Expected { kind: &kind, type_id };
    let scale = request
        .with_call(async |call| {
            let scale = decode_as(call, expected, body, options.field_validation)?;
            sub::write_scale(request.resource, call, ScaleWrite::Replace(scale), &options).await
        })
        .await?;
    scale_reply(request, &scale, output).await
}

async fn patch_scale(request: &Request<'_>, bytes: Bytes) -> Result<Reply> {
    let output = request.output(false, false)?;
    let (patch, options) = request.read_patch(bytes)?;
    let scale = request
        .with_call(async |call| sub::write_scale(request.resource, call, ScaleWrite::Patch(patch), &options).await)
        .await?;
    scale_reply(request, &scale, output).await
}

/// `serviceaccounts/token`: issues a token of the account.
async fn request_token(request: &Request<'_>, bytes: Bytes) -> Result<Reply> {
    let kind = GroupVersionKind::new("authentication.k8s.io", "v1", "TokenRequest");
    create_with(request, &bytes, kind.clone(), async |call, mut object, options| {
        let tokens = &request.incoming.state.tokens;
        let resource = request.resource.gvr.clone();
        let question = Question { resource: &resource, kind: &kind, is_namespaced: true };
        question.open(call, &mut object, options).await?;
        let asked = tokens.validate(object, call.namespace, call.name).await?;
        question.close(call, &asked.object, options).await?;
        let answer = tokens.answer(asked).await?;
        call.warnings.lock().extend(answer.warnings);
        Ok(Written { answer: Answer::Object(answer.object), is_created: true })
    })
    .await
}
