//! IP addresses.

use std::net::IpAddr;

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::{Special, Val};

macro_rules! question {
    ($name:literal, $id:literal, $answer:expr) => {
        Decl {
            name: $name,
            call: |_, args| match args.first().and_then(Val::as_special) {
                Some(Special::Ip(ip)) => Ok(Val::Bool($answer(ip))),
                _ => no_such_overload(),
            },
            overloads: &[($id, ".ip -> bool")],
        }
    };
}

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "ip",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::special(Special::Ip(parse(text.as_str())?))),
            _ => no_such_overload(),
        },
        overloads: &[("string_to_ip", "string -> ip")],
    },
    Decl {
        name: "isIP",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::Bool(parse(text.as_str()).is_ok())),
            _ => no_such_overload(),
        },
        overloads: &[("is_ip", "string -> bool")],
    },
    Decl {
        name: "ip.isCanonical",
        call: |_, args| match args {
            [Val::String(text)] => {
                let canonical = parse(text.as_str())?.to_string();
                Ok(Val::Bool(canonical == text.as_str()))
            }
            _ => no_such_overload(),
        },
        overloads: &[("ip_is_canonical", "string -> bool")],
    },
    Decl {
        name: "family",
        call: |_, args| match args.first().and_then(Val::as_special) {
            Some(Special::Ip(IpAddr::V4(_))) => Ok(Val::Int(4)),
            Some(Special::Ip(IpAddr::V6(_))) => Ok(Val::Int(6)),
            _ => no_such_overload(),
        },
        overloads: &[("ip_family", ".ip -> int")],
    },
    question!("isUnspecified", "ip_is_unspecified", IpAddr::is_unspecified),
    question!("isLoopback", "ip_is_loopback", IpAddr::is_loopback),
    question!(
        "isLinkLocalMulticast",
        "ip_is_link_local_multicast",
        is_link_local_multicast
    ),
    question!(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        is_link_local_unicast
    ),
    question!("isGlobalUnicast", "ip_is_global_unicast", is_global_unicast),
    Decl {
        name: "string",
        call: super::convert::to_string,
        overloads: &[("ip_to_string", "ip -> string")],
    },
];

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.octets()[0] == 0xff && ip.octets()[1] & 0x0f == 0x02,
    }
}

fn is_link_local_unicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(broadcast
        || ip.is_unspecified()
        || ip.is_loopback()
        || ip.is_multicast()
        || is_link_local_unicast(ip))
}

/// Parses an address; rejects zones and IPv4-mapped IPv6 addresses.
pub(super) fn parse(text: &str) -> Result<IpAddr, EvalError> {
    if let Some((address, zone)) = text.split_once('%')
        && !zone.is_empty()
        && address.parse::<std::net::Ipv6Addr>().is_ok()
    {
        return Err(EvalError::new(format!(
            "IP address {text:?} with zone value is not allowed"
        )));
    }
    let ip: IpAddr = text.parse().map_err(|_| {
        EvalError::new(format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): {}",
            reason(text)
        ))
    })?;
    if let IpAddr::V6(ip) = ip
        && ip.to_ipv4_mapped().is_some()
    {
        return Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {text:?} is not allowed"
        )));
    }
    Ok(ip)
}

/// Returns why a text is not an address, with the messages of Go's netip for common errors.
pub(super) fn reason(text: &str) -> String {
    if text.contains(':') {
        return "invalid IPv6 address".to_owned();
    }
    if !text.contains('.') {
        return "unable to parse IP".to_owned();
    }
    let fields: Vec<&str> = text.split('.').collect();
    let mut start = 0;
    for field in &fields {
        if let Some(at) = field.find(|c: char| !c.is_ascii_digit()) {
            return format!("unexpected character (at {:?})", &text[start + at..]);
        }
        start += field.len() + 1;
        if field.is_empty() {
            return "IPv4 field must have at least one digit".to_owned();
        }
        if field.len() > 1 && field.starts_with('0') {
            return "IPv4 field has octet with leading zero".to_owned();
        }
        if field.parse::<u32>().map_or(true, |value| value > 255) {
            return "IPv4 field has value >255".to_owned();
        }
    }
    match fields.len() {
        0..4 => "IPv4 address too short".to_owned(),
        _ => "IPv4 address too long".to_owned(),
    }
}
