//! Ingresses and their status.

use crate::common::checks::{dns1123_label, dns1123_subdomain, path_segment, port_number, push_faults, required};
use crate::common::ip::{self, parse_ip};
use crate::common::{At, one_of};
use crate::core::service::{status_warnings, validate_hostname};
use crate::prepare::{clear_status, keep, raise_generation, start_generation};
use crate::{MetadataRounds, RequestInfo, Strategy, UpdateStrategy};
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::meta::Meta;
use pintle_apimachinery::{ErrorList, FieldError, Path, Value, names};

/// Named the class before `spec.ingressClassName`.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The strategy of Ingresses.
#[derive(Debug)]
pub struct Ingress;

impl UpdateStrategy for Ingress {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        raise_generation(object, old, &["spec"]);
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &Options::kept_from(old), &mut errors);
        errors
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["status"]
    }
}

impl Strategy for Ingress {
    fn prepare_for_create(&self, _: RequestInfo<'_>, object: &mut Value) {
        clear_status(object, "networking/v1.IngressStatus");
        start_generation(object);
    }

    fn validate(&self, _: RequestInfo<'_>, object: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        validate(object, &Options::default(), &mut errors);
        let class = object.at("spec.ingressClassName");
        if let Some(annotation) = object.annotation(CLASS_ANNOTATION).filter(|_| !class.is_null())
            && class.as_str() != Some(annotation)
        {
            let rule = "must match `ingressClassName` when both are specified";
            // upstream leaves `metadata` out
            let path = Path::new("annotations");
            errors.push(FieldError::invalid(&path.child(CLASS_ANNOTATION), annotation, rule));
        }
        errors
    }

    fn warnings_on_create(&self, _: RequestInfo<'_>, object: &Value) -> Vec<String> {
        if object.annotation(CLASS_ANNOTATION).is_none() || !object.at("spec.ingressClassName").is_null() {
            return Vec::new();
        }
        vec![format!(
            "annotation {} is deprecated, please use 'spec.ingressClassName' instead",
            go_quote(CLASS_ANNOTATION)
        )]
    }

    fn subresource(&self, name: &str) -> Option<&'static dyn UpdateStrategy> {
        (name == "status").then_some(&Status as _)
    }
}

/// `ingresses/x/status`.
#[derive(Debug)]
struct Status;

impl UpdateStrategy for Status {
    fn prepare_for_update(&self, _: RequestInfo<'_>, object: &mut Value, old: &Value) {
        keep(object, old, "spec");
    }

    fn validate_update(&self, _: RequestInfo<'_>, object: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::new();
        let status = At::top(object, "status");
        let balancer = status.child("loadBalancer");
        for point in balancer.child("ingress").each() {
            let address = point.child("ip");
            if !address.text().is_empty() {
                let kept = old.at("status.loadBalancer.ingress").items().iter().map(|old| old["ip"].str_or_empty());
                ip::ip_legacy(&address, kept.filter(|ip| !ip.is_empty()), &mut errors);
            }
            validate_hostname(&point.child("hostname"), &mut errors);
        }
        errors
    }

    fn warnings_on_update(&self, _: RequestInfo<'_>, object: &Value, _: &Value) -> Vec<String> {
        status_warnings(object)
    }

    fn metadata_rounds(&self) -> MetadataRounds {
        MetadataRounds::UPDATE
    }

    fn reset_fields(&self) -> &'static [&'static str] {
        &["spec"]
    }
}

/// What passes because the old object held such.
#[derive(Default)]
struct Options {
    /// Names of secrets that are none.
    any_secret_name: bool,
    /// Rules for wildcard hosts that do not make sense.
    any_wildcard_rule: bool,
    /// Names of services that start with a digit.
    relaxed_service_name: bool,
}

