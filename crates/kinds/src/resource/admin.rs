//! Access to devices that are in use, which only some namespaces may ask for.

use pintle_apimachinery::{ErrorList, FieldError, Path, Value};

/// `"true"` on the namespaces whose claims may ask for it.
const NAMESPACE_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Why a claim or template may not be created, or (in a status update with `old`) a claim's status not be written, in a
/// namespace without the label [`allows`] looks for. Comes before the errors of validation.
pub fn refusal(object: &Value, old: Option<&Value>) -> Option<ErrorList> {
    let detail =
        || format!("admin access to devices requires the `{NAMESPACE_LABEL}: true` label on the containing namespace");
    if let Some(old) = old {
        if first_granted(old).is_some() {
            return None;
        }
        let idx = first_granted(object)?;
        let path = Path::new("status.allocation.devices.results");
        return Some(vec![FieldError::forbidden(&path.index(idx).child("adminAccess"), detail())]);
    }
    let spec = if object.at("spec.spec").is_null() { &object["spec"] } else { object.at("spec.spec") };
    let requests = spec.at("devices.requests").items();
    let idx = requests.iter().position(|request| request.at("exactly.adminAccess").is_true())?;
    // upstream tells a template's request as if it were a claim's
    let path = Path::new("spec.devices.requests");
    Some(vec![FieldError::forbidden(&path.index(idx).child("adminAccess"), detail())])
}

fn first_granted(claim: &Value) -> Option<usize> {
    let results = claim.at("status.allocation.devices.results").items();
    results.iter().position(|result| result["adminAccess"].is_true())
}

/// Whether a namespace has the label.
pub fn allows(namespace: &Value) -> bool {
    namespace["metadata"]["labels"][NAMESPACE_LABEL].as_str() == Some("true")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_apimachinery::json;

    #[test]
    fn who_asks() {
        let told = |object: &Value, old: Option<&Value>| refusal(object, old).map(|errors| errors[0].to_string());
        let requests = json!([{"name": "a"}, {"name": "b", "exactly": {"adminAccess": true}}]);
        let claim = json!({"spec": {"devices": {"requests": requests}}});
        let text = "spec.devices.requests[1].adminAccess: Forbidden: admin access to devices requires the \
                    `resource.kubernetes.io/admin-access: true` label on the containing namespace";
        assert_eq!(told(&claim, None).as_deref(), Some(text));
        assert_eq!(told(&json!({"spec": {"spec": claim["spec"].clone()}}), None).as_deref(), Some(text));
        assert_eq!(told(&claim, Some(&json!({}))), None);
        let granted = json!({"status": {"allocation": {"devices": {"results": [{"adminAccess": true}]}}}});
        assert!(told(&granted, Some(&claim)).unwrap().starts_with("status.allocation.devices.results[0].adminAccess"));
        assert_eq!(told(&granted, Some(&granted)), None);
        assert!(allows(&json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}})));
    }
}
