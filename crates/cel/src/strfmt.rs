//! The formats of strings that schemas may ask for. Unknown ones are ignored.
//!
//! Follows: kube-openapi/pkg/validation/strfmt and the formats that apiextensions supports (v0.35).

use crate::golang::{duration, ip, url};
use jiff::civil::Date;
use pintle_apimachinery::names;
use regex::Regex;
use std::sync::LazyLock;

/// Tells whether a text has a format.
pub type Check = fn(&str) -> bool;

/// The check of a format; `None` for one that is not known. Dashes in the name do not matter.
pub fn check_of(format: &str) -> Option<Check> {
    if format.is_empty() {
        return None;
    }
    let name = format.replace('-', "");
    CHECKS.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}

const CHECKS: &[(&str, Check)] = &[
    ("bsonobjectid", |s| s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit())),
    ("uri", |s| url::parse_request_uri(s).is_ok()),
    ("email", is_email),
    ("hostname", is_hostname),
    ("ipv4", |s| is_ip(s) && s.contains('.')),
    ("ipv6", |s| s.contains(':') && matches!(ip::parse_addr(s), Ok(ip::Addr::V6(_, zone)) if zone.is_empty())),
    ("cidr", is_cidr),
    ("mac", is_mac),
    ("uuid", |s| is_uuid(s, None, false)),
    ("uuid3", |s| is_uuid(s, Some(b'3'), false)),
    ("uuid4", |s| is_uuid(s, Some(b'4'), true)),
    ("uuid5", |s| is_uuid(s, Some(b'5'), true)),
    ("isbn", |s| is_isbn10(s) || is_isbn13(s)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("creditcard", is_credit_card),
    ("ssn", |s| s.len() == 11 && matches(&SSN, s)),
    ("hexcolor", |s| matches(&HEX_COLOR, s)),
    ("rgbcolor", |s| matches(&RGB_COLOR, s)),
    ("byte", |s| matches(&BASE64, s)),
    ("password", |_| true),
    ("date", is_date),
    ("duration", is_duration),
    ("datetime", is_date_time),
    ("k8sshortname", |s| s.len() <= 63 && names::dns1123_label(s).is_empty()),
    ("k8slongname", |s| names::dns1123_subdomain(s).is_empty()),
];

/// An expression that is known to compile; were it not, nothing would match.
type Known = LazyLock<Option<Regex>>;

fn matches(known: &Known, text: &str) -> bool {
    known.as_ref().is_some_and(|regex| regex.is_match(text))
}

