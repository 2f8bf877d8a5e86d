//! Validation of a conversion webhook's address.
//!
//! Follows: apiserver/pkg/util/webhook/validation.go (v0.35).

use base64::Engine as _;
use pintle_apimachinery::names;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value};
use pintle_cel::golang::url;

/// The errors of a client configuration.
pub(super) fn validate_client_config(config: &Value, path: &Path<'_>, allows_bad_bundle: bool, errors: &mut ErrorList) {
    let (address, service) = (&config["url"], &config["service"]);
    match (address.is_null(), service.is_null()) {
        (false, true) => validate_url(address.str_or_empty(), &path.child("url"), errors),
        (true, false) => validate_service(service, &path.child("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
    let bundle = config["caBundle"].str_or_empty();
    if !bundle.is_empty()
        && !allows_bad_bundle
        && let Some(why) = bundle_fault(bundle)
    {
        errors.push(FieldError::invalid(&path.child("caBundle"), bundle, why));
    }
}

/// The errors of a webhook's URL, which must be https.
pub fn validate_url(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match url::parse(text) {
        Ok(url) => url,
        Err(why) => {
            errors.push(FieldError::required(path, format!("url must be a valid URL: {why}{FORM}")));
            return;
        }
    };
    let mut refuse = |shown: &str, rule: String| errors.push(FieldError::invalid(path, shown, rule));
    if url.scheme != "https" {
        refuse(&url.scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        refuse(&url.host, format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        refuse(user, "user information is not permitted in the URL".to_owned());
    }
    if !url.fragment.is_empty() {
        refuse(&url.fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !url.raw_query.is_empty() {
        refuse(&url.raw_query, "query parameters are not permitted in the URL".to_owned());
    }
}

/// The errors of a reference to a service. Name and namespace are taken for each other, as upstream does for
/// conversion webhooks.
fn validate_service(service: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for (tested, told) in [("namespace", "name"), ("name", "namespace")] {
        if service[tested].str_or_empty().is_empty() {
            errors.push(FieldError::required(&path.child(told), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    let faults = names::port_number(port);
    if !faults.is_empty() {
        let rule = format!("port is not valid: {}", faults.join(", "));
        errors.push(FieldError::invalid(&path.child("port"), port, rule));
    }
    validate_path(service["path"].str_or_empty(), &path.child("path"), errors);
}

fn validate_path(text: &str, at: &Path<'_>, errors: &mut ErrorList) {
    if text.is_empty() || text == "/" {
        return;
    }
    let mut refuse = |rule: String| errors.push(FieldError::invalid(at, text, rule));
    if text == "//" {
        return refuse("segment[0] may not be empty".to_owned());
    }
    if !text.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    let first_len = text.chars().next().map_or(0, char::len_utf8);
    let segments = &text[first_len..];
    for (idx, segment) in segments.strip_suffix('/').unwrap_or(segments).split('/').enumerate() {
        if segment.is_empty() {
            refuse(format!("segment[{idx}] may not be empty"));
            continue;
        }
        for fault in names::dns1123_subdomain(segment) {
            refuse(format!("segment[{idx}]: {fault}"));
        }
    }
}

/// What is wrong with a bundle of certificates (base64 of PEM), if anything.
pub fn bundle_fault(bundle: &str) -> Option<String> {
    const PREFIX: &str = "unable to load root certificates:";
    let engine = base64::engine::general_purpose::STANDARD;
    let pem = engine.decode(bundle).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let mut rest = pem.as_str();
    let mut has_other_block = false;
    while let Some(begin) = rest.find("-----BEGIN ") {
        let after = &rest[begin + 11..];
        let Some((label, after)) = after.split_once("-----") else { break };
        let Some((body, after)) = after.split_once(&format!("-----END {label}-----")) else { break };
        has_other_block = true;
        rest = after;
        if label == "CERTIFICATE" && !body.contains(':') {
            let der: String = body.chars().filter(|c| !c.is_whitespace()).collect();
            return match engine.decode(der) {
                // the outermost of a certificate is a DER sequence
                Ok(der) if der.first() == Some(&0x30) => None,
                Ok(_) => Some(format!("{PREFIX} failed to parse certificate: x509: malformed certificate")),
                Err(_) => Some(format!("{PREFIX} unable to parse bytes as PEM block")),
            };
        }
    }
    let why = if has_other_block && rest.trim().is_empty() {
        "no valid certificate authority data seen"
    } else {
        "unable to parse bytes as PEM block"
    };
    Some(format!("{PREFIX} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths() {
        let told = |check: &dyn Fn(&mut ErrorList)| {
            let mut errors = ErrorList::new();
            check(&mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let at = Path::new("u");
        assert_eq!(told(&|e| validate_url("https://example.com/x", &at, e)), Vec::<String>::new());
        assert_eq!(
            told(&|e| validate_url("http://u@example.com?x#y", &at, e)),
            [
                "u: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
                "u: Invalid value: \"u\": user information is not permitted in the URL",
                "u: Invalid value: \"y\": fragments are not permitted in the URL",
                "u: Invalid value: \"x\": query parameters are not permitted in the URL"
            ]
        );
        assert_eq!(told(&|e| validate_path("//", &at, e)), ["u: Invalid value: \"//\": segment[0] may not be empty"]);
        assert_eq!(told(&|e| validate_path("a/b", &at, e)).len(), 2);
        let junk = base64::engine::general_purpose::STANDARD.encode("junk");
        assert_eq!(
            bundle_fault(&junk).as_deref(),
            Some("unable to load root certificates: unable to parse bytes as PEM block")
        );
    }
}
