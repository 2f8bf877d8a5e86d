//! Subresources: those that update the same object, and those that do something else.

use crate::handle::read_body;
use crate::negotiate::Output;
use crate::options::{self, WriteVerb};
use crate::reply::Reply;
use crate::resources::Request;
use bytes::Bytes;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, Status, Value};
use pintle_registry::decode::{Expected, decode_as};
use pintle_registry::{Call, WriteOptions, Written, sub};

/// Answers a request for a subresource that the resource has.
pub(crate) async fn serve<B>(request: &Request<'_>, body: B, upgrade: Option<hyper::upgrade::OnUpgrade>) -> Result<Reply>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let _ = upgrade;
    let info = request.incoming.info;
    match (info.subresource.as_str(), info.verb) {
        ("status" | "ephemeralcontainers" | "resize" | "approval" | "finalize", "update") => {
            request.update(read_body(body).await?).await
        }
        ("status" | "ephemeralcontainers" | "resize" | "approval", "patch") => request.patch(read_body(body).await?).await,
        ("status" | "ephemeralcontainers" | "resize" | "approval", "get") => request.get().await,
        ("binding", "create") => bind(request, read_body(body).await?).await,
        ("eviction", "create") => evict(request, read_body(body).await?).await,
        _ => Err(Box::new(Status::method_not_allowed())),
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
