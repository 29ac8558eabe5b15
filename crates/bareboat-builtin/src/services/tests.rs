//! Tests of address and port allocation.
#![allow(clippy::unwrap_used)]

use super::{Claims, ServiceRanges, allocating};
use crate::kinds;
use bareboat_api::kind::{Kind, Reservations, User, WriteContext};
use bareboat_api::{Object, Status, Value, value};
use std::sync::{Arc, OnceLock};

fn ranges(networks: &str) -> Arc<Claims> {
    Claims::new(ServiceRanges::parse(networks, "30000-32767").unwrap())
}

/// Cached, because building all kinds takes longer than these tests.
fn bare() -> &'static Kind {
    static KIND: OnceLock<Kind> = OnceLock::new();
    KIND.get_or_init(|| kinds::find("", "services").unwrap())
}

fn services(claims: &Arc<Claims>) -> Kind {
    allocating(bare().clone(), claims)
}

fn service(name: &str, spec: Value) -> Object {
    let mut object = value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "n"}});
    object.make_object().insert("spec", spec);
    bare().versions[0].shape.default(&mut object).unwrap();
    Object::try_from(object).unwrap()
}

fn plain(name: &str) -> Object {
    service(name, value!({"ports": [{"port": 80}]}))
}

fn reserve(kind: &Kind, new: &mut Object, old: Option<&Object>) -> Result<Reservations, Status> {
    let user = User::default();
    let ctx = WriteContext {
        subresource: None,
        user: &user,
        now: "2026-01-01T00:00:00Z",
        version: "v1",
        dry_run: false,
    };
    if let Some(old) = old {
        kind.strategy.prepare_update(new, old, &ctx);
    }
    kind.strategy.reserve(new, old, &ctx)
}

/// Creates and stores a service; returns the message if it is rejected.
fn create(claims: &Arc<Claims>, mut object: Object) -> Result<Object, String> {
    let held = reserve(&services(claims), &mut object, None).map_err(|status| status.message)?;
    claims.note(&format!("n/{}", object.name()), Some(object.value()));
    drop(held);
    Ok(object)
}

fn update(claims: &Arc<Claims>, mut object: Object, old: &Object) -> Result<Object, String> {
    let held =
        reserve(&services(claims), &mut object, Some(old)).map_err(|status| status.message)?;
    claims.note(&format!("n/{}", object.name()), Some(object.value()));
    drop(held);
    Ok(object)
}

fn spec(object: &Object, member: &str) -> Value {
    object.at(&["spec", member]).cloned().unwrap_or_default()
}

#[test]
fn the_same_name_gets_the_same_address_again() {
    let claims = ranges("10.0.0.0/24");
    let first = create(&claims, plain("a")).unwrap();
    claims.note("n/a", None);
    let again = create(&claims, plain("a")).unwrap();
    assert_eq!(spec(&first, "clusterIP"), spec(&again, "clusterIP"));
    let elsewhere = create(&ranges("10.0.0.0/24"), plain("a")).unwrap();
    assert_eq!(spec(&first, "clusterIP"), spec(&elsewhere, "clusterIP"));
}

#[test]
fn a_range_is_allocated_to_its_last_address() {
    let claims = ranges("10.0.0.0/26");
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..62 {
        let made = create(&claims, plain(&format!("s{number}"))).unwrap();
        assert!(seen.insert(spec(&made, "clusterIP").to_string()));
    }
    let full = create(&claims, plain("more")).unwrap_err();
    assert!(full.ends_with("range is full"), "{full}");
    claims.note("n/s7", None);
    create(&claims, plain("more")).unwrap();
}

#[test]
fn reservations_last_until_the_write_ends() {
    let claims = ranges("10.0.0.0/30");
    let kind = services(&claims);
    let (mut a, mut b, mut c) = (plain("a"), plain("b"), plain("c"));
    let first = reserve(&kind, &mut a, None).unwrap();
    let second = reserve(&kind, &mut b, None).unwrap();
    assert_ne!(spec(&a, "clusterIP"), spec(&b, "clusterIP"));
    assert!(reserve(&kind, &mut c.clone(), None).is_err());
    // The first write failed, so its reservation is released.
    drop(first);
    let _third = reserve(&kind, &mut c, None).unwrap();
    assert_eq!(spec(&a, "clusterIP"), spec(&c, "clusterIP"));
    drop(second);
}

