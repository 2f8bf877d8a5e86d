use super::*;
use crate::pki::{Authority, Subject};
use crate::token::{BoundTo, Claims, Issuer, SigningKey};
use crate::{Lookup, StaticLookup};
use expect_test::{Expect, expect};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use pintle_apimachinery::env::ManualClock;
use pintle_apimachinery::{Value, json};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

struct World {
    env: Env,
    clock: Arc<ManualClock>,
    ca: Authority,
    lookup: Arc<StaticLookup>,
    issuer: Issuer,
    authenticator: Authenticator,
}

fn authority(name: &str, env: &Env) -> Authority {
    Authority::generate(name, env.clock.now(), env).unwrap()
}

fn world() -> World {
    let clock = Arc::new(ManualClock::default());
    let env = Env { clock: clock.clone(), ..Env::seeded(1) };
    let (ca, proxy_ca) = (authority("ca", &env), authority("proxy", &env));
    let lookup = Arc::new(StaticLookup::default());
    let key = Arc::new(SigningKey::from_pem(rcgen::KeyPair::generate().unwrap().serialize_pem().as_bytes()).unwrap());
    let api_audiences = vec![Str::new("https://api")];
    let issuer = Issuer { url: Str::new("https://api"), key };
    let service_accounts = ServiceAccountTokens {
        issuers: vec![issuer.url.clone()],
        keys: vec![issuer.key.public.clone()],
        api_audiences: api_audiences.clone(),
        lookup: lookup.clone(),
        env: env.clone(),
    };
    let file = TokenFile::parse("alice-token,alice,2,dev\n", "f").unwrap();
    let bootstrap = BootstrapTokens { lookup: lookup.clone(), env: env.clone() };
    let config = Config {
        loopback_token: Some("loop".to_owned()),
        front_proxy: Some(FrontProxy::with_usual_headers(
            ClientCa::from_pem(proxy_ca.certificate.as_bytes()).unwrap(),
            vec!["proxy".to_owned()],
        )),
        client_ca: Some(ClientCa::from_pem(ca.certificate.as_bytes()).unwrap()),
        tokens: vec![
            Arc::new(AudienceAgnostic { tokens: file, api_audiences: api_audiences.clone() }),
            Arc::new(service_accounts),
            Arc::new(AudienceAgnostic { tokens: bootstrap, api_audiences: api_audiences.clone() }),
        ],
        is_anonymous_allowed: true,
        api_audiences,
    };
    lookup.put("", "serviceaccounts", json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u1"}}));
    lookup.put("", "pods", json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u2"}}));
    World { authenticator: Authenticator::new(config, env.clone()), env, clock, ca, lookup, issuer }
}

impl World {
    fn certificate(&self, ca: &Authority, common_name: &str, organizations: &[&str]) -> PeerCertificate {
        let subject = Subject { common_name, organizations, serving: None };
        let pair = ca.issue(&subject, self.env.clock.now(), &self.env).unwrap();
        PeerCertificate::new(&[CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()]).unwrap()
    }

    fn token(&self, audiences: &[&str], bound_to: BoundTo<'_>) -> String {
        let account = json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u1"}});
        let audiences: Vec<Str> = audiences.iter().map(Str::new).collect();
        let claims = Claims {
            account: &account,
            bound_to,
            audiences: &audiences,
            expiration_seconds: 600,
            warn_after_seconds: 0,
            id: Str::new("j"),
            now: self.env.clock.now(),
        };
        self.issuer.issue(&claims).unwrap()
    }

    async fn show(
        &self,
        headers: &[(&'static str, &str)],
        peer: Option<&PeerCertificate>,
        audiences: &[&str],
    ) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let request = RequestParts { headers: &map, peer };
        let audiences: Vec<Str> = audiences.iter().map(Str::new).collect();
        match self.authenticator.authenticate_for(&request, &audiences).await {
            Ok(None) => "nobody".to_owned(),
            Ok(Some(found)) => format!("{} {:?}", user::to_value(&found.user).to_json_string(), found.audiences),
            Err(error) => format!("error: {error}"),
        }
    }

    async fn check_token(&self, token: &str, audiences: &[&str], expect: Expect) {
        let header = format!("Bearer {token}");
        expect.assert_eq(&self.show(&[(AUTHORIZATION.as_str(), &header)], None, audiences).await);
    }
}

#[tokio::test]
async fn certificates() {
    let world = world();
    let api = ["https://api"];
    let jane = world.certificate(&world.ca, "jane", &["dev"]);
    let text = world.show(&[], Some(&jane), &api).await;
    let (head, tail) = text.split_at(text.find("X509SHA256=").unwrap());
    expect![[r#"{"extra":{"authentication.kubernetes.io/credential-id":[""#]].assert_eq(head);
    expect![[r#""]},"groups":["dev","system:authenticated"],"username":"jane"} []"#]]
        .assert_eq(&tail["X509SHA256=".len() + 64..]);
    // again, from what the connection remembers
    assert_eq!(world.show(&[], Some(&jane), &api).await, text);
    let other = authority("other", &world.env);
    let forged = world.certificate(&other, "jane", &[]);
    let text = world.show(&[], Some(&forged), &api).await;
    assert!(text.starts_with("error: verifying certificate SN=") && text.contains("UnknownIssuer"), "{text}");
    expect![[r#"{"groups":["system:unauthenticated"],"username":"system:anonymous"} ["https://api"]"#]]
        .assert_eq(&world.show(&[], None, &api).await);
    world.clock.advance(400 * 86_400);
    let text = world.show(&[], Some(&jane), &api).await;
    assert!(text.contains("x509: certificate has expired or is not yet valid"), "{text}");
}

#[tokio::test]
async fn front_proxies() {
    let env = Env::seeded(2);
    let proxy_ca = authority("proxy", &env);
    let world = world();
    let proxy = FrontProxy::with_usual_headers(
        ClientCa::from_pem(proxy_ca.certificate.as_bytes()).unwrap(),
        vec!["proxy".to_owned()],
    );
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-remote-user", "jane"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b"),
        ("x-remote-extra-scopes%2fx", "1"),
        ("other", "x"),
    ] {
        headers.append(name, HeaderValue::from_static(value));
    }
    let show = |peer: &PeerCertificate| match proxy.authenticate(&headers, peer, env.clock.now()) {
        Ok(user) => user.map(|user| user::to_value(&user).to_json_string()).unwrap_or_default(),
        Err(error) => error,
    };
    expect![[r#"{"extra":{"scopes/x":["1"]},"groups":["a","b"],"username":"jane"}"#]]
        .assert_eq(&show(&world.certificate(&proxy_ca, "proxy", &[])));
    expect!["x509: subject with cn=else is not in the allowed list"].assert_eq(&show(&world.certificate(
        &proxy_ca,
        "else",
        &[],
    )));
    assert!(show(&world.certificate(&world.ca, "proxy", &[])).contains("UnknownIssuer"));
    proxy.clear_headers(&mut headers);
    assert_eq!(headers.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[tokio::test]
async fn tokens_of_the_file_and_rubbish() {
    let world = world();
    world
        .check_token(
            "alice-token",
            &["https://api"],
            expect![[r#"{"groups":["dev","system:authenticated"],"uid":"2","username":"alice"} ["https://api"]"#]],
        )
        .await;
    world
        .check_token(
            "loop",
            &["https://api"],
            expect![[
                r#"{"groups":["system:authenticated","system:masters"],"username":"system:apiserver"} ["https://api"]"#
            ]],
        )
        .await;
    world.check_token("alice-token", &["other"], expect!["error: invalid bearer token"]).await;
    world.check_token("rubbish", &["https://api"], expect!["error: invalid bearer token"]).await;
    world.check_token("a.b.c", &["https://api"], expect!["error: invalid bearer token"]).await;
}

#[tokio::test]
async fn tokens_of_service_accounts() {
    let world = world();
    let token = world.token(&["vault", "b"], BoundTo::Nothing);
    world.check_token(&token, &["vault", "x"], expect![[r#"{"extra":{"authentication.kubernetes.io/credential-id":["JTI=j"]},"groups":["system:serviceaccounts","system:serviceaccounts:ns","system:authenticated"],"uid":"u1","username":"system:serviceaccount:ns:robot"} ["vault"]"#]]).await;
    world.check_token(&token, &["x"], expect![[r#"error: [invalid bearer token, token audiences ["vault" "b"] is invalid for the target audiences ["x"]]"#]]).await;
    let mut forged = token.clone();
    forged.replace_range(forged.len() - 4.., "AAAA");
    world
        .check_token(
            &forged,
            &["vault"],
            expect!["error: [invalid bearer token, square/go-jose: error in cryptographic primitive]"],
        )
        .await;
    world.clock.advance(661);
    world
        .check_token(&token, &["vault"], expect!["error: [invalid bearer token, service account token has expired]"])
        .await;
}

#[tokio::test]
async fn tokens_die_with_what_they_are_bound_to() {
    let world = world();
    let get = async |resource: &str, name: &str| world.lookup.get("", resource, "ns", name).await.unwrap();
    let pod = get("pods", "p").await;
    let node = json!({"metadata": {"name": "n"}});
    let token = world.token(&["a"], BoundTo::Pod(&pod, Some(&node)));
    world.check_token(&token, &["a"], expect![[r#"{"extra":{"authentication.kubernetes.io/credential-id":["JTI=j"],"authentication.kubernetes.io/node-name":["n"],"authentication.kubernetes.io/pod-name":["p"],"authentication.kubernetes.io/pod-uid":["u2"]},"groups":["system:serviceaccounts","system:serviceaccounts:ns","system:authenticated"],"uid":"u1","username":"system:serviceaccount:ns:robot"} ["a"]"#]]).await;
    world.lookup.remove("", "pods", "ns", "p");
    // remembered for ten seconds
    assert!(world.show(&[("authorization", &format!("Bearer {token}"))], None, &["a"]).await.contains("robot"));
    world.clock.advance(TOKEN_CACHE_TTL_SECONDS);
    world
        .check_token(
            &token,
            &["a"],
            expect!["error: [invalid bearer token, service account token has been invalidated]"],
        )
        .await;
    world.lookup.put("", "pods", json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u3"}}));
    world
        .check_token(
            &token,
            &["a"],
            expect!["error: [invalid bearer token, pod UID (u3) does not match service account pod ref claim (u2)]"],
        )
        .await;
    world.lookup.put("", "serviceaccounts", json!({"metadata": {"namespace": "ns", "name": "robot", "uid": "u9"}}));
    world
        .check_token(
            &token,
            &["a"],
            expect!["error: [invalid bearer token, service account UID (u9) does not match claim (u1)]"],
        )
        .await;
    world.lookup.remove("", "serviceaccounts", "ns", "robot");
    world
        .check_token(&token, &["a"], expect![[r#"error: [invalid bearer token, serviceaccounts "robot" not found]"#]])
        .await;
}

#[tokio::test]
async fn bootstrap_tokens() {
    use base64::Engine as _;
    let world = world();
    let encode = |text: &str| Value::from(base64::engine::general_purpose::STANDARD.encode(text));
    let put = |change: &dyn Fn(&mut Value)| {
        let mut secret = json!({
            "metadata": {"namespace": "kube-system", "name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "data": {
                "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"),
                "usage-bootstrap-authentication": encode("true"),
                "auth-extra-groups": encode("system:bootstrappers:x"), "expiration": encode("2026-01-01T00:01:00Z"),
            },
        });
        change(&mut secret);
        world.lookup.put("", "secrets", secret);
        world.clock.advance(TOKEN_CACHE_TTL_SECONDS);
    };
    let token = "abcdef.0123456789abcdef";
    let bad = || expect!["error: invalid bearer token"];
    put(&|_| {});
    world.check_token(token, &["https://api"], expect![[r#"{"groups":["system:bootstrappers","system:bootstrappers:x","system:authenticated"],"username":"system:bootstrap:abcdef"} ["https://api"]"#]]).await;
    world.check_token("abcdef.0123456789abcdeg", &["https://api"], bad()).await;
    put(&|secret| secret.set("type", "Opaque"));
    world.check_token(token, &["https://api"], bad()).await;
    put(&|secret| secret["data"].set("auth-extra-groups", encode("system:masters")));
    world.check_token(token, &["https://api"], bad()).await;
    put(&|secret| drop(secret["data"].remove("usage-bootstrap-authentication")));
    world.check_token(token, &["https://api"], bad()).await;
    world.clock.advance(60);
    put(&|_| {});
    world.check_token(token, &["https://api"], bad()).await;
}
