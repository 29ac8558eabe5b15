//! Ports for servers that tests start as processes.

use std::fs::File;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// A free port below the ephemeral range: a server that restarts finds its port free again. It is reserved until this value is dropped.
#[derive(Debug)]
pub struct Port {
    /// The number of the port.
    pub number: u16,
    /// A lock held while the port is reserved, also while no server listens: test suites that run side by side share
    /// the ports. Without locks, collisions are possible.
    _claim: Option<File>,
}

impl Port {
    /// Reserves a port.
    pub fn free() -> Port {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let seed = u16::try_from(std::process::id() % 8000).expect("it is below 8000");
        let claims = std::env::temp_dir().join("bareboat-test-ports");
        let _ = std::fs::create_dir_all(&claims);
        loop {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = 20_000 + (seed + step % 10_000) % 10_000;
            let claim = File::create(claims.join(number.to_string())).ok();
            let ours = claim.as_ref().is_none_or(|claim| claim.try_lock().is_ok());
            if ours && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Port {
                    number,
                    _claim: claim,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Port;

    #[test]
    fn a_port_is_reserved_until_it_is_dropped() {
        let ports: Vec<Port> = (0..20).map(|_| Port::free()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(|port| port.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
        let file = std::env::temp_dir()
            .join("bareboat-test-ports")
            .join(numbers[0].to_string());
        let lock = || std::fs::File::open(&file).unwrap().try_lock().is_ok();
        assert!(!lock());
        drop(ports);
        assert!(lock());
    }
}
