//! `ServiceAccount`: every pod runs as a service account, whose token is mounted into its containers.
//!
//! Follows: plugin/pkg/admission/serviceaccount (v1.35).

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use crate::pod::{CONTAINER_FIELDS, MIRROR_ANNOTATION};
use async_trait::async_trait;
use pintle_apimachinery::env::Env;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{GroupResource, Status, Str, Value, json};
use pintle_auth::Lookup;
use pintle_auth::pod_refs::secret_names;
use pintle_auth::token::WARN_ONLY_EXPIRATION_SECONDS;
use std::sync::Arc;
use std::time::Duration;

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// The annotation by which an account lets its pods use its own secrets alone.
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
/// What the name of the token's volume begins with.
const VOLUME_PREFIX: &str = "kube-api-access-";
/// Where the token is mounted.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How often the default account is looked for: a controller makes it soon after the namespace. Then the pod is refused.
pub const DEFAULT_ACCOUNT_TRIES_MAX: usize = 10;
/// How long to wait between two of these tries.
const DEFAULT_ACCOUNT_INTERVAL: Duration = Duration::from_millis(100);

/// The plugin.
#[derive(Debug)]
pub struct ServiceAccount {
    /// Where service accounts are.
    pub lookup: Arc<dyn Lookup>,
    /// For the names of volumes.
    pub env: Env,
}

fn is_mirror(pod: &Value) -> bool {
    pod.annotation(MIRROR_ANNOTATION).is_some()
}

#[async_trait]
impl Plugin for ServiceAccount {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.is_about("", "pods")
            && match attributes.operation {
                Operation::Create => attributes.subresource.is_empty(),
                Operation::Update => attributes.subresource == "ephemeralcontainers",
                Operation::Delete | Operation::Connect => false,
            }
    }

    async fn mutate(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<()> {
        if attributes.operation != Operation::Create {
            return Ok(());
        }
        if is_mirror(pod) {
            return self.validate(attributes, Some(pod)).await;
        }
        if pod["spec"]["serviceAccountName"].is_empty() {
            pod["spec"].set("serviceAccountName", DEFAULT_ACCOUNT);
            pod["spec"].set("serviceAccount", DEFAULT_ACCOUNT);
        }
        let account = self.account(attributes, pod).await?;
        let pods_wish = pod["spec"]["automountServiceAccountToken"].as_bool();
        if pods_wish.or_else(|| account["automountServiceAccountToken"].as_bool()).unwrap_or(true) {
            self.mount_token(pod);
        }
        if pod["spec"]["imagePullSecrets"].is_empty() && !account["imagePullSecrets"].is_empty() {
            let names =
                account["imagePullSecrets"].items().iter().map(|secret| json!({"name": secret["name"].clone()}));
            pod["spec"].set("imagePullSecrets", names.collect::<Value>());
        }
        self.validate(attributes, Some(pod)).await
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(pod) = object else { return Ok(()) };
        let is_create = attributes.operation == Operation::Create;
        if is_create && is_mirror(pod) {
            return match mirror_fault(&pod["spec"]) {
                Some(why) => Err(forbidden(attributes, object, why)),
                None => Ok(()),
            };
        }
        if pod["spec"]["serviceAccountName"].is_empty() {
            let why = format!("no service account specified for pod {}/{}", attributes.namespace, pod.name());
            return Err(forbidden(attributes, object, why));
        }
        let account = self.account(attributes, pod).await?;
        let is_strict = matches!(account.annotation(ENFORCE_SECRETS), Some("1" | "t" | "T" | "TRUE" | "true" | "True"));
        if !is_strict {
            return Ok(());
        }
        match secret_fault(&account, &pod["spec"], is_create) {
            None => Ok(()),
            Some(why) if is_create => Err(forbidden(attributes, object, why)),
            Some(why) => Err(Box::new(Status::plain_error(why))),
        }
    }
}

