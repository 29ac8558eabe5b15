//! Allocates cluster IPs and node ports for a service that is created or updated.

use super::claims::{Claim, ServiceReservation};
use super::families::{is_headless, needs_address, set, stays, texts};
use super::ranges::Family;
use crate::reach::{Fill, Reach};
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Map, Status, Value};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Returns a 422 for a Service.
pub(super) fn invalid(name: &str, errors: &[FieldError]) -> Status {
    let what = GroupResource {
        group: "",
        resource: "Service",
    };
    Status::invalid(what, name, errors)
}

/// Copies allocated values that an update leaves out.
// Upstream: pkg/registry/core/service/storage/storage.go, patchAllocatedValues and normalizeClusterIPs.
pub(super) fn keep(spec: &mut Value, old: Option<&Value>) {
    let Some(old) = old else {
        let single = spec.text(&["clusterIP"]).to_owned();
        if !single.is_empty() && spec.list(&["clusterIPs"]).is_empty() {
            set(spec, "clusterIPs", [single.as_str()].into_iter().collect());
        }
        return;
    };
    if needs_address(old) && needs_address(spec) {
        if spec.text(&["clusterIP"]).is_empty() {
            copy(spec, old, "clusterIP");
        }
        if spec.list(&["clusterIPs"]).is_empty() {
            copy(spec, old, "clusterIPs");
        }
    }
    if has_ports(old) && has_ports(spec) {
        keep_ports(spec, old);
    }
    let unset = spec.int(&["healthCheckNodePort"]).unwrap_or(0) == 0;
    if needs_health_check(old) && needs_health_check(spec) && unset {
        copy(spec, old, "healthCheckNodePort");
    }
    let same_lists = texts(old, "clusterIPs") == texts(spec, "clusterIPs");
    let (before, after) = (
        old.text(&["clusterIP"]),
        spec.text(&["clusterIP"]).to_owned(),
    );
    if before == after && spec.list(&["clusterIPs"]).is_empty() {
        copy(spec, old, "clusterIPs");
    } else if before != after && same_lists {
        // Only one of the two fields was changed.
        match after.is_empty() {
            true => drop(spec.make_object().remove("clusterIPs")),
            false => set(spec, "clusterIPs", [after.as_str()].into_iter().collect()),
        }
    } else if before != after && !after.is_empty() && spec.list(&["clusterIPs"]).is_empty() {
        set(spec, "clusterIPs", [after.as_str()].into_iter().collect());
    }
}

fn copy(spec: &mut Value, old: &Value, member: &str) {
    if let Some(value) = old.at(&[member]).filter(|value| !value.is_null()) {
        set(spec, member, value.clone());
    }
}

/// Keeps node ports by port name, unless another port uses them.
fn keep_ports(spec: &mut Value, old: &Value) {
    let mut used = node_ports(spec);
    let before = node_ports(old);
    used.retain(|port| before.contains(port));
    let by_name: HashMap<&str, i64> = old
        .list(&["ports"])
        .iter()
        .filter_map(|port| Some((port.text(&["name"]), port.int(&["nodePort"])?)))
        .collect();
    for port in spec.make_object().each("ports") {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0 {
            continue;
        }
        let known = by_name.get(port.get_str("name").unwrap_or("")).copied();
        if let Some(number) = known.filter(|number| *number != 0 && !used.contains(number)) {
            port.insert("nodePort", Value::Int(number));
        }
    }
}

fn node_ports(spec: &Value) -> HashSet<i64> {
    let ports = spec.list(&["ports"]).iter();
    ports
        .filter_map(|port| port.int(&["nodePort"]))
        .filter(|number| *number != 0)
        .collect()
}

fn has_ports(spec: &Value) -> bool {
    matches!(spec.text(&["type"]), "NodePort" | "LoadBalancer")
}

/// Returns whether every port of the service needs a node port.
pub(super) fn needs_ports(spec: &Value) -> bool {
    let balanced = spec.at(&["allocateLoadBalancerNodePorts"]);
    match spec.text(&["type"]) {
        "NodePort" => true,
        "LoadBalancer" => balanced.and_then(Value::as_bool) != Some(false),
        _ => false,
    }
}

pub(super) fn needs_health_check(spec: &Value) -> bool {
    spec.text(&["type"]) == "LoadBalancer" && spec.text(&["externalTrafficPolicy"]) == "Local"
}

/// Allocates the missing addresses of a service.
pub(super) fn addresses(
    name: &str,
    spec: &mut Value,
    old: Option<&Value>,
    reservation: &mut ServiceReservation,
) -> Result<(), Status> {
    if !needs_address(spec) || stays(spec, old) {
        return Ok(());
    }
    let old = old.filter(|old| needs_address(old));
    if is_headless(old.unwrap_or(spec)) || is_headless(spec) {
        return Ok(());
    }
    let families = texts(spec, "ipFamilies");
    let had = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let mut wanted = texts(spec, "clusterIPs");
    // An allocated address is kept; validation rejects changes.
    let from = had.len().min(families.len());
    for (index, family) in families.iter().enumerate().skip(from) {
        let Some(family) = Family::parse(family) else {
            continue;
        };
        if wanted.len() <= index {
            wanted.resize(index + 1, String::new());
        }
        let shown: Vec<String> = wanted.clone();
        wanted[index] = address(name, family, &wanted[index], &shown, reservation)?;
    }
    if let Some(first) = wanted.first() {
        set(spec, "clusterIP", first.as_str().into());
        set(
            spec,
            "clusterIPs",
            wanted.iter().map(String::as_str).collect(),
        );
    }
    Ok(())
}

