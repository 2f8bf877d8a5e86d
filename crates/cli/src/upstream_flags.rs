//! kube-apiserver's flags that this server does not have: those without meaning here are taken with a notice, so that
//! launchers written for kube-apiserver work; those whose absence would make a cluster less safe are refused.

/// Whether a flag takes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// `--flag VALUE` or `--flag=VALUE`.
    Value,
    /// `--flag`, `--flag=true` or `--flag=false`.
    Bool,
}

use Takes::{Bool, Value};

/// Flags without meaning here.
const WITHOUT_MEANING: &[(&str, Takes)] = &[
    ("admission-control-config-file", Value),
    ("aggregator-reject-forwarding-redirect", Bool),
    ("allow-metric-labels", Value),
    ("allow-metric-labels-manifest", Value),
    ("allow-privileged", Bool),
    ("contention-profiling", Bool),
    ("coordinated-leadership-lease-duration", Value),
    ("coordinated-leadership-renew-deadline", Value),
    ("coordinated-leadership-retry-period", Value),
    ("cors-allowed-origins", Value),
    ("debug-socket-path", Value),
    ("default-not-ready-toleration-seconds", Value),
    ("default-unreachable-toleration-seconds", Value),
    ("delete-collection-workers", Value),
    ("disable-http2-serving", Bool),
    ("disabled-metrics", Value),
    ("egress-selector-config-file", Value),
    ("emulated-version", Value),
    ("emulation-forward-compatible", Bool),
    ("enable-bootstrap-token-auth", Bool),
    ("enable-garbage-collector", Bool),
    ("enable-logs-handler", Bool),
    ("enable-priority-and-fairness", Bool),
    ("endpoint-reconciler-type", Value),
    ("etcd-count-metric-poll-period", Value),
    ("etcd-db-metric-poll-interval", Value),
    ("etcd-healthcheck-timeout", Value),
    ("etcd-readycheck-timeout", Value),
    ("external-hostname", Value),
    ("feature-gates", Value),
    ("goaway-chance", Value),
    ("http2-max-streams-per-connection", Value),
    ("kubelet-certificate-authority", Value),
    ("kubelet-client-certificate", Value),
    ("kubelet-client-key", Value),
    ("kubelet-preferred-address-types", Value),
    ("kubelet-timeout", Value),
    ("kubernetes-service-node-port", Value),
    ("lease-reuse-duration-seconds", Value),
    ("livez-grace-period", Value),
    ("log-flush-frequency", Value),
    ("log-json-info-buffer-size", Value),
    ("log-json-split-stream", Bool),
    ("log-text-info-buffer-size", Value),
    ("log-text-split-stream", Bool),
    ("logging-format", Value),
    ("max-connection-bytes-per-sec", Value),
    ("min-compatibility-version", Value),
    ("min-request-timeout", Value),
    ("peer-advertise-ip", Value),
    ("peer-advertise-port", Value),
    ("peer-ca-file", Value),
    ("permit-address-sharing", Bool),
    ("permit-port-sharing", Bool),
    ("profiling", Bool),
    ("proxy-client-cert-file", Value),
    ("proxy-client-key-file", Value),
    ("runtime-config", Value),
    ("runtime-config-emulation-forward-compatible", Bool),
    ("service-account-extend-token-expiration", Bool),
    ("service-account-jwks-uri", Value),
    ("service-account-lookup", Bool),
    ("service-account-max-token-expiration", Value),
    ("show-hidden-metrics-for-version", Value),
    ("shutdown-delay-duration", Value),
    ("shutdown-send-retry-after", Bool),
    ("shutdown-watch-termination-grace-period", Value),
    ("storage-initialization-timeout", Value),
    ("storage-media-type", Value),
    ("strict-transport-security-directives", Value),
    ("tls-cipher-suites", Value),
    ("tls-min-version", Value),
    ("tls-sni-cert-key", Value),
    ("tracing-config-file", Value),
    ("v", Value),
    ("vmodule", Value),
];

