//! The ranges that addresses and node ports of services are taken from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The family of an address, as services spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Family {
        match address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Family> {
        match text {
            "IPv4" => Some(Family::V4),
            "IPv6" => Some(Family::V6),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    pub(crate) fn other(self) -> Family {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}

/// Why a range cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// No address with the length of a prefix.
    NoNetwork(String),
    /// Fewer addresses than services need.
    TooSmall(String),
    /// More networks than families, or two of one family.
    TooMany,
    /// No two port numbers, the lower one first.
    NoPorts(String),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeError::NoNetwork(text) => write!(f, "{text} is no network like 10.96.0.0/16"),
            RangeError::TooSmall(text) => {
                write!(
                    f,
                    "{text} has no room for services: it needs four addresses at least"
                )
            }
            RangeError::TooMany => {
                f.write_str("services have one network, or one of IPv4 and one of IPv6")
            }
            RangeError::NoPorts(text) => {
                write!(f, "{text} is no range of ports like 30000-32767")
            }
        }
    }
}

impl std::error::Error for RangeError {}

/// A network that addresses are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    base: IpAddr,
    length: u8,
}

/// No network is wider than this: nobody has more services, and offsets stay small.
const WIDEST: u8 = 64;

impl Network {
    pub(crate) fn parse(text: &str) -> Result<Network, RangeError> {
        let parsed = text.trim().split_once('/').and_then(|(address, length)| {
            let base: IpAddr = address.parse().ok()?;
            let bits = if base.is_ipv4() { 32 } else { 128 };
            let length: u8 = length.parse().ok().filter(|length| *length <= bits)?;
            Some((base, length, bits))
        });
        let (base, length, bits) = parsed.ok_or_else(|| RangeError::NoNetwork(text.to_owned()))?;
        if bits - length < 2 || (bits == 128 && length < WIDEST) {
            return Err(RangeError::TooSmall(text.to_owned()));
        }
        let mask = u128::MAX << (bits - length);
        let base = at(Family::of(base), number(base) & mask);
        Ok(Network { base, length })
    }

    pub(crate) fn family(self) -> Family {
        Family::of(self.base)
    }

    fn bits(self) -> u8 {
        if self.base.is_ipv4() { 32 } else { 128 }
    }

    /// How far the last address is from the first.
    fn span(self) -> u128 {
        (1 << (self.bits() - self.length)) - 1
    }

    /// The address of the network itself.
    pub(crate) fn base(self) -> IpAddr {
        self.base
    }

    pub(crate) fn has(self, address: IpAddr) -> bool {
        Family::of(address) == self.family()
            && number(address)
                .checked_sub(number(self.base))
                .is_some_and(|offset| offset <= self.span())
    }

    /// Whether a service may have this address: neither the network's own nor the one for broadcasts.
    pub(crate) fn can_give(self, address: IpAddr) -> bool {
        self.has(address)
            && self
                .offsets()
                .contains(&(number(address) - number(self.base)))
    }

    /// The offsets of addresses services may have.
    pub(crate) fn offsets(self) -> RangeInclusive<u128> {
        match self.family() {
            Family::V4 => 1..=self.span() - 1,
            Family::V6 => 1..=self.span(),
        }
    }

    /// Where the addresses begin that are given out unasked; those below are left to whoever asks for one by number.
    // Upstream: pkg/registry/core/service/ipallocator, calculateRangeOffset.
    pub(crate) fn first_unasked(self) -> u128 {
        match self.span() + 1 {
            small if small < 16 => 1,
            size => (size / 16).clamp(16, 256),
        }
    }

    pub(crate) fn address(self, offset: u128) -> IpAddr {
        at(self.family(), number(self.base) + offset)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.length)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

fn at(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from((number & u128::from(u32::MAX)) as u32).into(),
        Family::V6 => Ipv6Addr::from(number).into(),
    }
}

/// The ranges that addresses and node ports of services are taken from.
///
/// ```
/// use bareboat_builtin::services::ServiceRanges;
///
/// let ranges = ServiceRanges::parse("10.96.0.0/16,fd00:10:96::/112", "30000-32767")?;
/// assert_eq!(ranges.networks(), ["10.96.0.0/16", "fd00:10:96::/112"]);
/// assert_eq!(ranges.first_address().to_string(), "10.96.0.1");
/// # Ok::<(), bareboat_builtin::services::RangeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRanges {
    networks: Vec<Network>,
    ports: RangeInclusive<u16>,
}

impl Default for ServiceRanges {
    /// What kube-apiserver takes when it is told nothing.
    fn default() -> ServiceRanges {
        let network = Network {
            base: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)),
            length: 24,
        };
        ServiceRanges {
            networks: vec![network],
            ports: 30000..=32767,
        }
    }
}

impl ServiceRanges {
    /// Reads one network or two of different families (the first is preferred), and a range of ports.
    pub fn parse(networks: &str, ports: &str) -> Result<ServiceRanges, RangeError> {
        let networks = networks
            .split(',')
            .map(Network::parse)
            .collect::<Result<Vec<Network>, RangeError>>()?;
        let same_family = matches!(networks.as_slice(), [a, b] if a.family() == b.family());
        if networks.len() > 2 || same_family {
            return Err(RangeError::TooMany);
        }
        let parsed = ports.trim().split_once('-').and_then(|(low, high)| {
            let (low, high): (u16, u16) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            (0 < low && low <= high).then_some(low..=high)
        });
        Ok(ServiceRanges {
            networks,
            ports: parsed.ok_or_else(|| RangeError::NoPorts(ports.to_owned()))?,
        })
    }

    /// The networks, the preferred one first.
    pub fn networks(&self) -> Vec<String> {
        self.networks.iter().map(Network::to_string).collect()
    }

    /// The first address a service can have: that of `default/kubernetes`.
    pub fn first_address(&self) -> IpAddr {
        self.networks[0].address(1)
    }

    pub(crate) fn preferred(&self) -> Family {
        self.networks[0].family()
    }

    pub(crate) fn network(&self, family: Family) -> Option<Network> {
        self.networks
            .iter()
            .copied()
            .find(|network| network.family() == family)
    }

    /// Whether a network is one of these.
    pub(crate) fn is_one(&self, network: Network) -> bool {
        self.networks.contains(&network)
    }

    pub(crate) fn is_dual_stack(&self) -> bool {
        self.networks.len() > 1
    }

    pub(crate) fn ports(&self) -> &RangeInclusive<u16> {
        &self.ports
    }

    /// Where the ports begin that are given out unasked.
    // Upstream: pkg/registry/core/service/portallocator, calculateRangeOffset.
    pub(crate) fn first_unasked_port(&self) -> u16 {
        let size = self.ports.end() - self.ports.start() + 1;
        let kept = match size {
            small if small <= 16 => 0,
            size => (size / 32).clamp(16, 128),
        };
        self.ports.start() + kept
    }
}
