//! The condition `Dangling` of FlowSchemas: whether the priority level that one names exists. The server itself keeps it.
//!
//! Follows: apiserver/pkg/util/flowcontrol/apf_controller.go (v0.35), the part that writes statuses.

use crate::admit::AdmitAll;
use crate::call::{Call, MayAlwaysCreate, World};
use crate::catalog::Catalog;
use crate::feed::{Sink, feed};
use crate::options::{Caller, Warnings, WriteOptions};
use crate::ownership::SERVER;
use crate::patch::{Patch, PatchType};
use crate::resource::Resource;
use bytes::Bytes;
use parking_lot::Mutex;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::time::time_value;
use pintle_apimachinery::{Str, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";

/// The manager of the condition's fields.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// What is known of the objects that matter here.
#[derive(Debug, Default)]
struct Known {
    /// Schemas by name.
    schemas: BTreeMap<Str, Value>,
    /// Names of priority levels.
    levels: BTreeSet<Str>,
}

#[derive(Debug, Default)]
struct State {
    known: Mutex<Known>,
    changed: Notify,
}

impl Sink for State {
    fn replace(&self, resource: &str, objects: &[Value]) {
        let mut known = self.known.lock();
        if resource == LEVELS {
            known.levels = objects.iter().map(|level| Str::new(level.name())).collect();
        } else {
            known.schemas = objects.iter().map(|schema| (Str::new(schema.name()), schema.clone())).collect();
        }
        drop(known);
        self.changed.notify_one();
    }

    fn change(&self, resource: &str, (_, name): (&str, &str), object: Option<&Value>, _previous: Option<&Value>) {
        let mut known = self.known.lock();
        match (resource == LEVELS, object) {
            (true, Some(_)) => drop(known.levels.insert(Str::new(name))),
            (true, None) => drop(known.levels.remove(name)),
            (false, Some(schema)) => drop(known.schemas.insert(Str::new(name), schema.clone())),
            (false, None) => drop(known.schemas.remove(name)),
        }
        drop(known);
        self.changed.notify_one();
    }
}

/// Keeps the conditions of all FlowSchemas up to date, for ever.
pub async fn keep(catalog: Arc<Catalog>, env: Env) {
    let Some(resource) = catalog.served().get(GROUP, "v1", SCHEMAS).cloned() else { return };
    let state = Arc::new(State::default());
    feed(&catalog, &[(GROUP, LEVELS), (GROUP, SCHEMAS)], state.clone()).await;
    let world = World { env, admission: Arc::new(AdmitAll) };
    loop {
        state.changed.notified().await;
        let due = due(&state.known.lock());
        for (name, condition) in due {
            if let Err(why) = apply(&resource, &world, &name, condition).await {
                // its next change tries again
                tracing::debug!(flow_schema = %name, %why, "the condition Dangling was not written");
            }
        }
    }
}

/// The schemas whose condition is not as it should be, with the condition (without its time).
fn due(known: &Known) -> Vec<(Str, Value)> {
    let mut due = Vec::new();
    for (name, schema) in &known.schemas {
        let level = schema.at("spec.priorityLevelConfiguration.name").str_or_empty();
        let which =
            format!("This FlowSchema references the PriorityLevelConfiguration object named {}", go_quote(level));
        let wanted = if known.levels.contains(level) {
            json!({"type": "Dangling", "status": "False", "reason": "Found", "message": format!("{which} and it exists")})
        } else {
            let message = format!("{which} but there is no such object");
            json!({"type": "Dangling", "status": "True", "reason": "NotFound", "message": message})
        };
        let conditions = schema.at("status.conditions").items();
        let present = conditions.iter().find(|condition| condition["type"].as_str() == Some("Dangling"));
        let is_same = |present: &Value| ["status", "reason", "message"].iter().all(|m| present[*m] == wanted[*m]);
        if !present.is_some_and(is_same) {
            due.push((name.clone(), wanted));
        }
    }
    due
}

async fn apply(resource: &Resource, world: &World, name: &str, mut condition: Value) -> Result<()> {
    let now = world.env.clock.now();
    condition.set("lastTransitionTime", time_value(now));
    let body = json!({
        "apiVersion": resource.kind.api_version(), "kind": resource.kind.kind.clone(), "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let options = WriteOptions { field_manager: Str::const_new(MANAGER), force: true, ..WriteOptions::default() };
    let caller = Caller { user: pintle_auth::user::apiserver(), default_manager: Str::const_new(SERVER) };
    let call = Call {
        world,
        caller: &caller,
        namespace: "",
        name,
        subresource: "status",
        now,
        warnings: &Mutex::new(Warnings::default()),
        may_create: &MayAlwaysCreate,
    };
    let patch = Patch::new(PatchType::Apply, Bytes::from(body.to_json()), &options)?;
    resource.patch(&call, &patch, &options).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn conditions_follow_the_levels() {
        let state = State::default();
        let schema = |name: &str, level: &str| json!({"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": level}}});
        state.replace(SCHEMAS, &[schema("a", "x"), schema("b", "y")]);
        state.change(LEVELS, ("", "x"), Some(&Value::object()), None);
        let told = |state: &State| {
            let due = due(&state.known.lock());
            due.iter().map(|(name, c)| format!("{name}: {} {}\n", c["reason"], c["message"])).collect::<String>()
        };
        expect![[r#"
            a: "Found" "This FlowSchema references the PriorityLevelConfiguration object named \"x\" and it exists"
            b: "NotFound" "This FlowSchema references the PriorityLevelConfiguration object named \"y\" but there is no such object"
        "#]].assert_eq(&told(&state));
        let mut found = schema("a", "x");
        *found.make("status.conditions") = Value::from(vec![due(&state.known.lock())[0].1.clone()]);
        state.change(SCHEMAS, ("", "a"), Some(&found), None);
        expect![[r#"
            b: "NotFound" "This FlowSchema references the PriorityLevelConfiguration object named \"y\" but there is no such object"
        "#]].assert_eq(&told(&state));
        state.change(LEVELS, ("", "x"), None, None);
        state.change(SCHEMAS, ("", "b"), None, None);
        expect![[r#"
            a: "NotFound" "This FlowSchema references the PriorityLevelConfiguration object named \"x\" but there is no such object"
        "#]].assert_eq(&told(&state));
    }
}