/// Flags whose absence would be missed, by name or (ending in a dash) by their first words, with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("admission-control", "use --enable-admission-plugins and --disable-admission-plugins"),
    ("encryption-", "objects are not encrypted at rest here: encrypt the disk below the data directory"),
    ("audit-", "there is no audit log here yet"),
    ("authentication-config", "use --client-ca-file, --token-auth-file or service account tokens"),
    ("authentication-token-webhook-", "use --client-ca-file, --token-auth-file or service account tokens"),
    ("oidc-", "use --client-ca-file, --token-auth-file or service account tokens"),
    ("authorization-config", "use --authorization-mode"),
    ("authorization-policy-file", "use --authorization-mode=RBAC"),
    ("authorization-webhook-", "use --authorization-mode=RBAC"),
    ("service-account-signing-endpoint", "use --service-account-signing-key-file"),
];

/// What is left of a command line, and what to tell about the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sifted {
    /// The arguments that this server's own parser reads.
    pub(crate) args: Vec<String>,
    /// Flags that were taken and have no meaning here.
    pub(crate) without_meaning: Vec<String>,
}

/// Takes kube-apiserver's other flags out of a command line.
///
/// # Errors
/// A flag that is refused, and what to do instead.
pub(crate) fn sift(args: impl IntoIterator<Item = String>) -> Result<Sifted, String> {
    let mut sifted = Sifted::default();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        let Some((name, has_value)) = flag_name(&arg) else {
            sifted.args.push(arg);
            continue;
        };
        let is_refused = |prefix: &str| name == prefix || (prefix.ends_with('-') && name.starts_with(prefix));
        if let Some((_, instead)) = REFUSED.iter().find(|(prefix, _)| is_refused(prefix)) {
            return Err(format!("--{name} is not supported: {instead}"));
        }
        match WITHOUT_MEANING.iter().find(|(known, _)| *known == name) {
            Some((_, takes)) => {
                if *takes == Value && !has_value {
                    // its value, which stands alone
                    let _ = args.next();
                }
                sifted.without_meaning.push(name);
            }
            None => sifted.args.push(with_dashes(arg)),
        }
    }
    Ok(sifted)
}

/// The name of a flag (underscores and single dashes are taken as Go's parsers take them), and whether its value
/// stands in the same argument.
fn flag_name(arg: &str) -> Option<(String, bool)> {
    let name =
        arg.strip_prefix("--").or_else(|| arg.strip_prefix("-v").filter(|rest| rest.starts_with('=')).map(|_| "v"))?;
    let (name, has_value) = match name.split_once('=') {
        Some((name, _)) => (name, true),
        None => (name, arg.starts_with("-v=")),
    };
    Some((name.replace('_', "-"), has_value))
}

fn with_dashes(arg: String) -> String {
    match arg.split_once('=') {
        Some((name, value)) if name.starts_with("--") => format!("{}={value}", name.replace('_', "-")),
        None if arg.starts_with("--") => arg.replace('_', "-"),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sift_all(args: &[&str]) -> Result<Sifted, String> {
        sift(args.iter().map(|a| (*a).to_owned()))
    }

    #[test]
    fn what_means_nothing_here_is_taken_out_with_its_value() {
        let sifted =
            sift_all(&["--allow-privileged", "--v", "4", "--secure_port=1", "--feature-gates=A=true", "-v=2", "x"]);
        let sifted = sifted.unwrap();
        assert_eq!(sifted.args, ["--secure-port=1", "x"]);
        assert_eq!(sifted.without_meaning, ["allow-privileged", "v", "feature-gates", "v"]);
    }

    #[test]
    fn what_would_be_missed_is_refused() {
        let why = sift_all(&["--oidc-issuer-url=https://a.example"]).unwrap_err();
        assert!(why.contains("--oidc-issuer-url is not supported") && why.contains("--token-auth-file"), "{why}");
    }
}
