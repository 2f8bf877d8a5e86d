//! Addresses of webhooks: a URL or a service of the cluster.
//!
//! Follows: apiserver/pkg/util/webhook/validation.go (v0.35).

use super::At;
use pintle_apimachinery::ErrorList;
use pintle_apimachinery::names;
use pintle_cel::golang::url;

/// A client configuration without its certificates: either `url` or `service`.
pub fn validate_client_config(config: &At<'_>, errors: &mut ErrorList) {
    let (address, service) = (config.child("url"), config.child("service"));
    match (address.is_set(), service.is_set()) {
        (true, false) => validate_url(&address, errors),
        (false, true) => validate_service(&service, errors),
        _ => errors.push(config.required("exactly one of url or service is required")),
    }
}

/// A URL, which must be https.
pub fn validate_url(at: &At<'_>, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match url::parse(at.text()) {
        Ok(url) => url,
        Err(why) => {
            errors.push(at.required(format!("url must be a valid URL: {why}{FORM}")));
            return;
        }
    };
    let mut refuse = |shown: &str, rule: String| errors.push(at.invalid_showing(shown, rule));
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

/// A reference to a service. Upstream takes its name and namespace for each other.
pub fn validate_service(service: &At<'_>, errors: &mut ErrorList) {
    for (tested, told) in [("namespace", "name"), ("name", "namespace")] {
        if service[tested].str_or_empty().is_empty() {
            errors.push(service.child(told).required(""));
        }
    }
    let port = service.child("port");
    let faults = names::port_number(port.int());
    if !faults.is_empty() {
        errors.push(port.invalid_int(format!("port is not valid: {}", faults.join(", "))));
    }
    validate_path(&service.child("path"), errors);
}

fn validate_path(at: &At<'_>, errors: &mut ErrorList) {
    let text = at.text();
    if text.is_empty() || text == "/" {
        return;
    }
    let mut refuse = |rule: String| errors.push(at.invalid(rule));
    if text == "//" {
        return refuse("segment[0] may not be empty".to_owned());
    }
    if !text.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    // upstream takes the first character for the slash even if it is none
    let segments = text.char_indices().nth(1).map_or("", |(second, _)| &text[second..]);
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
