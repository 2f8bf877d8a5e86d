//! IP addresses and CIDR blocks: the lenient reading of old fields, the strict one of new fields, and the warnings
//! about what the lenient one lets through.
//!
//! Follows: apimachinery/pkg/util/validation/ip.go and k8s.io/utils/net (the parsers of Go before 1.17, which allow
//! leading zeros).

use super::At;
use pintle_apimachinery::field::go_quote;
use pintle_apimachinery::{ErrorList, Path};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const NOT_AN_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NOT_A_CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const NOT_AN_INTERFACE: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";

/// A CIDR block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address as written.
    pub ip: IpAddr,
    /// The number of bits of the network.
    pub prefix_len: u8,
    /// Whether the block was written in the IPv6 form, as an IPv4 address mapped into IPv6 is.
    is_v6_form: bool,
}

impl Cidr {
    /// The first address of the block.
    pub fn network(&self) -> IpAddr {
        match self.ip {
            IpAddr::V4(ip) => {
                let len = if self.is_v6_form { self.prefix_len.saturating_sub(96) } else { self.prefix_len };
                let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or_default();
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_len)).unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        }
    }

    /// Whether `ip` lies in the block.
    pub fn contains(&self, ip: IpAddr) -> bool {
        Cidr { ip, ..*self }.network() == self.network() && ip.is_ipv4() == self.ip.is_ipv4()
    }

    /// The number of bits of the network as Go counts them: of the address's own family.
    pub fn mask_len(&self) -> u8 {
        if self.is_v6_form && self.ip.is_ipv4() { self.prefix_len.saturating_sub(96) } else { self.prefix_len }
    }

    /// The block as Go prints it.
    pub fn canonical(&self) -> String {
        format!("{}/{}", self.network(), self.mask_len())
    }
}

/// Reads an address as Go before 1.17 did: leading zeros are ignored. IPv4 mapped into IPv6 is IPv4.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    let ip: IpAddr = match text.parse() {
        Ok(ip) => ip,
        Err(_) => without_leading_zeros(text)?.parse().ok()?,
    };
    Some(ip.to_canonical())
}

/// Reads a CIDR block as [`parse_ip`] reads addresses.
pub fn parse_cidr(text: &str) -> Option<Cidr> {
    let (address, len) = text.split_once('/')?;
    let is_number = !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit());
    let prefix_len: u8 = if is_number { trim_zeros(len).parse().ok()? } else { return None };
    let ip = parse_ip(address)?;
    let is_v6_form = address.contains(':');
    let len_max = if is_v6_form { 128 } else { 32 };
    (prefix_len <= len_max).then_some(Cidr { ip, prefix_len, is_v6_form })
}

/// The text with the leading zeros of each number gone; `None` when there is nothing to take away.
fn without_leading_zeros(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(['.', ':']) {
        let (digits, separator) = match part.strip_suffix(['.', ':']) {
            Some(digits) => (digits, &part[digits.len()..]),
            None => (part, ""),
        };
        out.push_str(trim_zeros(digits));
        out.push_str(separator);
    }
    (out.len() < text.len()).then_some(out)
}

fn trim_zeros(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" => &digits[digits.len().saturating_sub(1)..],
        rest => rest,
    }
}

/// Whether the strict parser reads the text, and not as IPv4 mapped into IPv6.
fn is_strict_ip(text: &str) -> bool {
    matches!(text.parse::<IpAddr>(), Ok(ip) if ip == ip.to_canonical())
}

fn is_strict_cidr_text(text: &str) -> bool {
    text.split_once('/').is_some_and(|(ip, len)| ip.parse::<IpAddr>().is_ok() && trim_zeros(len) == len)
}

/// An address in a field that predates strict validation. `kept` are values of the old object that may stay.
pub fn ip_legacy<'k>(at: &At<'_>, kept: impl IntoIterator<Item = &'k str>, errors: &mut ErrorList) {
    let text = at.text();
    if parse_ip(text).is_none() && !kept.into_iter().any(|old| old == text) {
        errors.push(at.invalid(NOT_AN_IP));
    }
}