#[test]
fn an_update_keeps_omitted_values_and_releases_unneeded_ones() {
    let claims = ranges("10.0.0.0/24");
    let old = create(
        &claims,
        service("a", value!({"type": "NodePort", "ports": [{"port": 80}]})),
    )
    .unwrap();
    let port = old.at(&["spec", "ports"]).unwrap().as_array().unwrap()[0]
        .get("nodePort")
        .cloned()
        .unwrap();
    let same = update(
        &claims,
        service("a", value!({"type": "NodePort", "ports": [{"port": 80}]})),
        &old,
    )
    .unwrap();
    assert_eq!(spec(&same, "ports"), spec(&old, "ports"));
    assert_eq!(spec(&same, "clusterIPs"), spec(&old, "clusterIPs"));
    let mut plain_again = old.clone();
    plain_again
        .map_mut()
        .object_mut("spec")
        .insert("type", "ClusterIP".into());
    let less = update(&claims, plain_again, &old).unwrap();
    assert_eq!(
        spec(&less, "ports").as_array().unwrap()[0].get("nodePort"),
        None
    );
    assert_eq!(spec(&less, "externalTrafficPolicy"), Value::Null);
    let ask = value!({"type": "NodePort", "ports": [{"port": 1, "nodePort": port}]});
    create(&claims, service("b", ask)).expect("a released node port");

    let mut named = less.clone();
    let members = named.map_mut().object_mut("spec");
    members.insert("type", "ExternalName".into());
    members.insert("externalName", "x.y".into());
    let named = update(&claims, named, &less).unwrap();
    assert_eq!(spec(&named, "clusterIP"), Value::Null);
    assert_eq!(spec(&named, "ipFamilies"), Value::Null);
    let ask = value!({"clusterIP": (spec(&less, "clusterIP")), "ports": [{"port": 1}]});
    create(&claims, service("c", ask)).expect("a released address");
}

#[test]
fn families_follow_the_policy() {
    let claims = ranges("10.0.0.0/24,fd00::/112");
    let both = create(
        &claims,
        service(
            "a",
            value!({"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]}),
        ),
    )
    .unwrap();
    assert_eq!(spec(&both, "ipFamilies"), value!(["IPv4", "IPv6"]));
    let addresses = spec(&both, "clusterIPs");
    assert_eq!(addresses.as_array().unwrap().len(), 2);
    let one = update(&claims, service("a", value!({"ipFamilyPolicy": "SingleStack", "ports": [{"port": 80}], "clusterIPs": (addresses.clone()), "clusterIP": (spec(&both, "clusterIP")), "ipFamilies": ["IPv4", "IPv6"]})), &both).unwrap();
    assert_eq!(spec(&one, "clusterIPs").as_array().unwrap().len(), 1);
    assert_eq!(spec(&one, "ipFamilies"), value!(["IPv4"]));
    let again = update(
        &claims,
        service(
            "a",
            value!({"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}),
        ),
        &one,
    )
    .unwrap();
    assert_eq!(spec(&again, "clusterIPs"), addresses);
    let sixth = create(
        &claims,
        service(
            "b",
            value!({"ipFamilies": ["IPv6"], "ports": [{"port": 80}]}),
        ),
    )
    .unwrap();
    assert!(
        spec(&sixth, "clusterIP")
            .as_str()
            .unwrap()
            .starts_with("fd00::")
    );
}

#[test]
fn all_protocols_of_a_port_share_one_number() {
    let claims = ranges("10.0.0.0/24");
    let dns = value!({"type": "NodePort", "ports": [
        {"name": "a", "port": 53, "protocol": "TCP"},
        {"name": "b", "port": 53, "protocol": "UDP"},
        {"name": "c", "port": 54},
    ]});
    let made = create(&claims, service("dns", dns)).unwrap();
    let ports: Vec<i64> = spec(&made, "ports")
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port.get("nodePort").unwrap().as_i64().unwrap())
        .collect();
    assert_eq!(ports[0], ports[1]);
    assert_ne!(ports[0], ports[2]);
    let twice = value!({"type": "NodePort", "ports": [
        {"name": "a", "port": 1, "nodePort": 30001},
        {"name": "b", "port": 2, "nodePort": 30001},
    ]});
    let refused = create(&claims, service("x", twice)).unwrap_err();
    assert_eq!(
        refused,
        "Service \"x\" is invalid: spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated"
    );
}

#[test]
fn local_load_balancers_get_a_health_check_port() {
    let claims = ranges("10.0.0.0/24");
    let local =
        value!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    let made = create(&claims, service("a", local)).unwrap();
    let port = spec(&made, "healthCheckNodePort").as_i64().unwrap();
    let ask = value!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": port, "ports": [{"port": 80}]});
    let refused = create(&claims, service("b", ask)).unwrap_err();
    assert!(
        refused.ends_with("provided port is already allocated"),
        "{refused}"
    );
    let none = value!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{"port": 80}]});
    let made = create(&claims, service("c", none)).unwrap();
    assert_eq!(
        spec(&made, "ports").as_array().unwrap()[0].get("nodePort"),
        None
    );
}