static SSN: Known = LazyLock::new(|| Regex::new(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static HEX_COLOR: Known = LazyLock::new(|| Regex::new(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$").ok());
static BASE64: Known = LazyLock::new(|| {
    Regex::new(r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").ok()
});
static RGB_COLOR: Known = LazyLock::new(|| {
    let byte = r"(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    Regex::new(&format!(r"^rgb\([ \t\n\x0c\r]*{byte}[ \t\n\x0c\r]*,[ \t\n\x0c\r]*{byte}[ \t\n\x0c\r]*,[ \t\n\x0c\r]*{byte}[ \t\n\x0c\r]*\)$")).ok()
});
static CREDIT_CARD: Known = LazyLock::new(|| {
    Regex::new(concat!(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
    .ok()
});
static HOSTNAME: Known = LazyLock::new(|| {
    let letter = r"a-zA-Z0-9\p{S}\p{L}";
    Regex::new(&format!(
        r"^([{letter}]((-?[{letter}]{{0,62}})?)|([{letter}](([{letter}\-]{{0,61}}[{letter}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
    .ok()
});
static DATE_TIME: Known =
    LazyLock::new(|| Regex::new(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$").ok());

/// An IP address in Go's old reading: leading zeros are fine, zones are not.
fn is_ip(text: &str) -> bool {
    if !text.contains(':') {
        return ip::parse_v4_sloppy(text).is_some();
    }
    matches!(ip::parse_addr(text), Ok(ip::Addr::V6(_, zone)) if zone.is_empty())
}

fn is_cidr(text: &str) -> bool {
    let Some((addr, bits)) = text.split_once('/') else { return false };
    let bits_max = if addr.contains(':') { 128 } else { 32 };
    let is_number = !bits.is_empty() && bits.bytes().all(|b| b.is_ascii_digit());
    is_ip(addr) && is_number && bits.parse::<u32>().is_ok_and(|n| n <= bits_max)
}

fn is_hostname(text: &str) -> bool {
    matches(&HOSTNAME, text) && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

/// `8-4-4-4-12` hexadecimal digits with optional dashes; some versions fix a digit, some also the variant.
fn is_uuid(text: &str, version: Option<u8>, has_variant: bool) -> bool {
    let mut digits = Vec::with_capacity(32);
    let mut rest = text;
    for (idx, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if idx > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(group) = rest.get(..len) else { return false };
        digits.extend(group.bytes());
        rest = &rest[len..];
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| digits[12] == version)
        && (!has_variant || matches!(digits[16], b'8' | b'9' | b'a' | b'b' | b'A' | b'B'))
}

/// 6, 8 or 20 bytes: pairs of hexadecimal digits with `:` or `-` between, or fours with `.`.
fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (separator, width) = match bytes {
        [_, _, b':', ..] => (':', 2),
        [_, _, b'-', ..] => ('-', 2),
        [_, _, _, _, b'.', ..] => ('.', 4),
        _ => return false,
    };
    let groups: Vec<&str> = text.split(separator).collect();
    let is_hex = |group: &&str| group.len() == width && group.bytes().all(|b| b.is_ascii_hexdigit());
    groups.iter().all(is_hex) && matches!(groups.len() * width / 2, 6 | 8 | 20)
}

fn is_isbn10(text: &str) -> bool {
    let clean: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'-').collect();
    if clean.len() != 10
        || !clean[..9].iter().all(u8::is_ascii_digit)
        || !(clean[9].is_ascii_digit() || clean[9] == b'X')
    {
        return false;
    }
    let digit = |b: u8| if b == b'X' { 10 } else { u32::from(b - b'0') };
    (1u32..).zip(&clean).map(|(weight, b)| weight * digit(*b)).sum::<u32>() % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let clean: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'-').collect();
    if clean.len() != 13 || !clean.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = clean.iter().take(12).zip([1, 3].into_iter().cycle()).map(|(b, w)| w * u32::from(b - b'0')).sum();
    u32::from(clean[12] - b'0') == (10 - sum % 10) % 10
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = |(idx, b): (usize, u8)| {
        let digit = u32::from(b - b'0');
        match idx % 2 {
            0 => digit,
            _ if digit >= 5 => digit * 2 - 9,
            _ => digit * 2,
        }
    };
    matches(&CREDIT_CARD, &digits) && digits.bytes().rev().enumerate().map(luhn).sum::<u32>() % 10 == 0
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(idx, b)| if idx == 4 || idx == 7 { *b == b'-' } else { b.is_ascii_digit() });
    is_shaped && text.parse::<Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let is_below = |range: std::ops::Range<usize>, max: &str| time.get(range).is_some_and(|part| part <= max);
    text.len() >= 4
        && is_date(date)
        && matches(&DATE_TIME, time)
        && is_below(0..2, "23")
        && is_below(3..5, "59")
        && is_below(6..8, "59")
}

fn is_duration(text: &str) -> bool {
    duration::parse_loose(text).is_ok()
}

/// The address of `name <local@domain>` or `local@domain`, as Go's `mail.ParseAddress` finds one.
fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    let address = match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((name, address)) => {
            let name = name.trim_matches([' ', '\t']);
            let is_quoted = name.len() >= 2 && name.starts_with('"') && name.ends_with('"');
            if !is_quoted && !name.chars().all(|c| is_atom_char(c) || matches!(c, ' ' | '\t' | '.')) {
                return false;
            }
            address
        }
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    is_local_part(local) && is_domain(domain)
}

fn is_atom_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.chars().all(is_atom_char))
}

fn is_local_part(text: &str) -> bool {
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => !quoted.is_empty() && !quoted.replace("\\\\", "").replace("\\\"", "").contains(['"', '\\']),
        None => is_dot_atom(text),
    }
}

fn is_domain(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(literal) => is_ip(literal),
        None => is_dot_atom(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_takes_and_refuses() {
        for (format, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
            ("uri", "https://example.com/x", "not a uri"),
            ("email", "a@example.com", "nobody"),
            ("email", "Ann <a@example.com>", "a@b@"),
            ("hostname", "example.com", "-"),
            ("hostname", "a", "a_b.com"),
            ("ipv4", "010.1.2.3", "300.1.1.1"),
            ("ipv6", "::1", "1.2.3.4"),
            ("cidr", "10.0.0.0/8", "10.0.0.0"),
            ("cidr", "::/0", "10.0.0.0/33"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("mac", "0123.4567.89ab", "0123.4567"),
            ("uuid", "123E4567-e89b12d3-a456-426614174000", "not-a-uuid"),
            ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
            ("isbn10", "0-321-75104-3", "0-321-75104-4"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("ssn", "111-22-3333", "111223333"),
            ("hexcolor", "#FFF", "#FF"),
            ("rgbcolor", "rgb(1, 2, 255)", "rgb(1,2,256)"),
            ("byte", "AAE=", "***"),
            ("date", "2020-02-29", "2021-02-29"),
            ("date-time", "2020-01-02T03:04:05.6z", "yesterday"),
            ("datetime", "2020-01-02T03:04:05+01:00", "2020-01-02T24:04:05Z"),
            ("duration", "2 weeks", "soon"),
            ("duration", "1h5m", "5"),
            ("k8s-short-name", "a-b", "a.b"),
            ("k8s-long-name", "a.b", "A"),
        ] {
            let check = check_of(format).unwrap();
            assert!(check(good), "{format} takes {good}");
            assert!(!check(bad), "{format} refuses {bad}");
        }
        assert!(check_of("nonsense").is_none() && check_of("int32").is_none());
    }
}