/// An address in canonical form.
pub fn ip_strict(at: &At<'_>, errors: &mut ErrorList) {
    let text = at.text();
    let Some(ip) = parse_ip(text) else {
        errors.push(at.invalid(NOT_AN_IP));
        return;
    };
    let n_before = errors.len();
    match text.parse::<IpAddr>() {
        Err(_) => errors.push(at.invalid("must not have leading 0s")),
        Ok(strict) if strict != ip => errors.push(at.invalid("must not be an IPv4-mapped IPv6 address")),
        Ok(_) => {}
    }
    let canonical = ip.to_string();
    if errors.len() == n_before && text != canonical {
        errors.push(at.invalid(format!("must be in canonical form ({})", go_quote(&canonical))));
    }
}

/// An address that traffic can be sent to, for endpoints and external addresses.
pub fn validate_endpoint_ip(at: &At<'_>, errors: &mut ErrorList) {
    let text = at.text();
    let Some(ip) = parse_ip(text) else {
        errors.push(at.invalid("must be a valid IP address"));
        return;
    };
    let (is_link_local, is_link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        errors.push(at.invalid(format!("may not be unspecified ({text})")));
    }
    if ip.is_loopback() {
        errors.push(at.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if is_link_local {
        errors.push(at.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if is_link_local_multicast {
        errors.push(at.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
}

/// A CIDR block in a field that predates strict validation. `kept` are values of the old object that may stay.
pub fn cidr_legacy<'k>(at: &At<'_>, kept: impl IntoIterator<Item = &'k str>, errors: &mut ErrorList) {
    let text = at.text();
    if parse_cidr(text).is_none() && !kept.into_iter().any(|old| old == text) {
        errors.push(at.invalid(NOT_A_CIDR));
    }
}

/// A CIDR block in canonical form, without bits beyond the prefix.
pub fn cidr_strict(at: &At<'_>, errors: &mut ErrorList) {
    let text = at.text();
    let Some(cidr) = parse_cidr(text) else {
        errors.push(at.invalid(NOT_A_CIDR));
        return;
    };
    if !is_strict_cidr_text(text) {
        errors.push(at.invalid("must not have leading 0s in IP or prefix length"));
    } else if cidr.is_v6_form && cidr.ip.is_ipv4() {
        errors.push(at.invalid("must not have an IPv4-mapped IPv6 address"));
    } else if cidr.ip != cidr.network() {
        errors.push(at.invalid("must not have bits set beyond the prefix length"));
    } else if text != cidr.canonical() {
        errors.push(at.invalid(format!("must be in canonical form ({})", go_quote(&cidr.canonical()))));
    }
}

/// An address with the length of its subnet, in canonical form.
pub fn interface_address(at: &At<'_>, errors: &mut ErrorList) {
    let text = at.text();
    let Some(cidr) = parse_cidr(text) else {
        errors.push(at.invalid(NOT_AN_INTERFACE));
        return;
    };
    let len = if cidr.ip.is_ipv4() && cidr.prefix_len > 32 { cidr.prefix_len - 96 } else { cidr.prefix_len };
    let canonical = format!("{}/{len}", cidr.ip);
    if text != canonical {
        errors.push(at.invalid(format!("must be in canonical form ({})", go_quote(&canonical))));
    }
}

/// What to warn of in an address that [`ip_legacy`] let through.
pub fn warn_of_ip(text: &str, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(ip) = parse_ip(text) else { return };
    let (shown, canonical) = (go_quote(text), go_quote(&ip.to_string()));
    if !is_strict_ip(text) {
        warnings.push(format!(
            "{path}: non-standard IP address {shown} will be considered invalid in a future Kubernetes release: use {canonical}"
        ));
    } else if ip.is_ipv6() && shown != canonical {
        warnings.push(format!("{path}: IPv6 address {shown} should be in RFC 5952 canonical format ({canonical})"));
    }
}

/// What to warn of in a block that [`cidr_legacy`] let through.
pub fn warn_of_cidr(text: &str, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Some(cidr) = parse_cidr(text) else { return };
    let (shown, canonical) = (go_quote(text), go_quote(&cidr.canonical()));
    let n_before = warnings.len();
    if cidr.ip != cidr.network() {
        let len = if cidr.is_v6_form { 128 } else { 32 };
        let single = go_quote(&format!("{}/{len}", cidr.ip));
        warnings.push(format!(
            "{path}: CIDR value {shown} is ambiguous in this context (should be {canonical} or {single}?)"
        ));
    }
    if !is_strict_cidr_text(text) || (cidr.is_v6_form && cidr.ip.is_ipv4()) {
        warnings.push(format!(
            "{path}: non-standard CIDR value {shown} will be considered invalid in a future Kubernetes release: use {canonical}"
        ));
    }
    if warnings.len() == n_before && cidr.ip.is_ipv6() && shown != canonical {
        warnings.push(format!("{path}: IPv6 CIDR value {shown} should be in RFC 5952 canonical format ({canonical})"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use pintle_apimachinery::Value;
    use std::fmt::Write as _;

    fn check(inputs: &[&str], rule: impl Fn(&At<'_>, &mut ErrorList), expected: Expect) {
        let mut told = String::new();
        for input in inputs {
            let value = Value::from(*input);
            let mut errors = ErrorList::new();
            rule(&At::new(&value, Path::new("ip")), &mut errors);
            let texts: Vec<String> = errors.iter().map(|e| e.detail.clone()).collect();
            writeln!(told, "{input}: {}", texts.join("; ")).unwrap();
        }
        expected.assert_eq(&told);
    }

    #[test]
    fn addresses() {
        check(
            &[
                "10.0.0.1",
                "010.0.0.1",
                "::ffff:1.2.3.4",
                "fe80::abc",
                "FE80:0:0:0:0:0:0:0abc",
                "1.2.3",
                "1::2::3",
                "fe80::1%eth0",
                "",
                "256.1.1.1",
            ],
            ip_strict,
            expect![[r#"
                10.0.0.1: 
                010.0.0.1: must not have leading 0s
                ::ffff:1.2.3.4: must not be an IPv4-mapped IPv6 address
                fe80::abc: 
                FE80:0:0:0:0:0:0:0abc: must be in canonical form ("fe80::abc")
                1.2.3: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                1::2::3: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                fe80::1%eth0: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                : must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                256.1.1.1: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
            "#]],
        );
    }

    #[test]
    fn blocks() {
        check(
            &[
                "10.0.0.0/8",
                "10.0.0.1/8",
                "010.0.0.0/8",
                "10.0.0.0/08",
                "::/0",
                "0.0.0.0/0",
                "2001:DB8::/32",
                "10.0.0.0/33",
                "10.0.0.0",
                "::ffff:10.0.0.0/104",
            ],
            cidr_strict,
            expect![[r#"
                10.0.0.0/8: 
                10.0.0.1/8: must not have bits set beyond the prefix length
                010.0.0.0/8: must not have leading 0s in IP or prefix length
                10.0.0.0/08: must not have leading 0s in IP or prefix length
                ::/0: 
                0.0.0.0/0: 
                2001:DB8::/32: must be in canonical form ("2001:db8::/32")
                10.0.0.0/33: must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
                10.0.0.0: must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
                ::ffff:10.0.0.0/104: must not have an IPv4-mapped IPv6 address
            "#]],
        );
    }

    #[test]
    fn warnings() {
        let mut told = Vec::new();
        for ip in ["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4", "fe80:0::1"] {
            warn_of_ip(ip, &Path::new("ip"), &mut told);
        }
        for cidr in ["10.0.0.0/8", "10.1.0.0/8", "2001:db8::1/64", "2001:DB8::/64", "::ffff:10.0.0.0/104"] {
            warn_of_cidr(cidr, &Path::new("cidr"), &mut told);
        }
        expect![[r#"
            ip: non-standard IP address "010.0.0.1" will be considered invalid in a future Kubernetes release: use "10.0.0.1"
            ip: non-standard IP address "::ffff:1.2.3.4" will be considered invalid in a future Kubernetes release: use "1.2.3.4"
            ip: IPv6 address "fe80:0::1" should be in RFC 5952 canonical format ("fe80::1")
            cidr: CIDR value "10.1.0.0/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.1.0.0/32"?)
            cidr: CIDR value "2001:db8::1/64" is ambiguous in this context (should be "2001:db8::/64" or "2001:db8::1/128"?)
            cidr: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")
            cidr: non-standard CIDR value "::ffff:10.0.0.0/104" will be considered invalid in a future Kubernetes release: use "10.0.0.0/8"
        "#]]
        .assert_eq(&(told.join("\n") + "\n"));
    }
}
