//! Component statuses: the health of a control plane's parts. Deprecated for years; `kubectl get cs` still asks.

use crate::handle::Incoming;
use crate::list::ListBody;
use crate::negotiate::{Allowed, Form, Output, output};
use crate::options;
use crate::reply::{self, Reply};
use parking_lot::Mutex;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Value, json};
use pintle_kinds::table;
use pintle_registry::Warnings;

const PLURAL: &str = "componentstatuses";

/// The parts of a control plane that upstream tells the health of. Here they are one process, which answers.
const COMPONENTS: [&str; 3] = ["controller-manager", "etcd-0", "scheduler"];

/// Answers a request for component statuses.
///
/// # Errors
/// 404 for other names than those of the components, 405 for all but reads.
pub(crate) fn serve(incoming: &Incoming<'_>, warnings: &Mutex<Warnings>) -> Result<Reply> {
    if !matches!(incoming.info.verb, "get" | "list" | "watch") || incoming.parts.method == http::Method::HEAD {
        return Err(Box::new(Status::method_not_allowed()));
    }
    warnings.lock().add("v1 ComponentStatus is deprecated in v1.19+");
    match incoming.info.verb {
        "get" => one(incoming),
        "list" => all(incoming),
        verb => Err(Box::new(Status::method_not_supported(&GroupResource::new("", PLURAL), verb))),
    }
}

fn component(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ComponentStatus", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    })
}

const ALLOWED: Allowed = Allowed { protobuf: true, transforms: true, watch: false, watchable: false };

/// A table of these components.
fn table_of(incoming: &Incoming<'_>, items: &[Value], version: &str) -> Result<Value> {
    let include = crate::resources::include_object(incoming)?;
    let now = incoming.state.env.clock.now();
    let rows = items.iter().map(|item| table::row("", PLURAL, item, include, version, now)).collect();
    Ok(table::table("", "v1", PLURAL, rows, json!({}), true, version))
}

fn all(incoming: &Incoming<'_>) -> Result<Reply> {
    let output = output(incoming.accept(), ALLOWED)?;
    let options = options::list_options(incoming.query, false)?;
    let is_selected = |item: &Value| {
        let name = item["metadata"]["name"].str_or_empty();
        let field = |field: &str| if field == "metadata.name" { name.to_owned().into() } else { "".into() };
        options.labels.matches(&Value::Null) && options.fields.matches(field)
    };
    let items: Vec<Value> = COMPONENTS.iter().map(|name| component(name)).filter(is_selected).collect();
    let body = match output.form {
        Form::Table(version) => table_of(incoming, &items, version.name())?,
        Form::Partial(version) | Form::PartialList(version) => {
            table::partial_object_metadata_list(&items, json!({}), version.name())
        }
        Form::Object => {
            let plain = |mut item: Value| {
                item.remove("apiVersion");
                item.remove("kind");
                item
            };
            let items: Value = items.into_iter().map(plain).collect();
            json!({"apiVersion": "v1", "kind": "ComponentStatusList", "metadata": {}, "items": items})
        }
    };
    let plain = Output { form: Form::Object, ..output };
    let bytes = crate::encode::value(&body, &plain)?;
    Ok(crate::compress::list_reply(incoming.parts, plain.content_type(), ListBody::Whole(bytes)))
}

fn one(incoming: &Incoming<'_>) -> Result<Reply> {
    let output = output(incoming.accept(), ALLOWED)?;
    let name = incoming.info.path_name();
    if !COMPONENTS.contains(&name) {
        // upstream calls the resource so here
        return Err(Box::new(Status::not_found(&GroupResource::new("", "componentstatus"), name)));
    }
    let found = component(name);
    let body = match output.form {
        Form::Table(version) => table_of(incoming, &[found], version.name())?,
        Form::Partial(version) | Form::PartialList(version) => table::partial_object_metadata(&found, version.name()),
        Form::Object => found,
    };
    let plain = Output { form: Form::Object, ..output };
    Ok(reply::bytes(200, plain.content_type(), crate::encode::value(&body, &plain)?))
}
