//! Image names: whether one asks for the moving tag `latest`, which decides the default pull policy.
//!
//! Follows: distribution/reference v0.6 (the grammar of image names, with `docker.io/library/` filled in).

/// Longest repository path, the domain left out.
const PATH_BYTES_MAX: usize = 255;

/// Whether `image` is well-formed and its tag is `latest`, said or unsaid. A digest without a tag is no tag.
pub fn is_latest(image: &str) -> bool {
    tag(image) == Some("latest")
}

/// The pull policy of an image that says none.
pub fn default_pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

/// The tag of a well-formed name: `latest` when it has neither tag nor digest, `""` when it has a digest only.
fn tag(image: &str) -> Option<&str> {
    let is_bare_id = image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_bare_id {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (domain, rest) = match name.split_once('/') {
        Some((domain, rest)) if is_domain_like(domain) => (domain, rest),
        _ => ("docker.io", name),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let is_library = matches!(domain, "docker.io" | "index.docker.io") && !path.contains('/');
    let n_path_bytes = path.len() + if is_library { "library/".len() } else { 0 };
    let is_well_formed = is_domain(domain)
        && n_path_bytes <= PATH_BYTES_MAX
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    match (is_well_formed, tag, digest) {
        (false, ..) => None,
        (true, Some(tag), _) => Some(tag),
        (true, None, Some(_)) => Some(""),
        (true, None, None) => Some("latest"),
    }
}

/// Whether the part before the first slash is a domain rather than a part of the path.
fn is_domain_like(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost" || part.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let is_digits = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    if let Some(rest) = domain.strip_prefix('[') {
        let Some((ip, port)) = rest.split_once(']') else { return false };
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_digits);
        return !ip.is_empty() && ip.bytes().all(|b| b.is_ascii_hexdigit() || b == b':') && is_port;
    }
    let (host, is_port) = match domain.split_once(':') {
        Some((host, port)) => (host, is_digits(port)),
        None => (domain, true),
    };
    is_port && host.split('.').all(is_domain_component)
}

fn is_domain_component(part: &str) -> bool {
    let bytes = part.as_bytes();
    !part.is_empty()
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
}

/// Lower-case letters and digits with separators between: one of `.`, `_`, `__` or any number of `-`.
fn is_path_component(part: &str) -> bool {
    let is_alnum = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    if !is_alnum(first) || !is_alnum(last) {
        return false;
    }
    bytes.split(|b| is_alnum(*b)).all(|separator| match separator {
        [] | [b'.' | b'_'] | [b'_', b'_'] => true,
        other => other.iter().all(|b| *b == b'-'),
    })
}

fn is_tag(tag: &str) -> bool {
    let bytes = tag.as_bytes();
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    bytes.first().is_some_and(is_word)
        && bytes.len() <= 128
        && bytes.iter().all(|b| is_word(b) || matches!(b, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let n_digits = match digest.split_once(':') {
        Some(("sha256", _)) => 64,
        Some(("sha384", _)) => 96,
        Some(("sha512", _)) => 128,
        _ => return false,
    };
    let hex = &digest["sha256:".len()..];
    hex.len() == n_digits && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_images_move() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for latest in [
            "nginx",
            "nginx:latest",
            "localhost/x",
            "localhost:5000/a/b",
            "r.io/a__b",
            "r.io/a---b",
            "[::1]:80/a",
            "Host/a",
            "a:latest@sha256:1111111111111111111111111111111111111111111111111111111111111111",
        ] {
            assert!(is_latest(latest), "{latest}");
        }
        for other in [
            "",
            "i:1",
            "x:",
            "UPPER",
            "a/UPPER",
            " i",
            "a b",
            "a//b",
            "a_-b",
            "a___b",
            "http://a",
            "r.io/",
            "a:b:c",
            "a@x",
            "localhost:x/a",
            &"0".repeat(64),
            &format!("a@{digest}"),
        ] {
            assert!(!is_latest(other), "{other}");
        }
    }
}
