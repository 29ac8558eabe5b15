//! Index of allocated addresses and ports, with the reservations of writes in progress.
//!
//! It is built from services, from IPAddress objects (a service does not get an address that names another owner) and
//! from ServiceCIDR objects, which add networks to those of the server.

use super::ip_addresses::{addresses, parent};
use super::ranges::{Family, Network, ServiceRanges};
use crate::reach::Reach;
use bareboat_api::kind::{Dependency, Reservation};
use bareboat_api::{Str, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An address or port that only one service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Claim {
    Address(IpAddr),
    Port(u16),
}

/// Which service has which address and port.
///
/// The owner of the store reports stored objects ([`Claims::note`]) inside the commit. A write reserves its
/// addresses and ports from its choice until it is stored or fails. So a used address or port never looks free.
#[derive(Debug)]
pub struct Claims {
    ranges: ServiceRanges,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    stored: HashMap<Claim, Vec<Arc<str>>>,
    by_service: HashMap<Arc<str>, Vec<Claim>>,
    held: HashMap<Claim, Vec<Arc<str>>>,
    /// Addresses of IPAddress objects, with the service that each names, if any.
    recorded: HashMap<IpAddr, Option<Arc<str>>>,
    /// The usable networks of each ServiceCIDR.
    added: BTreeMap<Arc<str>, Vec<Network>>,
}

impl Table {
    /// Returns whether no service but `own` has it, and no IPAddress names a service other than `service`.
    fn is_free(&self, claim: Claim, own: Option<&str>, service: &str) -> bool {
        if let Claim::Address(address) = claim
            && let Some(recorded) = self.recorded.get(&address)
            && recorded.as_deref() != Some(service)
        {
            return false;
        }
        [&self.stored, &self.held].iter().all(|claims| {
            let holders = claims.get(&claim).map_or(&[] as &[Arc<str>], Vec::as_slice);
            holders.iter().all(|holder| Some(&**holder) == own)
        })
    }
}

fn give_back(claims: &mut HashMap<Claim, Vec<Arc<str>>>, claim: Claim, service: &str) {
    let Some(holders) = claims.get_mut(&claim) else {
        return;
    };
    if let Some(place) = holders.iter().position(|holder| **holder == *service) {
        holders.swap_remove(place);
    }
    if holders.is_empty() {
        claims.remove(&claim);
    }
}

impl Claims {
    /// Creates an index without allocations.
    pub fn new(ranges: ServiceRanges) -> Arc<Claims> {
        Arc::new(Claims {
            ranges,
            table: Mutex::default(),
        })
    }

    /// Returns the configured ranges of cluster IPs and node ports.
    pub fn ranges(&self) -> &ServiceRanges {
        &self.ranges
    }

    /// Records the stored service of a key (`namespace/name`), or its deletion.
    pub fn note(&self, key: &str, service: Option<&Value>) {
        let mut table = self.table();
        for claim in table.by_service.remove(key).unwrap_or_default() {
            give_back(&mut table.stored, claim, key);
        }
        let claims = service.map(of).unwrap_or_default();
        if claims.is_empty() {
            return;
        }
        let key: Arc<str> = key.into();
        for claim in &claims {
            table.stored.entry(*claim).or_default().push(key.clone());
        }
        table.by_service.insert(key, claims);
    }

    /// Clears all services before they are recorded again.
    pub fn forget(&self) {
        let mut table = self.table();
        table.stored.clear();
        table.by_service.clear();
    }

    /// Records an IPAddress by its name (the address), or its deletion.
    pub fn note_address(&self, name: &str, object: Option<&Value>) {
        let Ok(address) = name.parse::<IpAddr>() else {
            return;
        };
        let mut table = self.table();
        match object {
            None => table.recorded.remove(&address),
            Some(object) => table
                .recorded
                .insert(address, parent(object).map(Into::into)),
        };
    }

    /// Clears all IPAddresses before they are recorded again.
    pub fn forget_addresses(&self) {
        self.table().recorded.clear();
    }

    /// Records a ServiceCIDR, or its deletion. Only networks that are ready and not being deleted are used.
    pub fn note_networks(&self, name: &str, object: Option<&Value>) {
        let mut table = self.table();
        let networks = object.filter(|object| is_usable(object)).map(|object| {
            let texts = object.list(&["spec", "cidrs"]).iter();
            texts
                .filter_map(|text| Network::parse(text.as_str()?).ok())
                .filter(|network| !self.ranges.is_one(*network))
                .collect::<Vec<Network>>()
        });
        match networks.filter(|networks| !networks.is_empty()) {
            Some(networks) => table.added.insert(name.into(), networks),
            None => table.added.remove(name),
        };
    }

    /// Clears all ServiceCIDRs before they are recorded again.
    pub fn forget_networks(&self) {
        self.table().added.clear();
    }

    /// Returns the networks of a family, the server's first.
    pub(super) fn networks(&self, family: Family) -> Vec<Network> {
        let Some(own) = self.ranges.network(family) else {
            return Vec::new();
        };
        let table = self.table();
        let added = table.added.values().flatten().copied();
        let added = added.filter(|network| network.family() == family);
        std::iter::once(own).chain(added).collect()
    }

    /// Starts a reservation for a service. A `stored` service keeps its addresses and ports.
    pub(super) fn choose(
        self: &Arc<Self>,
        key: &str,
        stored: bool,
        dry_run: bool,
    ) -> ServiceReservation {
        ServiceReservation {
            claims: self.clone(),
            service: key.into(),
            stored,
            dry_run,
            taken: HashSet::new(),
            looked: HashMap::new(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the addresses and ports of a stored service.
fn of(service: &Value) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let spec = service.get("spec").unwrap_or(&Value::Null);
    claims.extend(addresses(service).into_iter().map(Claim::Address));
    let ports = spec.list(&["ports"]).iter();
    let numbers = ports
        .filter_map(|port| port.int(&["nodePort"]))
        .chain(spec.int(&["healthCheckNodePort"]));
    for number in numbers {
        if let Some(port) = u16::try_from(number).ok().filter(|port| *port > 0) {
            claims.push(Claim::Port(port));
        }
    }
    let mut seen = HashSet::new();
    claims.retain(|claim| seen.insert(*claim));
    claims
}

/// Returns whether services may use the networks of a ServiceCIDR.
fn is_usable(object: &Value) -> bool {
    let conditions = object.list(&["status", "conditions"]).iter();
    let ready = conditions
        .filter(|condition| condition.text(&["type"]) == "Ready")
        .any(|condition| condition.text(&["status"]) == "True");
    ready && !object.has(&["metadata", "deletionTimestamp"])
}

/// The reservations of one write. They are released on drop, when the service is stored or the write has failed.
pub(super) struct ServiceReservation {
    claims: Arc<Claims>,
    service: Arc<str>,
    stored: bool,
    dry_run: bool,
    taken: HashSet<Claim>,
    /// How many numbers of each range were tried, so that a service with many ports does not retry them per port.
    looked: HashMap<(u128, u128), u128>,
}

impl Reservation for ServiceReservation {
    /// Addresses are stored as objects of their own. Ports are only in services.
    fn depends_on(&self) -> Vec<Dependency> {
        let dependency = Dependency {
            store: Str::const_new("core/services"),
            namespace: None,
            revision: None,
        };
        vec![dependency]
    }
}

impl ServiceReservation {
    pub(super) fn ranges(&self) -> &ServiceRanges {
        &self.claims.ranges
    }

    /// Returns the networks of a family, the server's first.
    pub(super) fn networks(&self, family: Family) -> Vec<Network> {
        self.claims.networks(family)
    }

    /// Reserves a requested address or port; returns false if another service has it.
    pub(super) fn take(&mut self, claim: Claim) -> bool {
        self.take_unless(claim, self.stored)
    }

    /// Reserves an unused address or port; with `own_is_free`, also one of the service itself.
    fn take_unless(&mut self, claim: Claim, own_is_free: bool) -> bool {
        let own = own_is_free.then_some(&*self.service);
        let mut table = self.claims.table();
        if self.taken.contains(&claim) || !table.is_free(claim, own, &self.service) {
            return false;
        }
        if !self.dry_run {
            table
                .held
                .entry(claim)
                .or_default()
                .push(self.service.clone());
        }
        self.taken.insert(claim)
    }

    /// Reserves any address of a network. The same name gets the same address while it is free.
    pub(super) fn take_address(&mut self, network: Network) -> Option<IpAddr> {
        if self.dry_run {
            // Dry run: nothing is reserved, as upstream does.
            return Some(network.base());
        }
        let (first, last) = network.offsets().into_inner();
        let split = network.first_unasked().clamp(first, last);
        let claim = |offset| Claim::Address(network.address(offset));
        let found = self.take_some((split, last), claim);
        let found = found.or_else(|| self.take_some((first, split.saturating_sub(1)), claim));
        found.map(|offset| network.address(offset))
    }

    /// Reserves any port.
    pub(super) fn take_port(&mut self) -> Option<u16> {
        let (first, last) = self.ranges().ports().clone().into_inner();
        let split = self.ranges().first_unasked_port().clamp(first, last);
        // Both ends are ports, so all numbers between them are.
        let port = |number: u128| u16::try_from(number).unwrap_or(last);
        let claim = |number| Claim::Port(port(number));
        let (first, last, split) = (u128::from(first), u128::from(last), u128::from(split));
        let found = self.take_some((split, last), claim);
        let found = found.or_else(|| self.take_some((first, split.saturating_sub(1)), claim));
        found.map(port)
    }

    /// Reserves the first free number, starting at a position derived from the name. Services recreated from the same
    /// manifests get the same numbers, and a released number is not the next one to be allocated.
    fn take_some(
        &mut self,
        (first, last): (u128, u128),
        claim: impl Fn(u128) -> Claim,
    ) -> Option<u128> {
        if first > last {
            return None;
        }
        let size = last - first + 1;
        let start = u128::from(fingerprint(&self.service)) % size;
        let looked = self.looked.get(&(first, last)).copied().unwrap_or(0);
        for step in looked..size {
            let number = first + (start + step) % size;
            // A number of the service itself is probably used by another of its ports.
            if self.take_unless(claim(number), false) {
                self.looked.insert((first, last), step + 1);
                return Some(number);
            }
        }
        self.looked.insert((first, last), size);
        None
    }
}

impl Drop for ServiceReservation {
    fn drop(&mut self) {
        if self.dry_run {
            return;
        }
        let mut table = self.claims.table();
        for claim in &self.taken {
            give_back(&mut table.held, *claim, &self.service);
        }
    }
}

/// FNV-1a, which is the same in every process and build.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
