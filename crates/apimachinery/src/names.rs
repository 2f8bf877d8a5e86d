//! Rules for names of all kinds. Each function answers what is wrong, in upstream's words; nothing when all is well.
//!
//! Follows: apimachinery/pkg/util/validation and pkg/api/validate/content (v0.35).

/// What is wrong with a name; empty when it is well-formed.
pub type Faults = Vec<String>;

/// Longest DNS label.
pub const LABEL_BYTES_MAX: usize = 63;
/// Longest DNS subdomain.
pub const SUBDOMAIN_BYTES_MAX: usize = 253;

/// `must be no more than N characters`.
pub fn max_len_fault(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// `must be no more than N bytes`: what the rules of label keys and values say.
fn max_bytes_fault(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// `MESSAGE (e.g. 'a',  or 'b', regex used for validation is 'R')`, upstream's odd comma included.
pub fn regex_fault(message: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{regex}')");
    }
    let quoted: Vec<String> = examples.iter().map(|e| format!("'{e}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{regex}')", quoted.join(" or "))
}

/// `must be between LO and HI, inclusive`.
pub fn range_fault(lo: i64, hi: i64) -> String {
    format!("must be between {lo} and {hi}, inclusive")
}

fn is_lower_alnum(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn matches_label(s: &str) -> bool {
    let bytes = s.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            is_lower_alnum(first) && is_lower_alnum(last) && bytes.iter().all(|&b| is_lower_alnum(b) || b == b'-')
        }
        _ => false,
    }
}

fn matches_subdomain(s: &str) -> bool {
    s.split('.').all(matches_label)
}

const DNS1123_LABEL_REGEX: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN_REGEX: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// A lower-case DNS label, at most 63 bytes.
pub fn dns1123_label(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > LABEL_BYTES_MAX {
        faults.push(max_len_fault(LABEL_BYTES_MAX));
    }
    if !matches_label(s) {
        if matches_subdomain(s) {
            faults.push("must not contain dots".to_owned());
        } else {
            faults.push(regex_fault(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                DNS1123_LABEL_REGEX,
                &["my-name", "123-abc"],
            ));
        }
    }
    faults
}

/// A lower-case DNS subdomain, at most 253 bytes.
pub fn dns1123_subdomain(s: &str) -> Faults {
    subdomain_faults(s, max_len_fault)
}

fn subdomain_faults(s: &str, too_long: impl Fn(usize) -> String) -> Faults {
    let mut faults = Faults::new();
    if s.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !matches_subdomain(s) {
        faults.push(regex_fault(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            DNS1123_SUBDOMAIN_REGEX,
            &["example.com"],
        ));
    }
    faults
}

fn matches_label_with_underscore(s: &str) -> bool {
    let rest = s.strip_prefix('_').unwrap_or(s);
    let bytes = rest.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            is_lower_alnum(first)
                && is_lower_alnum(last)
                && bytes.iter().all(|&b| is_lower_alnum(b) || b == b'-' || b == b'_')
        }
        _ => false,
    }
}

