//! Users told by an authenticating proxy in headers (`--requestheader-*`).

use super::peer::{ClientCa, PeerCertificate};
use http::HeaderMap;
use jiff::Timestamp;
use pintle_apimachinery::Str;
use pintle_kinds::UserInfo;

/// Which proxies are believed, and in which headers.
#[derive(Debug)]
pub struct FrontProxy {
    /// `--requestheader-client-ca-file`.
    pub ca: ClientCa,
    /// `--requestheader-allowed-names`: common names of the proxies; empty for any.
    pub allowed_names: Vec<String>,
    /// `--requestheader-username-headers`: the first with a value counts.
    pub username_headers: Vec<String>,
    /// `--requestheader-uid-headers`, likewise.
    pub uid_headers: Vec<String>,
    /// `--requestheader-group-headers`: all values count.
    pub group_headers: Vec<String>,
    /// `--requestheader-extra-headers-prefix`: all that begin so count.
    pub extra_header_prefixes: Vec<String>,
}

impl FrontProxy {
    /// The headers that upstream recommends, with this CA.
    pub fn with_usual_headers(ca: ClientCa, allowed_names: Vec<String>) -> FrontProxy {
        let one = |name: &str| vec![name.to_owned()];
        FrontProxy {
            ca,
            allowed_names,
            username_headers: one("X-Remote-User"),
            uid_headers: one("X-Remote-Uid"),
            group_headers: one("X-Remote-Group"),
            extra_header_prefixes: one("X-Remote-Extra-"),
        }
    }

    pub(super) fn authenticate(
        &self,
        headers: &HeaderMap,
        peer: &PeerCertificate,
        now: Timestamp,
    ) -> Result<Option<UserInfo>, String> {
        self.ca.verify(peer, now)?;
        let common_name = peer.common_name();
        if !self.allowed_names.is_empty() && !self.allowed_names.iter().any(|name| name == common_name) {
            return Err(format!("x509: subject with cn={common_name} is not in the allowed list"));
        }
        let Some(name) = first_value(headers, &self.username_headers) else { return Ok(None) };
        let groups = self
            .group_headers
            .iter()
            .flat_map(|header| headers.get_all(header.as_str()))
            .filter_map(|value| value.to_str().ok())
            .filter(|value| !value.is_empty())
            .map(Str::new)
            .collect();
        Ok(Some(UserInfo {
            name: Str::new(name),
            uid: Str::new(first_value(headers, &self.uid_headers).unwrap_or_default()),
            groups,
            extra: extra(headers, &self.extra_header_prefixes),
        }))
    }

    /// Takes the headers that tell a user out, so that nothing behind mistakes them for its own.
    pub fn clear_headers(&self, headers: &mut HeaderMap) {
        for header in self.username_headers.iter().chain(&self.uid_headers).chain(&self.group_headers) {
            headers.remove(header.as_str());
        }
        let is_extra = |name: &str| self.extra_header_prefixes.iter().any(|p| strip_prefix(name, p).is_some());
        let extras: Vec<_> = headers.keys().filter(|name| is_extra(name.as_str())).cloned().collect();
        for name in extras {
            headers.remove(name);
        }
    }
}

fn first_value<'h>(headers: &'h HeaderMap, names: &[String]) -> Option<&'h str> {
    names.iter().filter_map(|name| headers.get(name.as_str())?.to_str().ok()).find(|value| !value.is_empty())
}

fn strip_prefix<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    let head = name.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &name[prefix.len()..])
}

/// The extras of all headers with one of the prefixes: the rest of the name, decoded, is the key.
fn extra(headers: &HeaderMap, prefixes: &[String]) -> Vec<(Str, Vec<Str>)> {
    let mut extra: std::collections::BTreeMap<Str, Vec<Str>> = std::collections::BTreeMap::new();
    for (name, value) in headers {
        let Some(key) = prefixes.iter().find_map(|prefix| strip_prefix(name.as_str(), prefix)) else { continue };
        let Ok(value) = value.to_str() else { continue };
        extra.entry(Str::from(unescape_key(&key.to_ascii_lowercase()))).or_default().push(Str::new(value));
    }
    extra.into_iter().collect()
}

/// A key with its %-escapes decoded; as it is when they are malformed.
pub(crate) fn unescape_key(key: &str) -> String {
    let decode = || {
        let mut bytes = Vec::with_capacity(key.len());
        let mut rest = key.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            if first == b'%' {
                let hex = std::str::from_utf8(tail.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                rest = &tail[2..];
            } else {
                bytes.push(first);
                rest = tail;
            }
        }
        String::from_utf8(bytes).ok()
    };
    decode().unwrap_or_else(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_where_they_can_be() {
        for (key, want) in [("a%2fb", "a/b"), ("a%2", "a%2"), ("a%zz", "a%zz"), ("plain", "plain")] {
            assert_eq!(unescape_key(key), want);
        }
    }
}
