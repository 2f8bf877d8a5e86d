use super::*;
use pintle_apimachinery::env::ManualClock;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

/// A directory of its own for each test, removed at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        TempDir(std::env::temp_dir().join(format!("pintle-pki-{name}-{}", std::process::id())))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn names(hosts: &[&str]) -> ServingNames {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    ServingNames::of_cluster(&hosts, &[IpAddr::from([10, 0, 0, 1])], "cluster.local")
}

#[test]
fn made_once_and_reused_and_renewed() {
    let dir = TempDir::new("reuse");
    let clock = Arc::new(ManualClock::default());
    let env = Env { clock: clock.clone(), ..Env::seeded(1) };
    let open = || Pki::open(&dir.0, &env).unwrap();
    let first = open();
    let (serving, admin) =
        (first.serving(&names(&["a"])).unwrap(), first.client("admin", "admin", &["system:masters"]).unwrap());

    let again = open();
    assert_eq!(again.ca.certificate, first.ca.certificate);
    assert_eq!(again.service_account_key, first.service_account_key);
    assert_eq!(again.serving(&names(&["a"])).unwrap(), serving);
    assert_eq!(again.client("admin", "admin", &["system:masters"]).unwrap(), admin);
    // another name, another group, another year
    let wider = again.serving(&names(&["a", "b", "192.0.2.7"])).unwrap();
    assert_ne!(wider, serving);
    assert_eq!(again.serving(&names(&["a"])).unwrap(), wider);
    assert_ne!(again.client("admin", "admin", &[]).unwrap(), admin);
    clock.advance((CERTIFICATE_DAYS - RENEW_BEFORE_DAYS) * 86_400);
    assert_ne!(open().serving(&names(&["a"])).unwrap(), wider);
    assert_eq!(open().ca.certificate, first.ca.certificate);
    for file in ["ca.key", "sa.key", "apiserver.key", "admin.crt"] {
        let mode = std::fs::metadata(dir.0.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn an_authority_is_never_replaced() {
    let dir = TempDir::new("malformed");
    let env = Env::seeded(1);
    Pki::open(&dir.0, &env).unwrap();
    std::fs::write(dir.0.join("ca.crt"), "junk").unwrap();
    assert!(matches!(Pki::open(&dir.0, &env), Err(PkiError::Malformed { .. })));
}

#[test]
fn the_server_can_be_configured() {
    let dir = TempDir::new("tls");
    let pki = Pki::open(&dir.0, &Env::seeded(1)).unwrap();
    let serving = pki.serving(&names(&[])).unwrap();
    let config = server_config(&serving, "", &[b"h2", b"http/1.1"]).unwrap();
    assert_eq!(config.alpn_protocols.len(), 2);
    let other = pki.client("x", "x", &[]).unwrap();
    let mixed = Pair { certificate: serving.certificate, key: other.key };
    assert!(server_config(&mixed, "", &[]).is_err());
}

#[test]
fn kubeconfigs_hold_everything() {
    let pair = Pair { certificate: "C".to_owned(), key: "K".to_owned() };
    let config =
        Kubeconfig { name: "pintle", server: "https://127.0.0.1:6443", ca: "CA", user: "admin", client: &pair };
    expect_test::expect![[r#"
        apiVersion: v1
        kind: Config
        clusters:
        - name: "pintle"
          cluster:
            server: "https://127.0.0.1:6443"
            certificate-authority-data: Q0E=
        users:
        - name: "admin"
          user:
            client-certificate-data: Qw==
            client-key-data: Sw==
        contexts:
        - name: "pintle"
          context:
            cluster: "pintle"
            user: "admin"
        current-context: "pintle"
    "#]]
    .assert_eq(&config.to_yaml());
}
