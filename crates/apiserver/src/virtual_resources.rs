//! Resources that are not stored: reviews and bindings (component statuses are next door).

use crate::handle::{Incoming, read_body};
use crate::negotiate::{Allowed, Form, Output, input, output};
use crate::options::{self, WriteVerb};
use crate::reply::{self, Reply};
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupVersionKind, GroupVersionResource, Status, Value};
use pintle_auth::review::{self, AccessReview};
use pintle_registry::decode::{Body, Expected, decode_as};
use pintle_registry::transient::Question;
use pintle_registry::{Call, MayAlwaysCreate, Warnings, WriteOptions};
use pintle_schema::Resource as Row;

/// Answers a request for a resource that the catalogue of stored ones does not have.
pub(crate) async fn serve<B>(incoming: &Incoming<'_>, body: B) -> Reply
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let info = incoming.info;
    let Some(row) = pintle_schema::resource(&info.group, &info.version, &info.resource, "") else {
        let is_builtin_group = pintle_schema::resources().iter().any(|r| r.group == info.group);
        if is_builtin_group {
            return reply::status(&Status::not_found_path(), incoming.accept());
        }
        return reply::page_not_found();
    };
    let warnings = Mutex::new(Warnings::default());
    let mut answer = match dispatch(incoming, row, body, &warnings).await {
        Ok(answer) => answer,
        Err(status) => reply::status(&status, incoming.accept()),
    };
    reply::add_warnings(&mut answer, warnings.lock().texts());
    answer
}

async fn dispatch<B>(incoming: &Incoming<'_>, row: &Row, body: B, warnings: &Mutex<Warnings>) -> Result<Reply>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let info = incoming.info;
    if row.is_namespaced == info.namespace.is_empty() || !info.subresource.is_empty() {
        return Err(Box::new(Status::not_found_path()));
    }
    let is_named = !info.path_name().is_empty();
    match (row.plural, info.verb) {
        ("componentstatuses", _) => crate::component_statuses::serve(incoming, warnings),
        ("bindings", "create") if !is_named => {
            let pods = incoming.state.catalog.served().get("", "v1", "pods").cloned();
            let pods = pods.ok_or_else(|| Box::new(Status::not_found_path()))?;
            let request = crate::resources::Request { incoming, resource: &pods, warnings };
            crate::subresources::bind(&request, read_body(body).await?).await
        }
        (_, "create") if !is_named => review(incoming, row, read_body(body).await?, warnings).await,
        _ if is_named => Err(Box::new(Status::not_found_path())),
        _ => Err(Box::new(Status::method_not_allowed())),
    }
}

/// A question and its answer.
async fn review(incoming: &Incoming<'_>, row: &Row, bytes: Bytes, warnings: &Mutex<Warnings>) -> Result<Reply> {
    let info = incoming.info;
    let allowed = Allowed { protobuf: true, transforms: true, watch: false, watchable: false };
    let output = output(incoming.accept(), allowed)?;
    let media = input(incoming.content_type(), true)?;
    let options = options::write_options(incoming.query, WriteVerb::Create)?;
    let kind = GroupVersionKind::new(row.kind_group, row.kind_version, row.kind);
    let resource = GroupVersionResource::new(row.group, row.version, row.plural);
    let caller = incoming.caller();
    let call = Call {
        world: &incoming.state.world,
        caller: &caller,
        namespace: if row.is_namespaced { &info.namespace } else { "" },
        name: "",
        subresource: "",
        now: incoming.state.env.clock.now(),
        warnings,
        may_create: &MayAlwaysCreate,
    };
    let type_id = pintle_schema::kind(row.kind_group, row.kind_version, row.kind).map(|k| k.id);
    let expected = Expected { kind: &kind, type_id };
    let object = decode_as(&call, expected, Body { bytes: &bytes, media }, options.field_validation)?;
    let question = Question { resource: &resource, kind: &kind, is_namespaced: row.is_namespaced };
    let answer = answer(incoming, &call, &question, object, &options).await?;
    let plain = incoming.laid_out(Output { form: Form::Object, ..output });
    Ok(reply::bytes(201, plain.content_type(), crate::declared::encode(&answer, &plain)?))
}

async fn answer(
    incoming: &Incoming<'_>,
    call: &Call<'_>,
    question: &Question<'_>,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Value> {
    let state = incoming.state;
    question.open(call, &mut object, options).await?;
    let access = match question.resource.resource.as_str() {
        "subjectaccessreviews" => Some(AccessReview::Subject),
        "selfsubjectaccessreviews" => Some(AccessReview::SelfSubject),
        "localsubjectaccessreviews" => Some(AccessReview::Local),
        _ => None,
    };
    if let Some(access) = access {
        review::validate_access_review(access, &object, call.namespace)?;
        question.close(call, &object, options).await?;
        review::answer_access_review(access, &mut object, incoming.user, &*state.authorizer);
        return Ok(object);
    }
    match question.resource.resource.as_str() {
        "selfsubjectrulesreviews" => {
            question.close(call, &object, options).await?;
            review::answer_rules_review(&object, incoming.user, &*state.authorizer)
        }
        "selfsubjectreviews" => {
            question.close(call, &object, options).await?;
            Ok(review::answer_self_subject_review(incoming.user, call.now))
        }
        "tokenreviews" => {
            review::validate_token_review(&object)?;
            question.close(call, &object, options).await?;
            review::answer_token_review(&mut object, &state.authenticator).await?;
            Ok(object)
        }
        _ => Err(Box::new(Status::not_found_path())),
    }
}
