use super::*;
use crate::StaticLookup;
use crate::token::{Compact, SigningKey};
use expect_test::{Expect, expect};

fn requests() -> TokenRequests {
    let lookup = StaticLookup::default();
    lookup.put("", "serviceaccounts", json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u1"}}));
    let pod = |name: &str, account: &str| json!({"metadata": {"namespace": "ns", "name": name, "uid": "u2"}, "spec": {"serviceAccountName": account, "nodeName": "n"}});
    lookup.put("", "pods", pod("p", "robot"));
    lookup.put("", "pods", pod("q", "other"));
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    TokenRequests {
        issuer: Issuer { url: Str::new("https://x"), key: Arc::new(SigningKey::from_pem(key.as_bytes()).unwrap()) },
        api_audiences: vec![Str::new("https://api")],
        max_expiration_seconds: 86_400,
        extends_expiration: true,
        lookup: Arc::new(lookup),
        env: Env::seeded(1),
    }
}

async fn check(object: Value, account: &str, expect: Expect) {
    let requests = requests();
    let answer = async {
        let request = requests.validate(object, "ns", account).await?;
        requests.answer(request).await
    };
    let text = match answer.await {
        Err(status) => format!("{} {}", status.code, status.message),
        Ok(mut response) => {
            let token = response.object["status"].remove("token");
            let parsed = Compact::parse(token.str_or_empty()).unwrap();
            parsed.verify(std::slice::from_ref(&requests.issuer.key.public)).unwrap();
            let mut claims = parsed.claims;
            claims.remove("jti");
            format!("{}\n{claims}\n{:?}", response.object, response.warnings)
        }
    };
    expect.assert_eq(&text);
}

#[tokio::test]
async fn tokens_that_are_given() {
    check(json!({"spec": {}}), "robot", expect![[r#"
        {"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"robot","namespace":"ns","uid":"u1"},"spec":{"audiences":["https://api"],"expirationSeconds":3600},"status":{"expirationTimestamp":"2026-01-01T01:00:00Z"}}
        {"aud":["https://api"],"exp":1767229200,"iat":1767225600,"iss":"https://x","kubernetes.io":{"namespace":"ns","serviceaccount":{"name":"robot","uid":"u1"}},"nbf":1767225600,"sub":"system:serviceaccount:ns:robot"}
        []"#]]).await;
    let bound = json!({"spec": {"expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}});
    check(bound, "robot", expect![[r#"
        {"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"robot","namespace":"ns","uid":"u1"},"spec":{"audiences":["https://api"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"},"expirationSeconds":3607},"status":{"expirationTimestamp":"2026-01-01T01:00:07Z"}}
        {"aud":["https://api"],"exp":1798761600,"iat":1767225600,"iss":"https://x","kubernetes.io":{"namespace":"ns","node":{"name":"n"},"pod":{"name":"p","uid":"u2"},"serviceaccount":{"name":"robot","uid":"u1"},"warnafter":1767229207},"nbf":1767225600,"sub":"system:serviceaccount:ns:robot"}
        []"#]]).await;
    check(json!({"spec": {"expirationSeconds": 100_000, "audiences": ["a"]}}), "robot", expect![[r#"
        {"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"robot","namespace":"ns","uid":"u1"},"spec":{"audiences":["a"],"expirationSeconds":86400},"status":{"expirationTimestamp":"2026-01-02T00:00:00Z"}}
        {"aud":["a"],"exp":1767312000,"iat":1767225600,"iss":"https://x","kubernetes.io":{"namespace":"ns","serviceaccount":{"name":"robot","uid":"u1"}},"nbf":1767225600,"sub":"system:serviceaccount:ns:robot"}
        ["requested expiration of 100000 seconds shortened to 86400 seconds"]"#]]).await;
}

#[tokio::test]
async fn tokens_that_are_refused() {
    let bound = |reference: Value| json!({"spec": {"boundObjectRef": reference}});
    check(json!({"spec": {}}), "none", expect![[r#"404 serviceaccounts "none" not found"#]]).await;
    check(json!({"spec": {"expirationSeconds": 599}}), "robot", expect![[r#"422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#]]).await;
    check(json!({"spec": {"expirationSeconds": 4_294_967_297i64}}), "robot", expect![[r#"422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"#]]).await;
    check(json!({"spec": {}, "metadata": {"name": "other"}}), "robot", expect![[r#"422 TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified"#]]).await;
    check(json!({"spec": {}, "metadata": {"uid": "u9"}}), "robot", expect![[r#"409 Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (u9) does not match the UID of the service account (u1)"#]]).await;
    check(
        bound(json!({"kind": "Pod", "apiVersion": "v1", "name": "none"})),
        "robot",
        expect![[r#"404 pods "none" not found"#]],
    )
    .await;
    check(
        bound(json!({"kind": "Pod", "apiVersion": "v1", "name": "q"})),
        "robot",
        expect![[
            r#"400 cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name."#
        ]],
    )
    .await;
    check(bound(json!({"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "wrong"})), "robot", expect![[r#"409 Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (wrong) does not match the UID in record. The object might have been deleted and then recreated"#]]).await;
    check(
        bound(json!({"kind": "ConfigMap", "apiVersion": "v1", "name": "s"})),
        "robot",
        expect!["400 cannot bind token to object of type /v1, Kind=ConfigMap"],
    )
    .await;
}
