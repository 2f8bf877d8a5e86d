//! IP addresses and prefixes as Go's `net/netip` reads them.

use pintle_apimachinery::field::go_quote;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An address, maybe with a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addr {
    /// IPv4.
    V4(Ipv4Addr),
    /// IPv6 and its zone, which is empty for most.
    V6(Ipv6Addr, String),
}

impl std::fmt::Display for Addr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Addr::V4(addr) => addr.fmt(f),
            Addr::V6(addr, zone) if zone.is_empty() => addr.fmt(f),
            Addr::V6(addr, zone) => write!(f, "{addr}%{zone}"),
        }
    }
}

impl Addr {
    /// Whether it is an IPv4 address written as IPv6 (`::ffff:1.2.3.4`).
    pub fn is_4_in_6(&self) -> bool {
        matches!(self, Addr::V6(addr, _) if addr.to_ipv4_mapped().is_some())
    }

    /// Whether it has a zone.
    pub fn has_zone(&self) -> bool {
        matches!(self, Addr::V6(_, zone) if !zone.is_empty())
    }

    /// The bits, 32 or 128 of them.
    pub fn bits(&self) -> u128 {
        match self {
            Addr::V4(addr) => u128::from(addr.to_bits()),
            Addr::V6(addr, _) => addr.to_bits(),
        }
    }

    /// 32 or 128.
    pub fn bit_len(&self) -> u32 {
        match self {
            Addr::V4(_) => 32,
            Addr::V6(..) => 128,
        }
    }
}

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address as given, host bits included.
    pub addr: Addr,
    /// How many bits count.
    pub bits: u32,
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

impl Prefix {
    fn mask(&self) -> u128 {
        let len = self.addr.bit_len();
        let all = if len == 32 { u128::from(u32::MAX) } else { u128::MAX };
        if self.bits == 0 { 0 } else { (all << (len - self.bits)) & all }
    }

    /// The network without host bits.
    #[must_use]
    pub fn masked(&self) -> Prefix {
        let bits = self.addr.bits() & self.mask();
        let addr = match self.addr {
            #[expect(clippy::cast_possible_truncation, reason = "an IPv4 address has 32 bits")]
            Addr::V4(_) => Addr::V4(Ipv4Addr::from_bits(bits as u32)),
            Addr::V6(..) => Addr::V6(Ipv6Addr::from_bits(bits), String::new()),
        };
        Prefix { addr, bits: self.bits }
    }

    /// Whether `addr` is of this network.
    pub fn contains(&self, addr: &Addr) -> bool {
        !addr.has_zone()
            && addr.bit_len() == self.addr.bit_len()
            && addr.bits() & self.mask() == self.addr.bits() & self.mask()
    }
}

fn fault(text: &str, why: &str, at: &str) -> String {
    let place = if at.is_empty() { String::new() } else { format!(" (at {})", go_quote(at)) };
    format!("ParseAddr({}): {why}{place}", go_quote(text))
}

/// Reads an address.
///
/// # Errors
/// Go's text when `text` is none.
pub fn parse_addr(text: &str) -> Result<Addr, String> {
    for byte in text.bytes() {
        match byte {
            b'.' => return parse_v4_fields(text, text).map(|fields| Addr::V4(Ipv4Addr::from(fields))),
            b':' => return parse_v6(text),
            b'%' => return Err(fault(text, "missing IPv6 address", "")),
            _ => {}
        }
    }
    Err(fault(text, "unable to parse IP", ""))
}