impl ServiceAccount {
    /// The account that the pod runs as.
    async fn account(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<Arc<Value>> {
        let (namespace, name) = (attributes.namespace, pod["spec"]["serviceAccountName"].str_or_empty());
        if let Some(account) = self.lookup.get("", "serviceaccounts", namespace, name).await {
            return Ok(account);
        }
        let tries_max = if name == DEFAULT_ACCOUNT { DEFAULT_ACCOUNT_TRIES_MAX } else { 1 };
        for n_tries in 1..=tries_max {
            if let Some(account) = self.lookup.get_live("", "serviceaccounts", namespace, name).await? {
                return Ok(account);
            }
            if n_tries < tries_max {
                tokio::time::sleep(DEFAULT_ACCOUNT_INTERVAL).await;
            }
        }
        let missing = Status::not_found(&GroupResource::new("", "serviceaccount"), name).message;
        let why = format!("error looking up service account {namespace}/{name}: {missing}");
        Err(forbidden(attributes, Some(pod), why))
    }

    /// Mounts the token into every container that has nothing there yet.
    fn mount_token(&self, pod: &mut Value) {
        let volumes = pod["spec"]["volumes"].items().iter().map(|volume| volume["name"].str_or_empty());
        let existing = volumes.into_iter().find(|name| name.starts_with(VOLUME_PREFIX)).map(Str::new);
        let name = match &existing {
            Some(name) => name.clone(),
            None => compact_str::format_compact!("{VOLUME_PREFIX}{}", self.env.ids.name_suffix(5)),
        };
        let mut is_mounted = false;
        for field in ["initContainers", "containers"] {
            for container in pod["spec"].get_mut(field).map(Value::items_mut).unwrap_or_default() {
                let mounts = container["volumeMounts"].items();
                if mounts.iter().any(|mount| mount["mountPath"].as_str() == Some(MOUNT_PATH)) {
                    continue;
                }
                let mount = json!({"name": name.clone(), "readOnly": true, "mountPath": MOUNT_PATH});
                container["volumeMounts"].make_array().push(mount);
                is_mounted = true;
            }
        }
        if existing.is_none() && is_mounted {
            pod["spec"]["volumes"].make_array().push(token_volume(&name));
        }
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": WARN_ONLY_EXPIRATION_SECONDS}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]}},
            ],
        },
    })
}

/// What a pod that a node runs by itself may not have.
fn mirror_fault(spec: &Value) -> Option<&'static str> {
    if !spec["serviceAccountName"].is_empty() {
        return Some("a mirror pod may not reference service accounts");
    }
    if !secret_names(spec).is_empty() {
        return Some("a mirror pod may not reference secrets");
    }
    let mut sources = spec["volumes"].items().iter().flat_map(|volume| volume["projected"]["sources"].items());
    sources
        .any(|source| !source["serviceAccountToken"].is_null())
        .then_some("a mirror pod may not use ServiceAccountToken volume projections")
}

