//! Conversion of custom resources between versions, webhooks included.

use pintle_admission::webhook::Caller;
use pintle_apiextensions::conversion::{Conversion, Webhook, convert_plainly};
use pintle_apimachinery::env::Env;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{GroupVersion, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long a webhook may take to convert an object; then the request that needs it fails.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// Converts objects as their definitions say.
#[derive(Debug)]
pub struct Converter {
    caller: Arc<dyn Caller>,
    env: Env,
}

impl Converter {
    /// Calls webhooks through `caller`.
    pub fn new(caller: Arc<dyn Caller>, env: Env) -> Converter {
        Converter { caller, env }
    }

    /// The object in another version.
    ///
    /// # Errors
    /// Upstream's text.
    pub(crate) async fn convert(
        &self,
        conversion: &Conversion,
        object: &Value,
        to: &GroupVersion,
    ) -> Result<Value, String> {
        match conversion {
            Conversion::Webhook(webhook) if !is_bare(object) => self.ask(webhook, object, to).await,
            Conversion::Webhook(_) | Conversion::None => {
                let mut object = object.clone();
                convert_plainly(&mut object, to);
                Ok(object)
            }
        }
    }

    async fn ask(&self, webhook: &Webhook, object: &Value, to: &GroupVersion) -> Result<Value, String> {
        if object.api_version() == to.to_string() {
            return Ok(object.clone());
        }
        let uid = self.env.ids.uid();
        let review = webhook.review(std::slice::from_ref(object), to, uid)?;
        let answer = self.caller.call(&webhook.client_config, review.body.clone(), None);
        let failed = |why: &dyn std::fmt::Display| {
            let kind = object.gvk().unwrap_or_default();
            format!("conversion webhook for {kind} failed: {why}")
        };
        let answer = match tokio::time::timeout(WEBHOOK_TIMEOUT, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(pintle_admission::webhook::CallError::Failed(why))) => return Err(failed(&why)),
            Ok(Err(why)) => return Err(failed(&why)),
            Err(_) => return Err(failed(&"context deadline exceeded")),
        };
        review.converted(object, &answer)
    }
}

/// Whether the object says no more than what it is: no webhook is asked about that.
fn is_bare(object: &Value) -> bool {
    object.entries().all(|(name, _)| matches!(name.as_str(), "apiVersion" | "kind"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use expect_test::expect;
    use pintle_admission::webhook::CallError;
    use pintle_apimachinery::{Str, json};

    /// Moves `size` to `spec.size`, or fails.
    #[derive(Debug)]
    struct Moves;

    #[async_trait]
    impl Caller for Moves {
        async fn call(&self, config: &Value, body: Value, timeout: Option<Duration>) -> Result<Value, CallError> {
            assert_eq!(timeout, None);
            if config["url"].is_null() {
                return Err(CallError::Failed("Post \"https://x\": EOF".to_owned()));
            }
            let mut object = body["request"]["objects"].items()[0].clone();
            let size = object.remove("size");
            *object.make("spec.size") = size;
            object.set("apiVersion", body["request"]["desiredAPIVersion"].clone());
            Ok(json!({
                "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
                "response": {
                    "uid": body["request"]["uid"].clone(), "convertedObjects": [object], "result": {"status": "Success"},
                },
            }))
        }
    }

    #[tokio::test]
    async fn webhooks_are_asked() {
        let converter = Converter::new(Arc::new(Moves), Env::seeded(1));
        let webhook = |url: Value| {
            let config = json!({"url": url});
            Conversion::Webhook(Webhook { client_config: config, review_versions: vec![Str::const_new("v1")] })
        };
        let object = json!({"apiVersion": "g/v1", "kind": "W", "metadata": {"name": "a"}, "size": 3});
        let bare = json!({"apiVersion": "g/v1", "kind": "W"});
        let to = GroupVersion::new("g", "v2");
        let mut told = String::new();
        for (conversion, object) in [
            (Conversion::None, &object),
            (webhook(json!("https://x")), &object),
            (webhook(Value::NULL), &object),
            (webhook(Value::NULL), &bare),
        ] {
            told += &match converter.convert(&conversion, object, &to).await {
                Ok(object) => object.to_json_string(),
                Err(why) => why,
            };
            told.push('\n');
        }
        expect![[r#"
            {"apiVersion":"g/v2","kind":"W","metadata":{"name":"a"},"size":3}
            {"apiVersion":"g/v2","kind":"W","metadata":{"name":"a"},"spec":{"size":3}}
            conversion webhook for g/v1, Kind=W failed: Post "https://x": EOF
            {"apiVersion":"g/v2","kind":"W"}
        "#]]
        .assert_eq(&told);
    }
}
