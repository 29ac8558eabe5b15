//! The IP and port ranges that services are allocated from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// An IP family as written in services.
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

/// Why a range is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// Not an address with a prefix length.
    #[error("{0} is not a network such as 10.96.0.0/16")]
    NoNetwork(String),
    /// The prefix length is not supported.
    #[error("{0} has an unsupported size: IPv4 allows /0 to /30, IPv6 allows /64 to /126")]
    TooSmall(String),
    /// More than two networks, or two of the same family.
    #[error("service networks must be one network, or one of IPv4 and one of IPv6")]
    TooMany,
    /// Not two port numbers, lower one first.
    #[error("{0} is not a port range such as 30000-32767")]
    NoPorts(String),
}

/// A network for service addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    base: IpAddr,
    length: u8,
}

/// The shortest accepted IPv6 prefix length, so that offsets stay small.
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

    /// Returns the offset of the last address.
    fn span(self) -> u128 {
        (1 << (self.bits() - self.length)) - 1
    }

    /// Returns the network address.
    pub(crate) fn base(self) -> IpAddr {
        self.base
    }

    pub(crate) fn has(self, address: IpAddr) -> bool {
        Family::of(address) == self.family()
            && number(address)
                .checked_sub(number(self.base))
                .is_some_and(|offset| offset <= self.span())
    }

    /// Returns whether a service may have this address: neither the network nor the broadcast address.
    pub(crate) fn can_give(self, address: IpAddr) -> bool {
        self.has(address)
            && self
                .offsets()
                .contains(&(number(address) - number(self.base)))
    }

    /// Returns the offsets of addresses that services may have.
    pub(crate) fn offsets(self) -> RangeInclusive<u128> {
        match self.family() {
            Family::V4 => 1..=self.span() - 1,
            Family::V6 => 1..=self.span(),
        }
    }

    /// Returns the first offset for automatic allocation; lower ones are reserved for requested addresses.
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

/// The IP and port ranges that services are allocated from.
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
    /// The defaults of kube-apiserver.
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
    /// Parses one network, or two of different families (the first is preferred), and a port range.
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

    /// Returns the networks, the preferred one first.
    pub fn networks(&self) -> Vec<String> {
        self.networks.iter().map(Network::to_string).collect()
    }

    /// Returns the first service address: that of `default/kubernetes`.
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

    /// Returns whether a network is one of the server's.
    pub(crate) fn is_one(&self, network: Network) -> bool {
        self.networks.contains(&network)
    }

    pub(crate) fn is_dual_stack(&self) -> bool {
        self.networks.len() > 1
    }

    pub(crate) fn ports(&self) -> &RangeInclusive<u16> {
        &self.ports
    }

    /// Returns the first port for automatic allocation.
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