/// The first secret that the pod refers to and its account does not. Of a pod that runs already only the ephemeral
/// containers are looked at.
fn secret_fault(account: &Value, spec: &Value, is_create: bool) -> Option<String> {
    let names = |field: &str| -> Vec<&str> {
        account[field].items().iter().map(|reference| reference["name"].str_or_empty()).collect()
    };
    let (mountable, pullable) = (names("secrets"), names("imagePullSecrets"));
    let tail = format!("is not allowed because service account {} does not reference that secret", account.name());
    if is_create {
        let volumes = spec["volumes"].items().iter().filter_map(|volume| volume["secret"]["secretName"].as_str());
        if let Some(secret) = volumes.into_iter().find(|secret| !mountable.contains(secret)) {
            return Some(format!("volume with secret.secretName=\"{secret}\" {tail}"));
        }
    }
    for (field, what) in CONTAINER_FIELDS.iter().filter(|(field, _)| is_create != (*field == "ephemeralContainers")) {
        for container in spec[*field].items() {
            let name = container["name"].str_or_empty();
            for env in container["env"].items() {
                let secret = env["valueFrom"]["secretKeyRef"]["name"].as_str();
                if let Some(secret) = secret.filter(|secret| !mountable.contains(secret)) {
                    let env = env["name"].str_or_empty();
                    return Some(format!(
                        "{what} {name} with envVar {env} referencing secret.secretName=\"{secret}\" {tail}"
                    ));
                }
            }
            let mut sources = container["envFrom"].items().iter().filter_map(|from| from["secretRef"]["name"].as_str());
            if let Some(secret) = sources.find(|secret| !mountable.contains(secret)) {
                return Some(format!("{what} {name} with envFrom referencing secret.secretName=\"{secret}\" {tail}"));
            }
        }
    }
    if !is_create {
        return None;
    }
    let pull = spec["imagePullSecrets"].items().iter().map(|secret| secret["name"].str_or_empty());
    let (idx, secret) = pull.enumerate().find(|(_, secret)| !pullable.contains(secret))?;
    Some(format!(
        "imagePullSecrets[{idx}].name=\"{secret}\" is not allowed because service account {} does not reference that \
         imagePullSecret",
        account.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;

    fn script() -> Script {
        let script = Script::new(|lookup| Arc::new(ServiceAccount { lookup, env: Env::seeded(1) }));
        let account = |name: &str, more: Value| {
            let mut account = more;
            account.set(
                "metadata",
                json!({"namespace": "ns", "name": name, "annotations": account["annotations"].clone()}),
            );
            script.put("serviceaccounts", account);
        };
        account("default", json!({"imagePullSecrets": [{"name": "reg"}]}));
        account("off", json!({"automountServiceAccountToken": false}));
        account(
            "strict",
            json!({"annotations": {(ENFORCE_SECRETS): "true"}, "secrets": [{"name": "yes"}], "imagePullSecrets": [{"name": "pull"}]}),
        );
        script
    }

    fn pod(spec: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[tokio::test]
    async fn the_token_is_mounted() {
        let own = json!([{"name": "own", "mountPath": MOUNT_PATH}]);
        let spec = json!({"containers": [{"name": "a"}, {"name": "b", "volumeMounts": own}]});
        let admitted = script().create("pods ns", pod(spec)).await.ok();
        let volume = admitted["spec"]["volumes"].items()[0]["name"].str_or_empty();
        assert_eq!(volume.len(), VOLUME_PREFIX.len() + 5);
        let shown = admitted.to_json_string().replace(volume, "TOKEN");
        expect![[r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"TOKEN","readOnly":true}]},{"name":"b","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"own"}]}],"imagePullSecrets":[{"name":"reg"}],"serviceAccount":"default","serviceAccountName":"default","volumes":[{"name":"TOKEN","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]}}"#]]
            .assert_eq(&shown);
    }

    #[tokio::test]
    async fn or_not() {
        let script = script();
        let spec = |account: &str, wish: Value| json!({"containers": [{"name": "a"}], "serviceAccountName": account, "automountServiceAccountToken": wish});
        script.create("pods ns", pod(spec("off", Value::Null))).await.shows("spec.volumes", expect!["null"]);
        script.create("pods ns", pod(spec("default", json!(false)))).await.shows("spec.volumes", expect!["null"]);
        assert_eq!(
            script.create("pods ns", pod(spec("off", json!(true)))).await.ok()["spec"]["volumes"].items().len(),
            1
        );
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_that_are_not_there() {
        let script = script();
        script.create("pods ns", pod(json!({"serviceAccountName": "none"}))).await.refused(expect![[
            r#"403 pods "p" is forbidden: error looking up service account ns/none: serviceaccount "none" not found"#
        ]]);
        script.create("pods other", pod(json!({}))).await.refused(expect![[r#"403 pods "p" is forbidden: error looking up service account other/default: serviceaccount "default" not found"#]]);
    }

    #[tokio::test]
    async fn strict_accounts() {
        let script = script();
        let strict = |field: &str, value: Value| {
            let mut spec = json!({"serviceAccountName": "strict", "imagePullSecrets": [{"name": "pull"}]});
            spec.set(field, value);
            pod(spec)
        };
        script.create("pods ns", strict("volumes", json!([{"secret": {"secretName": "yes"}}]))).await.ok();
        script.create("pods ns", strict("volumes", json!([{"secret": {"secretName": "no"}}]))).await.refused(expect![[r#"403 pods "p" is forbidden: volume with secret.secretName="no" is not allowed because service account strict does not reference that secret"#]]);
        let env = json!([{"name": "c", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "no"}}}]}]);
        script.create("pods ns", strict("containers", env.clone())).await.refused(expect![[r#"403 pods "p" is forbidden: container c with envVar E referencing secret.secretName="no" is not allowed because service account strict does not reference that secret"#]]);
        script.create("pods ns", strict("imagePullSecrets", json!([{"name": "other"}]))).await.refused(expect![[r#"403 pods "p" is forbidden: imagePullSecrets[0].name="other" is not allowed because service account strict does not reference that imagePullSecret"#]]);
        let running = strict("ephemeralContainers", env);
        script.update("pods/ephemeralcontainers ns", running.clone(), running).await.refused(expect![[r#"500 ephemeral container c with envVar E referencing secret.secretName="no" is not allowed because service account strict does not reference that secret"#]]);
    }

    #[tokio::test]
    async fn mirror_pods() {
        let script = script();
        let mirror =
            |spec: Value| json!({"metadata": {"name": "m", "annotations": {(MIRROR_ANNOTATION): "x"}}, "spec": spec});
        script.create("pods ns", mirror(json!({}))).await.shows("spec", expect!["{}"]);
        script
            .create("pods ns", mirror(json!({"serviceAccountName": "default"})))
            .await
            .refused(expect![[r#"403 pods "m" is forbidden: a mirror pod may not reference service accounts"#]]);
        script
            .create("pods ns", mirror(json!({"imagePullSecrets": [{"name": "x"}]})))
            .await
            .refused(expect![[r#"403 pods "m" is forbidden: a mirror pod may not reference secrets"#]]);
        let token = json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]});
        script.create("pods ns", mirror(token)).await.refused(expect![[
            r#"403 pods "m" is forbidden: a mirror pod may not use ServiceAccountToken volume projections"#
        ]]);
    }
}