impl Options {
    fn kept_from(old: &Value) -> Options {
        let spec = &old["spec"];
        let is_bad_secret = |tls: &Value| !secret_faults(tls["secretName"].str_or_empty()).is_empty();
        let is_bad_rule = |rule: &Value| {
            let mut errors = ErrorList::new();
            validate_rule_value(&At::new(rule, Path::ROOT), &Options::default(), &mut errors);
            rule["host"].str_or_empty().contains('*') && !errors.is_empty()
        };
        let paths = spec["rules"].items().iter().flat_map(|rule| rule.at("http.paths").items());
        let backends = std::iter::once(&spec["defaultBackend"]).chain(paths.map(|path| &path["backend"]));
        let is_relaxed = |backend: &Value| {
            let name = backend["service"]["name"].str_or_empty();
            !backend["service"].is_null()
                && names::dns1123_label(name).is_empty()
                && !names::dns1035_label(name).is_empty()
        };
        Options {
            any_secret_name: spec["tls"].items().iter().any(is_bad_secret),
            any_wildcard_rule: spec["rules"].items().iter().any(is_bad_rule),
            relaxed_service_name: backends.into_iter().any(is_relaxed),
        }
    }
}

fn secret_faults(name: &str) -> names::Faults {
    if name.is_empty() { names::Faults::new() } else { names::dns1123_subdomain(name) }
}

fn validate(object: &Value, options: &Options, errors: &mut ErrorList) {
    let spec = At::top(object, "spec");
    let (rules, backend, class) = (spec.child("rules"), spec.child("defaultBackend"), spec.child("ingressClassName"));
    if rules.items().is_empty() && !backend.is_set() {
        let rule = "either `defaultBackend` or `rules` must be specified";
        errors.push(spec.invalid_showing(Value::NULL, rule));
    }
    if backend.is_set() {
        validate_backend(&backend, options, errors);
    }
    rules.each().for_each(|rule| validate_rule(&rule, options, errors));
    for tls in spec.child("tls").each() {
        tls.child("hosts").each().for_each(|host| validate_host(&host, errors));
        let secret = tls.child("secretName");
        if !options.any_secret_name {
            push_faults(&secret, secret_faults(secret.text()), errors);
        }
    }
    if class.is_set() {
        dns1123_subdomain(&class, errors);
    }
}

fn validate_host(host: &At<'_>, errors: &mut ErrorList) {
    if host.text().contains('*') {
        push_faults(host, names::wildcard_dns1123_subdomain(host.text()), errors);
    } else {
        dns1123_subdomain(host, errors);
    }
}