/// Allocates one address: the requested one, or any.
fn address(
    name: &str,
    family: Family,
    wanted: &str,
    shown: &[String],
    reservation: &mut ServiceReservation,
) -> Result<String, Status> {
    let refuse = |why: String| {
        let place = FieldPath::new("spec").child("clusterIPs");
        let shown: Value = shown.iter().map(String::as_str).collect();
        Err(invalid(name, &[FieldError::invalid(place, shown, why)]))
    };
    let networks = reservation.networks(family);
    let Some(first) = networks.first().copied() else {
        return Err(Status::internal("a family without a network"));
    };
    if wanted.is_empty() {
        let found = networks
            .into_iter()
            .find_map(|network| reservation.take_address(network));
        return match found {
            Some(address) => Ok(address.to_string()),
            None => Err(Status::internal(format!(
                "failed to allocate a serviceIP for Service \"{name}\": range is full"
            ))),
        };
    }
    let address: IpAddr = wanted
        .parse()
        .map_err(|_| Status::internal(format!("failed to parse service IP \"{wanted}\"")))?;
    let around: Vec<_> = networks
        .into_iter()
        .filter(|network| network.has(address))
        .collect();
    let why = if around.is_empty() {
        format!(
            "the provided IP ({address}) is not in the valid range. The range of valid IPs is {first}"
        )
    } else if !around.iter().any(|network| network.can_give(address)) {
        "the provided network does not match the current range".to_owned()
    } else if !reservation.take(Claim::Address(address)) {
        "provided IP is already allocated".to_owned()
    } else {
        return Ok(wanted.to_owned());
    };
    refuse(format!("failed to allocate IP {wanted}: {why}"))
}

/// Allocates the missing node ports of a service.
pub(super) fn ports(
    name: &str,
    spec: &mut Value,
    old: Option<&Value>,
    reservation: &mut ServiceReservation,
) -> Result<(), Status> {
    if has_ports(spec) {
        let mut chosen = Chosen {
            unasked: needs_ports(spec),
            had: old.map(node_ports).unwrap_or_default(),
            shared: HashMap::new(),
            given: HashSet::new(),
        };
        for port in spec.list(&["ports"]) {
            let (own, node) = (port.int(&["port"]), port.int(&["nodePort"]));
            if let (Some(own), Some(node)) = (own, node.filter(|node| *node != 0)) {
                chosen.shared.entry(own).or_insert(node);
            }
        }
        for (index, port) in spec.make_object().each("ports").enumerate() {
            one_port(port, index, &mut chosen, reservation)
                .map_err(|failed| failed.into_status(name))?;
        }
    }
    health_check(spec, old, reservation)
}

/// Why a node port cannot be allocated: the requested one is refused (`Refused`, 422), or no port is free (`Full`,
/// 500).
enum Failed {
    Refused(FieldError),
    Full,
}

impl Failed {
    fn into_status(self, name: &str) -> Status {
        match self {
            Failed::Refused(error) => invalid(name, &[error]),
            Failed::Full => Status::internal("failed to allocate a nodePort: range is full"),
        }
    }
}

/// The node ports of a service during allocation.
struct Chosen {
    /// Whether ports without a requested number get one.
    unasked: bool,
    /// Node ports that the service already has.
    had: HashSet<i64>,
    /// Node ports by port number; all protocols of a port share one.
    shared: HashMap<i64, i64>,
    given: HashSet<(i64, i64)>,
}

fn one_port(
    port: &mut Map,
    index: usize,
    chosen: &mut Chosen,
    reservation: &mut ServiceReservation,
) -> Result<(), Failed> {
    let number = |port: &Map, member: &str| port.get(member).and_then(Value::as_i64).unwrap_or(0);
    let (own, mut node) = (number(port, "port"), number(port, "nodePort"));
    if node == 0 && !chosen.unasked {
        return Ok(());
    }
    if node == 0 {
        match chosen.shared.get(&own) {
            Some(shared) => node = *shared,
            None => {
                node = i64::from(reservation.take_port().ok_or(Failed::Full)?);
                chosen.shared.insert(own, node);
                chosen.given.insert((own, node));
            }
        }
    }
    if !chosen.had.contains(&node) && !chosen.given.contains(&(own, node)) {
        take_port(node, reservation).map_err(|why| {
            let place = FieldPath::new("spec").child("ports").index(index);
            Failed::Refused(FieldError::invalid(place.child("nodePort"), node, why))
        })?;
    }
    chosen.given.insert((own, node));
    port.insert("nodePort", Value::Int(node));
    Ok(())
}

fn take_port(number: i64, reservation: &mut ServiceReservation) -> Result<(), String> {
    let range = reservation.ranges().ports();
    let (first, last) = (*range.start(), *range.end());
    let port = u16::try_from(number)
        .ok()
        .filter(|port| (first..=last).contains(port));
    match port {
        None => Err(format!(
            "provided port is not in the valid range. The range of valid ports is {first}-{last}"
        )),
        Some(port) if reservation.take(Claim::Port(port)) => Ok(()),
        Some(_) => Err("provided port is already allocated".to_owned()),
    }
}

/// Allocates the health check node port for load balancers.
fn health_check(
    spec: &mut Value,
    old: Option<&Value>,
    reservation: &mut ServiceReservation,
) -> Result<(), Status> {
    if !needs_health_check(spec) || old.is_some_and(needs_health_check) {
        return Ok(());
    }
    let asked = spec.int(&["healthCheckNodePort"]).unwrap_or(0);
    if asked != 0 {
        return take_port(asked, reservation).map_err(|why| {
            Status::internal(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {why}"
            ))
        });
    }
    let port = reservation.take_port().ok_or_else(|| {
        Status::internal("failed to allocate a HealthCheck NodePort: range is full")
    })?;
    set(spec, "healthCheckNodePort", Value::Int(port.into()));
    Ok(())
}
