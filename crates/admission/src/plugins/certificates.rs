//! `CertificateApproval`, `CertificateSigning`, `CertificateSubjectRestriction`: who may approve and sign certificates,
//! and whose nobody gets.

use crate::attributes::{Attributes, Operation};
use crate::chain::Plugin;
use crate::errors::forbidden;
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_apimachinery::Value;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::status::Result;
use pintle_auth::authz::{self, Authorizer};
use pintle_auth::pki::request_organizations;
use std::sync::Arc;

const GROUP: &str = "certificates.k8s.io";
const RESOURCE: &str = "certificatesigningrequests";

/// Whether the user may do this with requests for the signer: by its name, or by its domain and a star.
fn may(authorizer: &dyn Authorizer, attributes: &Attributes<'_>, verb: &str, signer: &str) -> bool {
    let wildcard = format!("{}/*", signer.split('/').next().unwrap_or_default());
    [signer, wildcard.as_str()].into_iter().any(|name| {
        let asked = authz::Attributes::resource(attributes.user, verb, GROUP, "signers").at("", name);
        authorizer.authorize(&asked).is_allowed()
    })
}

/// Approval takes the right to approve for the signer.
#[derive(Debug)]
pub struct CertificateApproval {
    /// Who decides about rights.
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Plugin for CertificateApproval {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Update
            && attributes.subresource == "approval"
            && attributes.is_about(GROUP, RESOURCE)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let signer = attributes.old.unwrap_or(&Value::NULL)["spec"]["signerName"].str_or_empty();
        if may(&*self.authorizer, attributes, "approve", signer) {
            return Ok(());
        }
        let why = format!("user not permitted to approve requests with signerName {}", go_quote(signer));
        Err(forbidden(attributes, object, why))
    }
}

/// Signing takes the right to sign for the signer.
#[derive(Debug)]
pub struct CertificateSigning {
    /// Who decides about rights.
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Plugin for CertificateSigning {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Update
            && attributes.subresource == "status"
            && attributes.is_about(GROUP, RESOURCE)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let (old, new) = (attributes.old.unwrap_or(&Value::NULL), object.unwrap_or(&Value::NULL));
        let is_same = |field: &str| {
            let (old, new) = (&old["status"][field], &new["status"][field]);
            old == new || (old.is_empty() && new.is_empty())
        };
        if is_same("certificate") && is_same("conditions") {
            return Ok(());
        }
        let signer = old["spec"]["signerName"].str_or_empty();
        if may(&*self.authorizer, attributes, "sign", signer) {
            return Ok(());
        }
        let why = format!("user not permitted to sign requests with signerName {}", go_quote(signer));
        Err(forbidden(attributes, object, why))
    }
}

/// Nobody gets a client certificate of `system:masters`.
#[derive(Debug)]
pub struct CertificateSubjectRestriction;

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

#[async_trait]
impl Plugin for CertificateSubjectRestriction {
    fn wants(&self, attributes: &Attributes<'_>) -> bool {
        attributes.operation == Operation::Create && attributes.is_on(GROUP, RESOURCE)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Result<()> {
        let Some(request) = object.filter(|o| o["spec"]["signerName"].as_str() == Some(CLIENT_SIGNER)) else {
            return Ok(());
        };
        let pem = STANDARD.decode(request["spec"]["request"].str_or_empty()).unwrap_or_default();
        let organizations = request_organizations(&pem)
            .map_err(|error| forbidden(attributes, object, format!("failed to parse CSR: {error}")))?;
        if organizations.iter().any(|organization| organization == "system:masters") {
            let why = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
            return Err(forbidden(attributes, object, why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::Script;
    use expect_test::expect;
    use pintle_apimachinery::json;
    use pintle_auth::authz::rbac::Rbac;

    fn rbac(verb: &str, name: &str) -> Arc<Rbac> {
        let rbac = Rbac::new();
        rbac.put("clusterroles", &json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [GROUP], "resources": ["signers"], "resourceNames": [name], "verbs": [verb]}]}));
        rbac.put("clusterrolebindings", &json!({"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "jane"}]}));
        Arc::new(rbac)
    }

    fn request(certificate: &str) -> Value {
        json!({"metadata": {"name": "c"}, "spec": {"signerName": "example.com/mine"}, "status": {"certificate": certificate}})
    }

    #[tokio::test]
    async fn approval() {
        let target = "certificatesigningrequests.certificates.k8s.io/approval -";
        for name in ["example.com/*", "example.com/mine"] {
            let script = Script::new(|_| Arc::new(CertificateApproval { authorizer: rbac("approve", name) }));
            script.update(target, request(""), request("")).await.ok();
        }
        let script = Script::new(|_| Arc::new(CertificateApproval { authorizer: rbac("approve", "other.com/*") }));
        script.update(target, request(""), request("")).await.refused(expect![[r#"403 certificatesigningrequests.certificates.k8s.io "c" is forbidden: user not permitted to approve requests with signerName "example.com/mine""#]]);
    }

    #[tokio::test]
    async fn signing() {
        let target = "certificatesigningrequests.certificates.k8s.io/status -";
        let script = Script::new(|_| Arc::new(CertificateSigning { authorizer: rbac("sign", "x") }));
        script.update(target, request("a"), request("a")).await.ok();
        script.update(target, request(""), request("a")).await.refused(expect![[r#"403 certificatesigningrequests.certificates.k8s.io "c" is forbidden: user not permitted to sign requests with signerName "example.com/mine""#]]);
    }
}
