//! Decides which addresses may be dialled for destinations that clients configure.
//!
//! Users who may write a webhook, a definition or an APIService choose where this server connects to. It must not lend
//! them its place in the network: its own listeners, link-local addresses and the metadata services of clouds are always
//! refused, and loopback unless a setting allows it. The decision is about the address that is dialled, not about the
//! name it was resolved from. Destinations of the operator (flags, files, code of the program) are not judged here.

use parking_lot::RwLock;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses of metadata services outside the link-local range.
const METADATA: [IpAddr; 7] = [
    // Alibaba Cloud, Azure, Oracle Cloud.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // AWS: metadata and time; Google Cloud; Scaleway.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x123)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// The settings of outbound calls; `None` means: yes, while every listener is on loopback.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReachSettings {
    /// Whether loopback addresses may be dialled.
    pub(crate) loopback: Option<bool>,
    /// Whether clients may read why a call failed.
    pub(crate) causes: Option<bool>,
}

/// Where the server may connect to.
#[derive(Default)]
pub(crate) struct Reach {
    settings: ReachSettings,
    /// The addresses that this server listens on.
    listeners: RwLock<Vec<SocketAddr>>,
}

impl Reach {
    pub(crate) fn new(settings: ReachSettings) -> Reach {
        Reach {
            settings,
            listeners: RwLock::default(),
        }
    }

    /// Adds an address that this server listens on.
    pub(crate) fn listens_on(&self, address: SocketAddr) {
        self.listeners.write().push(address);
    }

    /// Returns whether clients may read why a call failed.
    pub(super) fn shows_causes(&self) -> bool {
        self.settings.causes.unwrap_or_else(|| self.is_private())
    }

    /// Returns whether every listener is on loopback, so that all clients are on this machine.
    fn is_private(&self) -> bool {
        let listeners = self.listeners.read();
        listeners
            .iter()
            .all(|listener| listener.ip().to_canonical().is_loopback())
    }

    /// Decides whether an address may be dialled.
    pub(super) fn judge(&self, address: SocketAddr) -> Result<(), Forbidden> {
        let ip = address.ip().to_canonical();
        if self.is_own(ip, address.port()) {
            return Err(Forbidden::OwnListener);
        }
        let loopback = || self.settings.loopback.unwrap_or_else(|| self.is_private());
        for ip in [Some(ip), embedded(ip)].into_iter().flatten() {
            match Forbidden::of(ip) {
                Some(Forbidden::Loopback) if loopback() => {}
                Some(forbidden) => return Err(forbidden),
                None => {}
            }
        }
        Ok(())
    }

    /// Returns whether this server listens there.
    fn is_own(&self, ip: IpAddr, port: u16) -> bool {
        let listeners = self.listeners.read();
        listeners.iter().any(|listener| {
            let own = listener.ip().to_canonical();
            listener.port() == port && (own == ip || (own.is_unspecified() && is_local(ip)))
        })
    }
}

/// Returns whether an address is one of this machine: only those can be bound.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Returns the IPv4 address that a translator reads out of an IPv6 address: NAT64, 6to4, or the old compatible form.
fn embedded(ip: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(ip) = ip else { return None };
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(IpAddr::from([a, b, c, d]))
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        _ => None,
    }
}

/// Why an address may not be dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forbidden {
    OwnListener,
    Loopback,
    LinkLocal,
    Metadata,
    Unspecified,
    Multicast,
    Broadcast,
}

impl Forbidden {
    fn of(ip: IpAddr) -> Option<Forbidden> {
        let link_local = match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        // The kernel takes 0.0.0.0 for loopback; nothing else of that network can be reached.
        let unspecified = match ip {
            IpAddr::V4(ip) => ip.octets()[0] == 0,
            IpAddr::V6(ip) => ip.is_unspecified(),
        };
        if link_local {
            Some(Forbidden::LinkLocal)
        } else if unspecified {
            Some(Forbidden::Unspecified)
        } else if METADATA.contains(&ip) {
            Some(Forbidden::Metadata)
        } else if ip.is_multicast() {
            Some(Forbidden::Multicast)
        } else if ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
            Some(Forbidden::Broadcast)
        } else if ip.is_loopback() {
            Some(Forbidden::Loopback)
        } else {
            None
        }
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Forbidden::OwnListener => "this server may not call itself",
            Forbidden::Loopback => {
                "loopback addresses may not be called (see --allow-loopback-destinations)"
            }
            Forbidden::LinkLocal => "link-local addresses may not be called",
            Forbidden::Metadata => "addresses of metadata services may not be called",
            Forbidden::Unspecified => "unspecified addresses may not be called",
            Forbidden::Multicast => "multicast addresses may not be called",
            Forbidden::Broadcast => "the broadcast address may not be called",
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reach(loopback: Option<bool>, listeners: &[&str]) -> Reach {
        let reach = Reach::new(ReachSettings {
            loopback,
            causes: None,
        });
        for listener in listeners {
            reach.listens_on(listener.parse().unwrap());
        }
        reach
    }

