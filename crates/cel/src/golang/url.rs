//! URLs as Go's `net/url` reads them.

use super::ip::{Addr, parse_addr};
use pintle_apimachinery::field::go_quote;
use std::fmt::Write;

/// A URL in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// Lower-cased scheme; empty for none.
    pub scheme: String,
    /// What follows the scheme where it does not begin with a slash.
    pub opaque: String,
    /// User and password as they stand before the `@`.
    pub user: Option<String>,
    /// Host and port, unescaped.
    pub host: String,
    /// Path, unescaped.
    pub path: String,
    /// Path as it was written.
    pub raw_path: String,
    /// What follows the question mark.
    pub raw_query: String,
    /// What follows the hash sign, unescaped.
    pub fragment: String,
    /// Whether there is a question mark without a query.
    pub force_query: bool,
    /// The text it was read from.
    pub text: String,
}

impl Url {
    /// The host without brackets and port.
    pub fn hostname(&self) -> &str {
        let host = self.host.get(..self.host.len() - self.port_with_colon().len()).unwrap_or_default();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port; empty for none.
    pub fn port(&self) -> &str {
        self.port_with_colon().trim_start_matches(':')
    }

    fn port_with_colon(&self) -> &str {
        let from = self.host.rfind(']').unwrap_or(0);
        let after = self.host.get(from..).unwrap_or_default();
        after.rfind(':').and_then(|colon| after.get(colon..)).unwrap_or_default()
    }

    /// The path with what must be escaped escaped.
    pub fn escaped_path(&self) -> String {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
        if self.raw_path.bytes().all(|b| is_plain(b) || b"!'()*[]%".contains(&b)) {
            return self.raw_path.clone();
        }
        let mut out = String::with_capacity(self.path.len());
        for byte in self.path.bytes() {
            if is_plain(byte) {
                out.push(char::from(byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    }

    /// The query's keys, each with its values, in the order they first occur. Malformed parts are left out.
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for part in self.raw_query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let plain = |text: &str| unescape(&text.replace('+', " "), Part::Path);
            let (Ok(key), Ok(value)) = (plain(key), plain(value)) else { continue };
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => all.push((key, vec![value])),
            }
        }
        all
    }
}

/// What percent escapes may stand for.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Path,
    User,
    Host,
    Zone,
}

/// Reads a URL that is absolute or begins with a slash.
///
/// # Errors
/// Go's text when `text` is none.
pub fn parse_request_uri(text: &str) -> Result<Url, String> {
    parse_part(text, true).map_err(|why| format!("parse {}: {why}", go_quote(text)))
}

/// Reads any URL, also a relative one or one with a fragment.
///
/// # Errors
/// Go's text when `text` is none.
pub fn parse(text: &str) -> Result<Url, String> {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let parsed = parse_part(before, false).and_then(|url| Ok(Url { fragment: unescape(fragment, Part::Path)?, ..url }));
    parsed.map_err(|why| format!("parse {}: {why}", go_quote(text)))
}

fn parse_part(text: &str, via_request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url { text: text.to_owned(), ..Url::default() };
    if text == "*" {
        "*".clone_into(&mut url.path);
        "*".clone_into(&mut url.raw_path);
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    if rest.ends_with('?') && rest.matches('?').count() == 1 {
        url.force_query = true;
        rest = &rest[..rest.len() - 1];
    } else if let Some((before, query)) = rest.split_once('?') {
        rest = before;
        query.clone_into(&mut url.raw_query);
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_host = !url.scheme.is_empty() || (!via_request && !rest.starts_with("///"));
    if let Some(after) = rest.strip_prefix("//").filter(|_| may_have_host) {
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        parse_authority(&mut url, authority)?;
        rest = path;
    }
    url.path = unescape(rest, Part::Path)?;
    rest.clone_into(&mut url.raw_path);
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (idx, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if idx > 0 => {}
            b':' if idx == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..idx], &text[idx + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn parse_authority(url: &mut Url, authority: &str) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = parse_host(&url.scheme, host)?;
    if let Some(user) = user {
        let is_valid = user.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b));
        if !is_valid {
            return Err("net/url: invalid userinfo".to_owned());
        }
        for part in user.splitn(2, ':') {
            unescape(part, Part::User)?;
        }
        url.user = Some(user.to_owned());
    }
    Ok(())
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        let is_strict = scheme == "http" || scheme == "https";
        let colon = if is_strict { first } else { host.rfind(':').unwrap_or(first) };
        check_port(&host[colon..])?;
    }
    unescape(host, Part::Host)
}

fn parse_ip_literal(host: &str) -> Result<String, String> {
    let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
    let port = &host[end + 1..];
    check_port(port)?;
    let name = &host[1..end];
    let unescaped = match name.find("%25") {
        Some(zone) => unescape(&name[..zone], Part::Host)? + &unescape(&name[zone..], Part::Zone)?,
        None => unescape(name, Part::Host)?,
    };
    match parse_addr(&unescaped) {
        Err(why) => Err(format!("invalid host: {why}")),
        Ok(Addr::V4(_)) => Err("invalid IP-literal".to_owned()),
        Ok(Addr::V6(..)) => Ok(format!("[{unescaped}]{port}")),
    }
}

fn check_port(port: &str) -> Result<(), String> {
    let is_valid = port.is_empty() || port.strip_prefix(':').is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    if is_valid { Ok(()) } else { Err(format!("invalid port {} after host", go_quote(port))) }
}

/// Whether a byte may stand unescaped in a host.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut idx = 0;
    while idx < bytes.len() {
        let byte = bytes[idx];
        if byte != b'%' {
            if matches!(part, Part::Host | Part::Zone) && !is_host_byte(byte) {
                return Err(format!("invalid character {} in host name", go_quote(&char::from(byte).to_string())));
            }
            out.push(byte);
            idx += 1;
            continue;
        }
        let escape = &bytes[idx..bytes.len().min(idx + 3)];
        let code = (escape.len() == 3)
            .then(|| std::str::from_utf8(&escape[1..]).ok())
            .flatten()
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let is_refused = |code: u8| match part {
            Part::Host => code < 0x80 && code != b'%',
            Part::Zone => code != b'%' && code != b' ' && !is_host_byte(code),
            Part::Path | Part::User => false,
        };
        match code {
            Some(code) if !is_refused(code) => out.push(code),
            _ => return Err(format!("invalid URL escape {}", go_quote(&String::from_utf8_lossy(escape)))),
        }
        idx += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url = parse_request_uri("HTTPS://user:pw@example.com:80/a%20b?c=d").unwrap();
        assert_eq!((url.scheme.as_str(), url.host.as_str(), url.path.as_str()), ("https", "example.com:80", "/a b"));
        assert_eq!(url.raw_query, "c=d");
        assert!(parse_request_uri("/path").is_ok() && parse_request_uri("mailto:x").is_ok());
        assert_eq!(parse_request_uri("http://[::1]:80/").unwrap().host, "[::1]:80");
        for (text, want) in [
            ("not a uri", "parse \"not a uri\": invalid URI for request"),
            ("", "parse \"\": empty url"),
            ("http://a b/", "parse \"http://a b/\": invalid character \" \" in host name"),
            ("http://a:x/", "parse \"http://a:x/\": invalid port \":x\" after host"),
            ("/%zz", "parse \"/%zz\": invalid URL escape \"%zz\""),
            (":a", "parse \":a\": missing protocol scheme"),
            ("http://[::1", "parse \"http://[::1\": missing ']' in host"),
        ] {
            assert_eq!(parse_request_uri(text).unwrap_err(), want);
        }
    }
}
