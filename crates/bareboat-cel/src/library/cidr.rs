//! Networks in CIDR notation.

use std::fmt;
use std::net::IpAddr;

use super::{Decl, ip, no_such_overload};
use crate::error::EvalError;
use crate::value::{Special, Val};

/// An address and the length of its network prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "cidr",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::special(Special::Cidr(parse(text.as_str())?))),
            _ => no_such_overload(),
        },
        overloads: &[("string_to_cidr", "string -> cidr")],
    },
    Decl {
        name: "isCIDR",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::Bool(parse(text.as_str()).is_ok())),
            _ => no_such_overload(),
        },
        overloads: &[("is_cidr", "string -> bool")],
    },
    Decl {
        name: "containsIP",
        call: |_, args| match args {
            [network, other] => {
                let network = cidr(network)?;
                let address = match other {
                    Val::String(text) => ip::parse(text.as_str())?,
                    other => match other.as_special() {
                        Some(Special::Ip(ip)) => *ip,
                        _ => return no_such_overload(),
                    },
                };
                Ok(Val::Bool(network.holds(&address)))
            }
            _ => no_such_overload(),
        },
        overloads: &[
            ("cidr_contains_ip_string", ".cidr, string -> bool"),
            ("cidr_contains_ip_ip", ".cidr, ip -> bool"),
        ],
    },
    Decl {
        name: "containsCIDR",
        call: |_, args| match args {
            [network, Val::String(text)] => {
                let other = parse(text.as_str())?;
                Ok(Val::Bool(cidr(network)?.covers(&other)))
            }
            [network, other] => Ok(Val::Bool(cidr(network)?.covers(cidr(other)?))),
            _ => no_such_overload(),
        },
        overloads: &[
            ("cidr_contains_cidr_string", ".cidr, string -> bool"),
            ("cidr_contains_cidr", ".cidr, cidr -> bool"),
        ],
    },
    Decl {
        name: "ip",
        call: |_, args| match args {
            [network] => Ok(Val::special(Special::Ip(cidr(network)?.address))),
            _ => no_such_overload(),
        },
        overloads: &[("cidr_ip", ".cidr -> ip")],
    },
    Decl {
        name: "prefixLength",
        call: |_, args| match args {
            [network] => Ok(Val::Int(cidr(network)?.bits.into())),
            _ => no_such_overload(),
        },
        overloads: &[("cidr_prefix_length", ".cidr -> int")],
    },
    Decl {
        name: "masked",
        call: |_, args| match args {
            [network] => Ok(Val::special(Special::Cidr(cidr(network)?.masked()))),
            _ => no_such_overload(),
        },
        overloads: &[("cidr_masked", ".cidr -> cidr")],
    },
    Decl {
        name: "string",
        call: super::convert::to_string,
        overloads: &[("cidr_to_string", "cidr -> string")],
    },
];

fn cidr<'v>(value: &'v Val<'_>) -> Result<&'v Cidr, EvalError> {
    match value.as_special() {
        Some(Special::Cidr(cidr)) => Ok(cidr),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Keeps the first bits of an address and clears the others.
fn mask(address: &IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let keep = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(*ip) & keep).into())
        }
        IpAddr::V6(ip) => {
            let keep = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(*ip) & keep).into())
        }
    }
}

impl Cidr {
    fn masked(&self) -> Cidr {
        Cidr {
            address: mask(&self.address, self.bits),
            bits: self.bits,
        }
    }

    fn holds(&self, address: &IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(&self.address, self.bits) == mask(address, self.bits)
    }

    fn covers(&self, other: &Cidr) -> bool {
        self.bits <= other.bits && self.holds(&other.address)
    }
}

fn parse(text: &str) -> Result<Cidr, EvalError> {
    const PREFIX: &str = "network address parse error during conversion from string";
    let fail = |why: &str| {
        EvalError::new(format!(
            "{PREFIX}: {PREFIX}: netip.ParsePrefix({text:?}): {why}"
        ))
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| fail("no '/'"))?;
    let address: IpAddr = address
        .parse()
        .map_err(|_| fail(&format!("ParseAddr({address:?}): {}", ip::reason(address))))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let plain = bits.bytes().all(|byte| byte.is_ascii_digit())
        && !(bits.len() > 1 && bits.starts_with('0'));
    let bits = match bits.parse::<u8>() {
        Ok(bits) if plain && bits <= most => bits,
        Ok(_) if plain => return Err(fail("prefix length out of range")),
        _ => return Err(fail(&format!("bad bits after slash: {bits:?}"))),
    };
    if let IpAddr::V6(ip) = address
        && ip.to_ipv4_mapped().is_some()
    {
        return Err(EvalError::new(format!(
            "{PREFIX}: IPv4-mapped IPv6 address {text:?} is not allowed"
        )));
    }
    Ok(Cidr { address, bits })
}
