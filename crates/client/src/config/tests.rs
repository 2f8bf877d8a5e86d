use super::*;

const FILE: &str = r"
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443/prefix
    certificate-authority-data: aGVsbG8=
    tls-server-name: api
- {name: plain, cluster: {server: 'localhost:8080'}}
contexts:
- {name: dev, context: {cluster: c, user: u, namespace: team}}
- {name: lost, context: {cluster: nowhere, user: u}}
- {name: nobody, context: {cluster: c, user: nobody}}
users:
- name: u
  user: {token: sesame, as: alice, as-groups: [g], as-user-extra: {k: [v]}}
- {name: half, user: {client-certificate-data: aGVsbG8=}}
- {name: old, user: {auth-provider: {name: gcp}}}
";

fn pick(context: Option<&str>, cluster: Option<&str>, user: Option<&str>) -> Result<Config, ConfigError> {
    let options = KubeconfigOptions {
        context: context.map(str::to_owned),
        cluster: cluster.map(str::to_owned),
        user: user.map(str::to_owned),
    };
    Config::from_kubeconfig(&Kubeconfig::from_yaml(FILE).unwrap(), &options)
}

#[test]
fn the_current_context() {
    let config = pick(None, None, None).unwrap();
    assert_eq!(config.server.to_string(), "https://10.0.0.1:6443/prefix");
    assert_eq!(config.default_namespace, "team");
    assert_eq!(config.tls.certificate_authority_pem.as_deref(), Some("hello"));
    assert!(matches!(&config.auth, Auth::Token(token) if token.reveal() == "sesame"));
    let impersonate = config.impersonate.unwrap();
    assert_eq!((impersonate.user.as_str(), impersonate.groups[0].as_str()), ("alice", "g"));
    assert_eq!(pick(None, Some("plain"), None).unwrap().server.to_string(), "http://localhost:8080/");
}

#[test]
fn what_is_missing_is_named() {
    let text = |result: Result<Config, ConfigError>| result.unwrap_err().to_string();
    expect_test::expect![[r#"
        the kubeconfig has no cluster named "nowhere"
        the kubeconfig has no user named "nobody"
        the kubeconfig has no context named "x"
        invalid user: client-certificate without client-key
        invalid user: auth-provider plugins no longer exist; use an exec plugin
    "#]]
    .assert_eq(&format!(
        "{}\n{}\n{}\n{}\n{}\n",
        text(pick(Some("lost"), None, None)),
        text(pick(Some("nobody"), None, None)),
        text(pick(Some("x"), None, None)),
        text(pick(None, None, Some("half"))),
        text(pick(None, None, Some("old"))),
    ));
}

#[test]
fn inside_a_pod() {
    let folder = std::env::temp_dir().join(format!("pintle-in-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in [("token", "t\n"), ("ca.crt", "pem"), ("namespace", "kube-system\n")] {
        std::fs::write(folder.join(file), text).unwrap();
    }
    let env = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some("fd00::1".to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
        _ => None,
    };
    let config = in_cluster_from(&folder, env).unwrap();
    assert_eq!(config.server.to_string(), "https://[fd00::1]:443/");
    assert_eq!(config.default_namespace, "kube-system");
    assert!(matches!(in_cluster_from(&folder, |_| None), Err(ConfigError::NotFound(_))));
    std::fs::remove_dir_all(&folder).unwrap();
}