fn validate_rule(rule: &At<'_>, options: &Options, errors: &mut ErrorList) {
    let host = rule.child("host");
    if !host.text().is_empty() {
        if parse_ip(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
        validate_host(&host, errors);
    }
    if !host.text().contains('*') || !options.any_wildcard_rule {
        validate_rule_value(rule, options, errors);
    }
}

fn validate_rule_value(rule: &At<'_>, options: &Options, errors: &mut ErrorList) {
    let http = rule.child("http");
    if !http.is_set() {
        return;
    }
    let paths = http.child("paths");
    if paths.items().is_empty() {
        errors.push(paths.required(""));
    }
    paths.each().for_each(|path| validate_path(&path, options, errors));
}

fn validate_path(at: &At<'_>, options: &Options, errors: &mut ErrorList) {
    const SEQUENCES: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
    const SUFFIXES: [&str; 2] = ["/..", "/."];
    let (path_type, path) = (at.child("pathType"), at.child("path"));
    if !path_type.is_set() {
        errors.push(path_type.required("pathType must be specified"));
        return;
    }
    let text = path.text();
    let is_relative = !text.starts_with('/');
    match path_type.text() {
        "Exact" | "Prefix" => {
            if is_relative {
                errors.push(path.invalid("must be an absolute path"));
            }
            for sequence in SEQUENCES.into_iter().filter(|sequence| text.contains(sequence)) {
                errors.push(path.invalid(format!("must not contain '{sequence}'")));
            }
            for suffix in SUFFIXES.into_iter().filter(|suffix| text.ends_with(suffix)) {
                errors.push(path.invalid(format!("cannot end with '{suffix}'")));
            }
        }
        "ImplementationSpecific" if is_relative && !text.is_empty() => {
            errors.push(path.invalid("must be an absolute path"));
        }
        _ => one_of(&path_type, &["Exact", "ImplementationSpecific", "Prefix"], errors),
    }
    validate_backend(&at.child("backend"), options, errors);
}

fn validate_backend(backend: &At<'_>, options: &Options, errors: &mut ErrorList) {
    let (resource, service) = (backend.child("resource"), backend.child("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => {
            errors.push(backend.invalid_showing("", "cannot set both resource and service backends"));
        }
        (true, false) => validate_reference(&resource, errors),
        (false, true) => validate_service(backend, &service, options, errors),
        (false, false) => errors.push(backend.invalid_showing("", "resource or service backend is required")),
    }
}

fn validate_service(backend: &At<'_>, service: &At<'_>, options: &Options, errors: &mut ErrorList) {
    let (name, port) = (service.child("name"), service.child("port"));
    if required(&name, errors) {
        if options.relaxed_service_name {
            dns1123_label(&name, errors);
        } else {
            push_faults(&name, names::dns1035_label(name.text()), errors);
        }
    }
    let (port_name, number) = (port.child("name"), port.child("number"));
    match (!port_name.text().is_empty(), number.int() != 0) {
        (true, true) => errors.push(backend.invalid_showing("", "cannot set both port name & port number")),
        (true, false) => push_faults(&port_name, names::port_name(port_name.text()), errors),
        (false, true) => port_number(&number, errors),
        (false, false) => errors.push(backend.required("port name or number is required")),
    }
}

/// A reference to an object of any kind.
pub(super) fn validate_reference(reference: &At<'_>, errors: &mut ErrorList) {
    let group = reference.child("apiGroup");
    if group.is_set() {
        dns1123_subdomain(&group, errors);
    }
    for field in ["kind", "name"] {
        let field = reference.child(field);
        if required(&field, errors) {
            path_segment(&field, errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{creates, updates};
    use expect_test::expect;
    use pintle_apimachinery::json;

    #[test]
    fn creating_and_updating() {
        let base = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"});
        let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
        let spec = |spec: pintle_apimachinery::Value| json!({"spec": spec});
        let path = |change: pintle_apimachinery::Value| {
            let mut path = json!({"path": "/a", "pathType": "Prefix", "backend": backend.clone()});
            change.entries().for_each(|(key, member)| path.set(key, member.clone()));
            json!({"spec": {"rules": [{"host": "example.com", "http": {"paths": [path]}}]}})
        };
        let of = "networking.k8s.io/v1/ingresses";
        let out = creates(
            of,
            &base,
            &[
                json!({}),
                spec(json!({"defaultBackend": {}})),
                spec(
                    json!({"defaultBackend": {"service": {"name": "A", "port": {}}, "resource": {"kind": "", "name": ""}}}),
                ),
                spec(json!({"defaultBackend": {"service": {"name": "s", "port": {"name": "A", "number": 70000}}}})),
                spec(json!({"rules": [{"host": "1.2.3.4"}, {"host": "*.A"}, {"host": "A"}, {"http": {"paths": []}}]})),
                spec(json!({"defaultBackend": backend.clone(), "tls": [{"hosts": ["A"], "secretName": "B"}],
                    "ingressClassName": "C"})),
                path(json!({})),
                path(json!({"pathType": null})),
                path(json!({"pathType": "x"})),
                path(json!({"path": ""})),
                path(json!({"path": "a//b/./../%2f"})),
                path(json!({"backend": {"resource": {"apiGroup": "A", "kind": "k/", "name": "n%"}}})),
                json!({"metadata": {"annotations": {(super::CLASS_ANNOTATION): "a"}},
                    "spec": {"defaultBackend": backend.clone(), "ingressClassName": "b"}}),
                json!({"metadata": {"annotations": {(super::CLASS_ANNOTATION): "a"}},
                    "spec": {"defaultBackend": backend.clone()}}),
            ],
        );
        expect![[r#"
            {}
                spec: Invalid value: null: either `defaultBackend` or `rules` must be specified
            {"spec":{"defaultBackend":{}}}
                spec.defaultBackend: Invalid value: "": resource or service backend is required
            {"spec":{"defaultBackend":{"resource":{"kind":"","name":""},"service":{"name":"A","port":{}}}}}
                spec.defaultBackend: Invalid value: "": cannot set both resource and service backends
            {"spec":{"defaultBackend":{"service":{"name":"s","port":{"name":"A","number":70000}}}}}
                spec.defaultBackend: Invalid value: "": cannot set both port name & port number
            {"spec":{"rules":[{"host":"1.2.3.4"},{"host":"*.A"},{"host":"A"},{"http":{"paths":[]}}]}}
                spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address
                spec.rules[1].host: Invalid value: "*.A": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.rules[2].host: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.rules[3].http.paths: Required value
            {"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}},"ingressClassName":"C","tls":[{"hosts":["A"],"secretName":"B"}]}}
                spec.tls[0].hosts[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.tls[0].secretName: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.ingressClassName: Invalid value: "C": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
            {"spec":{"rules":[{"host":"example.com","http":{"paths":[{"backend":{"service":{"name":"s","port":{"number":80}}},"path":"/a","pathType":"Prefix"}]}}]}}
            {"spec":{"rules":[{"host":"example.com","http":{"paths":[{"backend":{"service":{"name":"s","port":{"number":80}}},"path":"/a","pathType":null}]}}]}}
                spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified
            {"spec":{"rules":[{"host":"example.com","http":{"paths":[{"backend":{"service":{"name":"s","port":{"number":80}}},"path":"/a","pathType":"x"}]}}]}}
                spec.rules[0].http.paths[0].pathType: Unsupported value: "x": supported values: "Exact", "ImplementationSpecific", "Prefix"
            {"spec":{"rules":[{"host":"example.com","http":{"paths":[{"backend":{"service":{"name":"s","port":{"number":80}}},"path":"","pathType":"Prefix"}]}}]}}
                spec.rules[0].http.paths[0].path: Invalid value: "": must be an absolute path
            {"spec":{"rules":[{"host":"example.com","http":{"paths":[{"backend":{"service":{"name":"s","port":{"number":80}}},"path":"a//b/./../%2f","pathType":"Prefix"}]}}]}}
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/./../%2f": must be an absolute path
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/./../%2f": must not contain '//'
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/./../%2f": must not contain '/./'
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/./../%2f": must not contain '/../'
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/./../%2f": must not contain '%2f'
            {"spec":{"rules":[{"host":"example.com","http":{"paths":[{"backend":{"resource":{"apiGroup":"A","kind":"k/","name":"n%"}},"path":"/a","pathType":"Prefix"}]}}]}}
                spec.rules[0].http.paths[0].backend.resource.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.rules[0].http.paths[0].backend.resource.kind: Invalid value: "k/": may not contain '/'
                spec.rules[0].http.paths[0].backend.resource.name: Invalid value: "n%": may not contain '%'
            {"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}},"ingressClassName":"b"}}
                annotations.kubernetes.io/ingress.class: Invalid value: "a": must match `ingressClassName` when both are specified
            {"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}
                warning: annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead
        "#]].assert_eq(&out);
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "01.2.3.4"}, {"ip": "x"}, {"hostname": "A"},
            {"hostname": "1.2.3.4"}]}}});
        expect![[r#"
            {"status":{"loadBalancer":{"ingress":[{"ip":"01.2.3.4"},{"ip":"x"},{"hostname":"A"},{"hostname":"1.2.3.4"}]}}}
                status.loadBalancer.ingress[1].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                status.loadBalancer.ingress[2].hostname: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                status.loadBalancer.ingress[3].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address
        "#]].assert_eq(&updates(of, "status", &base, &[status]));
    }
}