#[test]
fn an_added_port_gets_its_own_number() {
    let claims = ranges("10.0.0.0/24");
    let one = value!({"type": "NodePort", "ports": [{"name": "a", "port": 80, "protocol": "TCP"}]});
    let old = create(&claims, service("a", one)).unwrap();
    let three = value!({"type": "NodePort", "ports": [
        {"name": "a", "port": 80, "protocol": "TCP"},
        {"name": "b", "port": 90, "protocol": "TCP"},
        {"name": "c", "port": 80, "protocol": "UDP"},
    ]});
    let new = update(&claims, service("a", three), &old).unwrap();
    let ports = spec(&new, "ports");
    let number = |index: usize| ports.as_array().unwrap()[index].get("nodePort").cloned();
    let before = spec(&old, "ports").as_array().unwrap()[0]
        .get("nodePort")
        .cloned();
    assert_eq!(number(0), before);
    assert_ne!(number(1), before);
    assert_eq!(number(2), before, "one number serves all protocols");
}

#[test]
fn invalid_ranges_are_rejected() {
    for networks in [
        "",
        "10.0.0.0",
        "10.0.0.0/33",
        "10.0.0.0/31",
        "fd00::/32",
        "10.0.0.0/24,10.1.0.0/24",
        "10.0.0.0/24,fd00::/112,10.1.0.0/24",
    ] {
        assert!(ServiceRanges::parse(networks, "1-2").is_err(), "{networks}");
    }
    for ports in ["", "5", "5-4", "0-9", "1-70000", "a-b"] {
        assert!(
            ServiceRanges::parse("10.0.0.0/24", ports).is_err(),
            "{ports}"
        );
    }
    let odd = ServiceRanges::parse("10.0.0.77/24", "30000-30000").unwrap();
    assert_eq!(odd.networks(), ["10.0.0.0/24"]);
}

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[test]
fn services_never_share_and_nothing_leaks() {
    let claims =
        Claims::new(ServiceRanges::parse("10.0.0.0/27,fd00::/124", "30000-30020").unwrap());
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut stored: std::collections::BTreeMap<String, Object> = Default::default();
    for _ in 0..5000 {
        let name = format!("s{}", dice.roll(24));
        let ty = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"][dice.roll(4) as usize];
        let policy = ["SingleStack", "PreferDualStack", "RequireDualStack"][dice.roll(3) as usize];
        let mut wanted =
            value!({"type": ty, "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]});
        if ty == "ExternalName" {
            wanted.make_object().insert("externalName", "a.b".into());
        } else {
            wanted.make_object().insert("ipFamilyPolicy", policy.into());
            if dice.roll(3) == 0 {
                let address = format!("10.0.0.{}", dice.roll(32));
                wanted.make_object().insert("clusterIP", address.into());
            }
        }
        if ty == "LoadBalancer" && dice.roll(2) == 0 {
            wanted
                .make_object()
                .insert("externalTrafficPolicy", "Local".into());
        }
        let object = service(&name, wanted);
        let outcome = match stored.get(&name) {
            Some(_) if dice.roll(3) == 0 => {
                claims.note(&format!("n/{name}"), None);
                stored.remove(&name);
                continue;
            }
            // Validation, which does not run here, would reject a PUT that changes the address.
            Some(old) if object.at(&["spec", "clusterIP"]).is_none() => {
                update(&claims, object, &old.clone())
            }
            Some(_) => continue,
            None => create(&claims, object),
        };
        if let Ok(object) = outcome {
            stored.insert(name, object);
        }
        let mut owners: std::collections::HashMap<String, &str> = Default::default();
        for (name, object) in &stored {
            let mut has: Vec<String> = Vec::new();
            for address in spec(object, "clusterIPs").as_array().unwrap_or(&[]) {
                has.push(address.as_str().unwrap().to_owned());
            }
            for port in spec(object, "ports").as_array().unwrap_or(&[]) {
                has.extend(port.get("nodePort").map(Value::to_string));
            }
            has.extend(
                spec(object, "healthCheckNodePort")
                    .as_i64()
                    .map(|port| port.to_string()),
            );
            for thing in has {
                let before = owners.insert(thing.clone(), name);
                assert!(
                    before.is_none_or(|before| before == name),
                    "{thing} of {before:?} and {name}"
                );
            }
        }
    }
    // After all services are deleted, everything is free again.
    for name in stored.keys() {
        claims.note(&format!("n/{name}"), None);
    }
    for number in 0..30 {
        create(&claims, plain(&format!("again{number}"))).unwrap();
    }
}

#[test]
fn hostile_services_cost_no_more_than_their_size() {
    let claims = ranges("10.0.0.0/24");
    let many = |entry: Value| Value::Array(vec![entry; 200_000]);
    let mut families = service("a", value!({"ports": [{"port": 80}]}));
    families
        .map_mut()
        .object_mut("spec")
        .insert("ipFamilies", many("IPv4".into()));
    assert!(create(&claims, families).is_err());
    let mut ports = service("b", value!({"type": "NodePort"}));
    ports
        .map_mut()
        .object_mut("spec")
        .insert("ports", many(value!({"port": 80, "protocol": "TCP"})));
    // Validation rejects it after all of them shared one number.
    create(&claims, ports).unwrap();
}
