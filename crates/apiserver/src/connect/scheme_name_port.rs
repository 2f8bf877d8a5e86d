//! `scheme:name:port`, as proxies are named in paths.

/// Scheme (empty, `http` or `https`), name and port (may be empty) of `name`, `name:port` or `scheme:name:port`.
pub(super) fn split(id: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (matches!(scheme, "" | "http" | "https") && !name.is_empty()).then_some((scheme, name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        assert_eq!(split("web"), Some(("", "web", "")));
        assert_eq!(split("web:80"), Some(("", "web", "80")));
        assert_eq!(split("https:web:"), Some(("https", "web", "")));
        for bad in ["", ":80", "ftp:web:80", "a:b:c:d"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }
}