    fn judge(reach: &Reach, address: &str) -> Option<Forbidden> {
        reach.judge(address.parse().unwrap()).err()
    }

    #[test]
    fn every_form_of_an_address_is_judged() {
        use Forbidden::{Broadcast, LinkLocal, Loopback, Metadata, Multicast, Unspecified};
        let cases = [
            ("10.0.0.1:443", None),
            ("93.184.216.34:443", None),
            ("[2001:db8::1]:443", None),
            ("[fd00::1]:443", None),
            ("[64:ff9b::a00:1]:443", None),
            ("127.0.0.1:443", Some(Loopback)),
            ("127.8.9.10:443", Some(Loopback)),
            ("[::1]:443", Some(Loopback)),
            ("[::ffff:127.0.0.1]:443", Some(Loopback)),
            ("[::127.0.0.1]:443", Some(Loopback)),
            ("[64:ff9b::7f00:1]:443", Some(Loopback)),
            ("[2002:7f00:1::]:443", Some(Loopback)),
            ("169.254.0.1:443", Some(LinkLocal)),
            ("169.254.169.254:80", Some(LinkLocal)),
            ("[::ffff:169.254.169.254]:80", Some(LinkLocal)),
            ("[::169.254.169.254]:80", Some(LinkLocal)),
            ("[64:ff9b::a9fe:a9fe]:80", Some(LinkLocal)),
            ("[2002:a9fe:a9fe::1]:80", Some(LinkLocal)),
            ("[fe80::1]:443", Some(LinkLocal)),
            ("[fe80::1%3]:443", Some(LinkLocal)),
            ("[febf::1]:443", Some(LinkLocal)),
            ("[fd00:ec2::254]:80", Some(Metadata)),
            ("[fd20:ce::254]:80", Some(Metadata)),
            ("100.100.100.200:80", Some(Metadata)),
            ("[::ffff:168.63.129.16]:80", Some(Metadata)),
            ("0.0.0.0:443", Some(Unspecified)),
            ("0.1.2.3:443", Some(Unspecified)),
            ("[::]:443", Some(Unspecified)),
            ("[::ffff:0.0.0.0]:443", Some(Unspecified)),
            ("224.0.0.1:443", Some(Multicast)),
            ("239.255.255.255:443", Some(Multicast)),
            ("[ff02::1]:443", Some(Multicast)),
            ("255.255.255.255:443", Some(Broadcast)),
        ];
        let refusing = reach(Some(false), &["192.0.2.1:6443"]);
        let allowing = reach(Some(true), &["192.0.2.1:6443"]);
        for (address, expected) in cases {
            assert_eq!(judge(&refusing, address), expected, "{address}");
            let expected = expected.filter(|why| *why != Loopback);
            assert_eq!(judge(&allowing, address), expected, "{address}");
        }
    }

    #[test]
    fn loopback_is_allowed_by_default_while_every_listener_is_there() {
        let cases: [(&[&str], bool); 5] = [
            (&[], true),
            (&["127.0.0.1:6443", "[::1]:6443"], true),
            (&["[::ffff:127.0.0.1]:6443"], true),
            (&["127.0.0.1:6443", "192.0.2.1:6443"], false),
            (&["0.0.0.0:6443"], false),
        ];
        for (listeners, allowed) in cases {
            let reach = reach(None, listeners);
            let found = judge(&reach, "127.0.0.1:9443").is_none();
            assert_eq!(found, allowed, "{listeners:?}");
            assert_eq!(reach.shows_causes(), allowed, "{listeners:?}");
        }
    }

    #[test]
    fn own_listeners_are_refused_in_every_form() {
        let one = reach(Some(true), &["127.0.0.1:6443"]);
        let every = reach(Some(true), &["[::]:6443"]);
        let cases = [
            (&one, "127.0.0.1:6443", true),
            (&one, "[::ffff:127.0.0.1]:6443", true),
            (&one, "127.0.0.1:6444", false),
            (&one, "127.0.0.2:6443", false),
            (&every, "127.0.0.1:6443", true),
            (&every, "[::1]:6443", true),
            (&every, "127.0.0.1:6444", false),
            // An address of another machine.
            (&every, "192.0.2.7:6443", false),
        ];
        for (reach, address, own) in cases {
            let expected = own.then_some(Forbidden::OwnListener);
            assert_eq!(judge(reach, address), expected, "{address}");
        }
    }
}