/// A DNS subdomain whose labels may hold underscores (search domains).
pub fn dns1123_subdomain_with_underscore(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(max_len_fault(SUBDOMAIN_BYTES_MAX));
    }
    if !s.split('.').all(matches_label_with_underscore) {
        faults.push(regex_fault(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    faults
}

/// A DNS label that starts with a letter, at most 63 bytes.
pub fn dns1035_label(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > LABEL_BYTES_MAX {
        faults.push(max_len_fault(LABEL_BYTES_MAX));
    }
    if !(matches_label(s) && s.as_bytes()[0].is_ascii_lowercase()) {
        faults.push(regex_fault(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// `*.` and a DNS subdomain.
pub fn wildcard_dns1123_subdomain(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(max_len_fault(SUBDOMAIN_BYTES_MAX));
    }
    if !s.strip_prefix("*.").is_some_and(matches_subdomain) {
        faults.push(regex_fault(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!(r"\*\.{DNS1123_SUBDOMAIN_REGEX}"),
            &["*.example.com"],
        ));
    }
    faults
}

/// A name that can stand as one segment of a path: RBAC names and others without a stricter rule.
pub fn path_segment(s: &str, is_prefix: bool) -> Faults {
    if !is_prefix && (s == "." || s == "..") {
        return vec![format!("may not be '{s}'")];
    }
    ["/", "%"].iter().filter(|bad| s.contains(**bad)).map(|bad| format!("may not contain '{bad}'")).collect()
}

const QUALIFIED_NAME_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_NAME_MESSAGE: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn matches_qualified_part(s: &str) -> bool {
    let bytes = s.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// A label key, annotation key or resource name: an optional DNS subdomain and `/`, then a name of at most 63 bytes.
pub fn qualified_name(s: &str) -> Faults {
    let mut faults = Faults::new();
    let name = match s.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                let prefix_faults = subdomain_faults(prefix, max_bytes_fault);
                faults.extend(prefix_faults.into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            let message = regex_fault(
                &format!("a valid label key {QUALIFIED_NAME_MESSAGE}"),
                QUALIFIED_NAME_REGEX,
                &["MyName", "my.name", "123-abc"],
            );
            return vec![format!(
                "{message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        faults.push(format!("name part {}", max_bytes_fault(LABEL_BYTES_MAX)));
    }
    if !matches_qualified_part(name) {
        let message = regex_fault(
            &format!("name part {QUALIFIED_NAME_MESSAGE}"),
            QUALIFIED_NAME_REGEX,
            &["MyName", "my.name", "123-abc"],
        );
        faults.push(message);
    }
    faults
}

/// A label value: empty, or at most 63 bytes of a name.
pub fn label_value(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > LABEL_BYTES_MAX {
        faults.push(max_bytes_fault(LABEL_BYTES_MAX));
    }
    if !s.is_empty() && !matches_qualified_part(s) {
        faults.push(regex_fault(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// A C identifier.
pub fn c_identifier(s: &str) -> Faults {
    let bytes = s.as_bytes();
    let is_one = bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if is_one {
        return Faults::new();
    }
    vec![regex_fault(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// A port number.
pub fn port_number(port: i64) -> Faults {
    if (1..=65_535).contains(&port) { Faults::new() } else { vec![range_fault(1, 65_535)] }
}

/// A port name (IANA service name).
pub fn port_name(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > 15 {
        faults.push(max_len_fault(15));
    }
    if s.is_empty() || !s.bytes().all(|b| is_lower_alnum(b) || b == b'-') {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !s.bytes().any(|b| b.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if s.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if s.starts_with('-') || s.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// `N%`.
pub fn percent(s: &str) -> Faults {
    let is_percent = s.strip_suffix('%').is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    if is_percent {
        return Faults::new();
    }
    vec![regex_fault(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// An HTTP header name.
pub fn http_header_name(s: &str) -> Faults {
    if !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Faults::new();
    }
    vec![regex_fault(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

fn chdir_prefix(s: &str) -> Faults {
    match s {
        "." => vec!["must not be '.'".to_owned()],
        ".." => vec!["must not be '..'".to_owned()],
        _ if s.starts_with("..") => vec!["must not start with '..'".to_owned()],
        _ => Faults::new(),
    }
}

/// The name of an environment variable by the strict rule.
pub fn env_var_name(s: &str) -> Faults {
    let mut faults = Faults::new();
    let bytes = s.as_bytes();
    let is_rest = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if !(bytes.first().is_some_and(|b| is_rest(b) && !b.is_ascii_digit()) && bytes.iter().all(is_rest)) {
        faults.push(regex_fault(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    faults.extend(chdir_prefix(s));
    faults
}

/// The name of an environment variable by the relaxed rule: printable ASCII without `=`.
pub fn relaxed_env_var_name(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.is_empty() {
        faults.push("environment variable name must be non-empty".to_owned());
    }
    if s.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
        faults.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    faults
}

/// A key of a ConfigMap or Secret.
pub fn config_map_key(s: &str) -> Faults {
    let mut faults = Faults::new();
    if s.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(max_len_fault(SUBDOMAIN_BYTES_MAX));
    }
    if s.is_empty() || !s.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        faults.push(regex_fault(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    faults.extend(chdir_prefix(s));
    faults
}

/// `prefix` as validation of a `generateName` sees it: with the dash at its end taken for a letter, since random
/// characters follow.
pub fn mask_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-') {
        Some(rest) if name.len() > 1 => format!("{rest}a"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains() {
        for good in ["a", "0", "a-b", "123-abc"] {
            assert!(dns1123_label(good).is_empty(), "{good}");
        }
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert_eq!(dns1123_label("A").len(), 1);
        assert!(dns1123_label(&"a".repeat(64))[0].contains("63"));
        for bad in ["", ".", "a..b", "-a", "a-", "a_b"] {
            assert_eq!(dns1123_subdomain(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns1035_label("1a").len(), 1);
        assert_eq!(dns1035_label("").len(), 1);
        assert!(dns1035_label("a1").is_empty());
    }

    #[test]
    fn qualified_names() {
        for good in ["a", "a.b/c", "A_b.c-D", "example.com/0"] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("a/b/c").len(), 1);
        assert_eq!(qualified_name("").len(), 2);
        assert_eq!(
            label_value("a b"),
            [
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ]
        );
    }

    #[test]
    fn others() {
        assert_eq!(path_segment("..", false), ["may not be '..'"]);
        assert_eq!(path_segment("a/b%", false).len(), 2);
        assert_eq!(port_name("--").len(), 3);
        assert_eq!(config_map_key("..a"), ["must not start with '..'"]);
        assert_eq!(mask_trailing_dash("a-"), "aa");
    }
}