/// The four numbers of `part`; `text` is the whole for errors.
fn parse_v4_fields(text: &str, part: &str) -> Result<[u8; 4], String> {
    let mut fields = [0u8; 4];
    let (mut value, mut position, mut n_digits) = (0u32, 0, 0);
    let bytes = part.as_bytes();
    for (idx, &byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if n_digits == 1 && value == 0 {
                    return Err(fault(text, "IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u32::from(byte - b'0');
                n_digits += 1;
                if value > 255 {
                    return Err(fault(text, "IPv4 field has value >255", ""));
                }
            }
            b'.' => {
                if idx == 0 || idx == bytes.len() - 1 || bytes[idx - 1] == b'.' {
                    return Err(fault(text, "IPv4 field must have at least one digit", &part[idx..]));
                }
                if position == 3 {
                    return Err(fault(text, "IPv4 address too long", ""));
                }
                fields[position] = u8::try_from(value).unwrap_or_default();
                position += 1;
                value = 0;
                n_digits = 0;
            }
            _ => {
                let at = (idx..part.len()).find(|i| part.is_char_boundary(*i)).unwrap_or(idx);
                return Err(fault(text, "unexpected character", part.get(at..).unwrap_or_default()));
            }
        }
    }
    if position < 3 {
        return Err(fault(text, "IPv4 address too short", ""));
    }
    fields[3] = u8::try_from(value).unwrap_or_default();
    Ok(fields)
}

fn parse_v6(text: &str) -> Result<Addr, String> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(fault(text, "zone must be a non-empty string", "")),
        Some((rest, zone)) => (rest, zone),
        None => (text, ""),
    };
    let zoned = |octets: [u8; 16]| Addr::V6(Ipv6Addr::from(octets), zone.to_owned());
    let mut octets = [0u8; 16];
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(zoned(octets));
        }
    }
    let mut filled = 0;
    while filled < 16 {
        let n_hex = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if n_hex > 4 {
            return Err(fault(text, "each group must have 4 or less digits", rest));
        }
        if n_hex == 0 {
            return Err(fault(text, "each colon-separated field must have at least one digit", rest));
        }
        if rest[n_hex..].starts_with('.') {
            if ellipsis.is_none() && filled != 12 {
                return Err(fault(text, "embedded IPv4 address must replace the final 2 fields of the address", rest));
            }
            if filled + 4 > 16 {
                return Err(fault(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest));
            }
            octets[filled..filled + 4].copy_from_slice(&parse_v4_fields(text, rest)?);
            rest = "";
            filled += 4;
            break;
        }
        let group = u16::from_str_radix(&rest[..n_hex], 16).unwrap_or_default();
        octets[filled..filled + 2].copy_from_slice(&group.to_be_bytes());
        filled += 2;
        rest = &rest[n_hex..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(fault(text, "unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(fault(text, "colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(fault(text, "multiple :: in address", rest));
            }
            ellipsis = Some(filled);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(fault(text, "trailing garbage after address", rest));
    }
    match ellipsis {
        None if filled < 16 => return Err(fault(text, "address string too short", "")),
        Some(_) if filled == 16 => {
            return Err(fault(text, "the :: must expand to at least one field of zeros", ""));
        }
        Some(at) => {
            octets.copy_within(at..filled, 16 - (filled - at));
            octets[at..16 - (filled - at)].fill(0);
        }
        None => {}
    }
    Ok(zoned(octets))
}

/// Reads a prefix such as `10.0.0.0/8`.
///
/// # Errors
/// Go's text when `text` is none.
pub fn parse_prefix(text: &str) -> Result<Prefix, String> {
    let fault = |why: &str| format!("netip.ParsePrefix({}): {why}", go_quote(text));
    let Some((addr, bits)) = text.rsplit_once('/') else { return Err(fault("no '/'")) };
    let addr = parse_addr(addr).map_err(|e| fault(&e))?;
    if matches!(&addr, Addr::V6(_, zone) if !zone.is_empty()) {
        return Err(fault("IPv6 zones cannot be present in a prefix"));
    }
    let bad = || fault(&format!("bad bits after slash: {}", go_quote(bits)));
    if bits.len() > 1 && !matches!(bits.as_bytes()[0], b'1'..=b'9') {
        return Err(bad());
    }
    let n_bits: i64 = if bits.starts_with('+') { return Err(bad()) } else { bits.parse().map_err(|_| bad())? };
    match u32::try_from(n_bits) {
        Ok(n_bits) if n_bits <= addr.bit_len() => Ok(Prefix { addr, bits: n_bits }),
        _ => Err(fault("prefix length out of range")),
    }
}

/// Reads an IPv4 address as old versions of Go did: leading zeros are fine.
pub fn parse_v4_sloppy(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        // more than three digits can still be a small number
        *octet = part
            .trim_start_matches('0')
            .parse()
            .or_else(|_| if part.bytes().all(|b| b == b'0') { Ok(0) } else { Err(()) })
            .ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, want) in [
            ("1.2.3.4", "1.2.3.4"),
            ("::1", "::1"),
            ("::", "::"),
            ("2001:DB8::0:1", "2001:db8::1"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("fe80::1%eth0", "fe80::1%eth0"),
            ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("1::8", "1::8"),
            ("1:2::", "1:2::"),
        ] {
            assert_eq!(parse_addr(text).map(|a| a.to_string()).as_deref(), Ok(want));
        }
        for (text, want) in [
            ("", "ParseAddr(\"\"): unable to parse IP"),
            ("1.2.3", "ParseAddr(\"1.2.3\"): IPv4 address too short"),
            ("01.2.3.4", "ParseAddr(\"01.2.3.4\"): IPv4 field has octet with leading zero"),
            ("1.2.3.x", "ParseAddr(\"1.2.3.x\"): unexpected character (at \"x\")"),
            ("1.2.3.", "ParseAddr(\"1.2.3.\"): IPv4 field must have at least one digit (at \".\")"),
            ("::1::", "ParseAddr(\"::1::\"): multiple :: in address (at \":\")"),
            ("1:2", "ParseAddr(\"1:2\"): address string too short"),
            ("%a", "ParseAddr(\"%a\"): missing IPv6 address"),
        ] {
            assert_eq!(parse_addr(text).unwrap_err(), want);
        }
    }

    #[test]
    fn prefixes() {
        let prefix = parse_prefix("10.1.2.3/8").unwrap();
        assert_eq!(prefix.masked().to_string(), "10.0.0.0/8");
        assert!(
            prefix.contains(&parse_addr("10.255.0.1").unwrap()) && !prefix.contains(&parse_addr("11.0.0.1").unwrap())
        );
        assert_eq!(parse_prefix("::1/0").unwrap().masked().to_string(), "::/0");
        assert_eq!(parse_prefix("1.2.3.4").unwrap_err(), "netip.ParsePrefix(\"1.2.3.4\"): no '/'");
        assert_eq!(
            parse_prefix("1.2.3.4/33").unwrap_err(),
            "netip.ParsePrefix(\"1.2.3.4/33\"): prefix length out of range"
        );
        assert_eq!(
            parse_prefix("1.2.3.4/08").unwrap_err(),
            "netip.ParsePrefix(\"1.2.3.4/08\"): bad bits after slash: \"08\""
        );
        assert_eq!(parse_v4_sloppy("010.000.0.1").map(|a| a.to_string()).as_deref(), Some("10.0.0.1"));
    }
}
