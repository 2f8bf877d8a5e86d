//! Addresses and networks.

use crate::eval::value::Library;
use crate::eval::{Eval, Failure, Native, Val};
use crate::golang::ip::{self, Addr, Prefix};
use pintle_apimachinery::field::go_quote;

/// The function of a name.
pub(super) fn native(name: &str) -> Option<Native> {
    Some(match name {
        "ip" => |args| match args {
            [Val::String(text)] => Ok(address(parse_ip(text.as_str()).map_err(Failure::text)?)),
            [value] => Ok(address(network(value)?.addr)),
            _ => Err(Failure::NoOverload),
        },
        "cidr" => |args| match args {
            [Val::String(text)] => {
                let prefix = parse_cidr(text.as_str()).map_err(in_conversion)?;
                Ok(Val::library(Library::Cidr(prefix)))
            }
            _ => Err(Failure::NoOverload),
        },
        "isIP" => |args| text(args, |text| Val::Bool(parse_ip(text).is_ok())),
        "isCIDR" => |args| text(args, |text| Val::Bool(parse_cidr(text).is_ok())),
        "ip.isCanonical" => |args| {
            let [Val::String(text)] = args else { return Err(Failure::NoOverload) };
            let addr = parse_ip(text.as_str()).map_err(Failure::text)?;
            Ok(Val::Bool(addr.to_string() == text.as_str()))
        },
        "family" => |args| of(args, |addr| Val::Int(if addr.bit_len() == 32 { 4 } else { 6 })),
        "isUnspecified" => |args| of(args, |addr| Val::Bool(addr.bits() == 0)),
        "isLoopback" => |args| of(args, |addr| Val::Bool(is_loopback(addr))),
        "isLinkLocalMulticast" => |args| of(args, |addr| Val::Bool(is_link_local_multicast(addr))),
        "isLinkLocalUnicast" => |args| of(args, |addr| Val::Bool(is_link_local_unicast(addr))),
        "isGlobalUnicast" => |args| of(args, |addr| Val::Bool(is_global_unicast(addr))),
        "masked" => |args| match args {
            [value] => Ok(Val::library(Library::Cidr(network(value)?.masked()))),
            _ => Err(Failure::NoOverload),
        },
        "prefixLength" => |args| match args {
            [value] => Ok(Val::Int(i64::from(network(value)?.bits))),
            _ => Err(Failure::NoOverload),
        },
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        _ => return None,
    })
}

fn address<'v>(addr: Addr) -> Val<'v> {
    Val::library(Library::Ip(addr))
}

fn text<'v>(args: &[Val<'v>], how: impl Fn(&str) -> Val<'v>) -> Eval<Val<'v>> {
    match args {
        [Val::String(text)] => Ok(how(text.as_str())),
        _ => Err(Failure::NoOverload),
    }
}

fn of<'v>(args: &[Val<'v>], how: impl Fn(&Addr) -> Val<'v>) -> Eval<Val<'v>> {
    match args {
        [Val::Library(library)] => match library.as_ref() {
            Library::Ip(addr) => Ok(how(addr)),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn network(value: &Val<'_>) -> Eval<Prefix> {
    match value {
        Val::Library(library) => match library.as_ref() {
            Library::Cidr(prefix) => Ok(prefix.clone()),
            _ => Err(Failure::NoOverload),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn contains_ip<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let [net, other] = args else { return Err(Failure::NoOverload) };
    let net = network(net)?;
    let addr = match other {
        Val::String(text) => parse_ip(text.as_str()).map_err(Failure::text)?,
        Val::Library(library) => match library.as_ref() {
            Library::Ip(addr) => addr.clone(),
            _ => return Err(Failure::NoOverload),
        },
        _ => return Err(Failure::NoOverload),
    };
    Ok(Val::Bool(net.contains(&addr)))
}

fn contains_cidr<'v>(args: &mut [Val<'v>]) -> Eval<Val<'v>> {
    let [net, other] = args else { return Err(Failure::NoOverload) };
    let net = network(net)?;
    let other = match other {
        Val::String(text) => parse_cidr(text.as_str()).map_err(in_conversion)?,
        other => network(other)?,
    };
    let is_same_family = net.addr.bit_len() == other.addr.bit_len();
    Ok(Val::Bool(is_same_family && net.bits <= other.bits && net.contains(&other.addr)))
}

fn in_conversion(why: String) -> Failure {
    Failure::text(format!("network address parse error during conversion from string: {why}"))
}

fn parse_ip(text: &str) -> Result<Addr, String> {
    let quoted = || go_quote(text);
    let addr = ip::parse_addr(text)
        .map_err(|why| format!("IP Address {} parse error during conversion from string: {why}", quoted()))?;
    if addr.has_zone() {
        return Err(format!("IP address {} with zone value is not allowed", quoted()));
    }
    if addr.is_4_in_6() {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted()));
    }
    Ok(addr)
}

fn parse_cidr(text: &str) -> Result<Prefix, String> {
    let prefix = ip::parse_prefix(text)
        .map_err(|why| format!("network address parse error during conversion from string: {why}"))?;
    if prefix.addr.is_4_in_6() {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text)));
    }
    Ok(prefix)
}

/// The leading bits of an address, of four or sixteen bytes.
fn leading(addr: &Addr, bits: u32) -> u128 {
    addr.bits() >> (addr.bit_len() - bits)
}

fn is_loopback(addr: &Addr) -> bool {
    if addr.bit_len() == 32 { leading(addr, 8) == 127 } else { addr.bits() == 1 }
}

fn is_link_local_multicast(addr: &Addr) -> bool {
    if addr.bit_len() == 32 { leading(addr, 24) == 0xe0_0000 } else { leading(addr, 16) & 0xff0f == 0xff02 }
}

fn is_link_local_unicast(addr: &Addr) -> bool {
    if addr.bit_len() == 32 { leading(addr, 16) == 0xa9fe } else { leading(addr, 10) == 0x3fa }
}

fn is_global_unicast(addr: &Addr) -> bool {
    let is_multicast = if addr.bit_len() == 32 { leading(addr, 4) == 0xe } else { leading(addr, 8) == 0xff };
    let is_broadcast = addr.bit_len() == 32 && addr.bits() == 0xffff_ffff;
    addr.bits() != 0 && !is_multicast && !is_broadcast && !is_loopback(addr) && !is_link_local_unicast(addr)
}
