//! Who has which address and port: an index of what is stored, and what writes under way hold.
//!
//! Services say what they have. Beside them count objects that tell of an address (a service gets none that is told to
//! be somebody else's), and objects that add networks to those of the server.

use super::ranges::{Family, Network, ServiceRanges};
use super::told::{addresses, parent};
use crate::reach::Reach;
use bareboat_api::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something only one service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Claim {
    Address(IpAddr),
    Port(u16),
}

/// Who has which address and port.
///
/// Whoever owns the store tells what is stored ([`Claims::note`]), inside the commit; what a write needs it holds from
/// the moment it chooses until it is stored or given up. So no moment exists in which something taken looks free.
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
    /// Addresses that an object tells of, with the service it names, if it names one.
    told: HashMap<IpAddr, Option<Arc<str>>>,
    /// The networks of each object that adds some, as long as they may be used.
    added: BTreeMap<Arc<str>, Vec<Network>>,
}

impl Table {
    /// Whether nobody but `own` has it, and nobody but `service` is told to.
    fn is_free(&self, claim: Claim, own: Option<&str>, service: &str) -> bool {
        if let Claim::Address(address) = claim
            && let Some(told) = self.told.get(&address)
            && told.as_deref() != Some(service)
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
    /// Claims on what the ranges have to give; nothing is taken yet.
    pub fn new(ranges: ServiceRanges) -> Arc<Claims> {
        Arc::new(Claims {
            ranges,
            table: Mutex::default(),
        })
    }

    /// The ranges.
    pub fn ranges(&self) -> &ServiceRanges {
        &self.ranges
    }

    /// Notes what is stored under a key (`namespace/name`) now; nothing when the service is gone.
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

    /// Forgets everything that was noted, before it is told anew.
    pub fn forget(&self) {
        let mut table = self.table();
        table.stored.clear();
        table.by_service.clear();
    }

    /// Notes an object that tells of an address (its name); nothing when it is gone.
    pub fn note_address(&self, name: &str, object: Option<&Value>) {
        let Ok(address) = name.parse::<IpAddr>() else {
            return;
        };
        let mut table = self.table();
        match object {
            None => table.told.remove(&address),
            Some(object) => table.told.insert(address, parent(object).map(Into::into)),
        };
    }

    /// Forgets all objects that tell of addresses, before they are told anew.
    pub fn forget_addresses(&self) {
        self.table().told.clear();
    }

    /// Notes an object that adds networks; nothing when it is gone. Only one that is ready and stays may be used.
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

    /// Forgets all objects that add networks, before they are told anew.
    pub fn forget_networks(&self) {
        self.table().added.clear();
    }

    /// The networks of a family, those of the server first.
    pub(super) fn networks(&self, family: Family) -> Vec<Network> {
        let Some(own) = self.ranges.network(family) else {
            return Vec::new();
        };
        let table = self.table();
        let added = table.added.values().flatten().copied();
        let added = added.filter(|network| network.family() == family);
        std::iter::once(own).chain(added).collect()
    }

    /// Begins to choose for a service. What the service has already is its own if it is `stored`; a new one has nothing.
    pub(super) fn choose(self: &Arc<Self>, key: &str, stored: bool, dry_run: bool) -> Hold {
        Hold {
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

/// What a stored service has.
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

/// Whether services may get addresses of the networks an object adds.
fn is_usable(object: &Value) -> bool {
    let conditions = object.list(&["status", "conditions"]).iter();
    let ready = conditions
        .filter(|condition| condition.text(&["type"]) == "Ready")
        .any(|condition| condition.text(&["status"]) == "True");
    ready && !object.has(&["metadata", "deletionTimestamp"])
}

/// What one write has chosen; given back when dropped, by when the service is stored or the write has failed.
pub(super) struct Hold {
    claims: Arc<Claims>,
    service: Arc<str>,
    stored: bool,
    dry_run: bool,
    taken: HashSet<Claim>,
    /// How many numbers of each range were tried, so that a service with many ports does not try them again for each
    /// port.
    looked: HashMap<(u128, u128), u128>,
}

impl bareboat_api::kind::Hold for Hold {}

impl Hold {
    pub(super) fn ranges(&self) -> &ServiceRanges {
        &self.claims.ranges
    }

    /// The networks of a family, those of the server first.
    pub(super) fn networks(&self, family: Family) -> Vec<Network> {
        self.claims.networks(family)
    }

    /// Takes something that was asked for; false if somebody else has it.
    pub(super) fn take(&mut self, claim: Claim) -> bool {
        self.take_unless(claim, self.stored)
    }

    /// Takes something nobody has; or, if so told, what the service itself has.
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

    /// Takes some address of a network: the same for the same name, as long as it is free.
    pub(super) fn take_address(&mut self, network: Network) -> Option<IpAddr> {
        if self.dry_run {
            // Nothing is promised, and upstream says so in this way.
            return Some(network.base());
        }
        let (first, last) = network.offsets().into_inner();
        let split = network.first_unasked().clamp(first, last);
        let claim = |offset| Claim::Address(network.address(offset));
        let found = self.take_some((split, last), claim);
        let found = found.or_else(|| self.take_some((first, split.saturating_sub(1)), claim));
        found.map(|offset| network.address(offset))
    }

    /// Takes some port.
    pub(super) fn take_port(&mut self) -> Option<u16> {
        let (first, last) = self.ranges().ports().clone().into_inner();
        let split = self.ranges().first_unasked_port().clamp(first, last);
        // Both ends are ports, and so is what lies between.
        let port = |number: u128| u16::try_from(number).unwrap_or(last);
        let claim = |number| Claim::Port(port(number));
        let (first, last, split) = (u128::from(first), u128::from(last), u128::from(split));
        let found = self.take_some((split, last), claim);
        let found = found.or_else(|| self.take_some((first, split.saturating_sub(1)), claim));
        found.map(port)
    }

    /// Takes the first free of some numbers, beginning at a place that follows from the name: services made anew by
    /// the same manifests get the same again, and one that was just given up is not the next to be given out.
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
            // What the service has is in use, most likely by another of its ports.
            if self.take_unless(claim(number), false) {
                self.looked.insert((first, last), step + 1);
                return Some(number);
            }
        }
        self.looked.insert((first, last), size);
        None
    }
}

impl Drop for Hold {
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

/// FNV-1a: the same in every process and every build.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
