//! Determines the IP families of a service, before addresses are allocated.

use super::ranges::{Family, ServiceRanges};
use crate::reach::Reach;
use bareboat_api::{FieldError, FieldPath, Map, Value};
use std::collections::HashSet;

const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";
const POLICIES: [&str; 3] = [PREFER, REQUIRE, SINGLE];

/// Lists are read up to this length. It exceeds any valid length, so longer lists are rejected anyway.
const LONGEST: usize = 8;

pub(super) fn texts(spec: &Value, member: &str) -> Vec<String> {
    let list = spec.list(&[member]).iter().take(LONGEST);
    list.map(|text| text.as_str().unwrap_or("").to_owned())
        .collect()
}

pub(super) fn is_headless(spec: &Value) -> bool {
    spec.text(&["clusterIP"]) == "None"
}

pub(super) fn needs_address(spec: &Value) -> bool {
    spec.text(&["type"]) != "ExternalName"
}

fn place(member: &str) -> FieldPath {
    FieldPath::new("spec").child(member)
}

/// Returns whether a PreferDualStack service keeps its families.
///
/// A change of the server's ranges does not add or remove a family.
pub(super) fn stays(new: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else {
        return false;
    };
    let prefers = |spec: &Value| spec.text(&["ipFamilyPolicy"]) == PREFER;
    prefers(new)
        && prefers(old)
        && new.text(&["type"]) == old.text(&["type"])
        && texts(new, "clusterIPs") == texts(old, "clusterIPs")
        && texts(new, "ipFamilies") == texts(old, "ipFamilies")
}

/// Sets policy and families of a service, or returns why the server cannot provide them.
// Upstream: pkg/registry/core/service/storage/alloc.go, initIPFamilyFields.
pub(super) fn settle(
    spec: &mut Value,
    old: Option<&Value>,
    ranges: &ServiceRanges,
) -> Result<(), Vec<FieldError>> {
    if !needs_address(spec) || stays(spec, old) {
        return Ok(());
    }
    let no_selector = spec.members(&["selector"]).is_none_or(Map::is_empty);
    let open = is_headless(spec) && no_selector;
    if !spec.has(&["ipFamilyPolicy"]) {
        let before = old.and_then(|old| old.at(&["ipFamilyPolicy"])).cloned();
        let usual = if open { REQUIRE } else { SINGLE };
        set(
            spec,
            "ipFamilyPolicy",
            before.unwrap_or_else(|| usual.into()),
        );
    }
    let wrong = check(spec);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if let Some(old) = old {
        keep_to_one(spec, old)?;
    }
    infer_from_addresses(spec, ranges)?;
    let policy = spec.text(&["ipFamilyPolicy"]).to_owned();
    let mut families = texts(spec, "ipFamilies");
    if !open {
        cannot_be_had(&policy, &families, ranges)?;
    }
    if families.is_empty() {
        families.push(ranges.preferred().name().to_owned());
    }
    // A headless service without a selector gets its endpoints from a client, which may use either family.
    let may_add = open || ranges.is_dual_stack();
    if policy != SINGLE && families.len() == 1 && may_add {
        families.extend(Family::parse(&families[0]).map(|family| family.other().name().to_owned()));
    }
    set(spec, "ipFamilies", families.into_iter().collect());
    Ok(())
}

pub(super) fn set(spec: &mut Value, member: &str, value: Value) {
    spec.make_object().insert(member, value);
}

/// Validates addresses and families, independent of the server's ranges.
// Upstream: pkg/apis/core/validation, ValidateServiceClusterIPsRelatedFields.
pub(crate) fn check(spec: &Value) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    if !needs_address(spec) {
        return wrong;
    }
    let addresses = texts(spec, "clusterIPs");
    let listed = || spec.at(&["clusterIPs"]).cloned().unwrap_or_default();
    let single = spec.text(&["clusterIP"]);
    match addresses.first() {
        None if !single.is_empty() => wrong.push(FieldError::required(place("clusterIPs"), "")),
        Some(_) if single.is_empty() => {
            let why = "must be empty when `clusterIP` is not specified";
            wrong.push(FieldError::invalid(place("clusterIPs"), listed(), why));
        }
        Some(first) if first != single => {
            let why = "first value must match `clusterIP`";
            wrong.push(FieldError::invalid(place("clusterIPs"), listed(), why));
        }
        _ => {}
    }
    let families = texts(spec, "ipFamilies");
    let mut seen = HashSet::new();
    for (index, family) in families.iter().enumerate() {
        let place = place("ipFamilies").index(index);
        if Family::parse(family).is_none() {
            let choices = ["IPv4", "IPv6"];
            wrong.push(FieldError::not_supported(
                place.clone(),
                family.as_str(),
                choices,
            ));
        }
        if !seen.insert(family) {
            wrong.push(FieldError::duplicate(place, family.as_str()));
        }
    }
    let policy = spec.text(&["ipFamilyPolicy"]);
    if spec.has(&["ipFamilyPolicy"]) && !POLICIES.contains(&policy) {
        let place = place("ipFamilyPolicy");
        wrong.push(FieldError::not_supported(place, policy, POLICIES));
    }
    if wrong_addresses(&addresses, &listed, &mut wrong) {
        return wrong;
    }
    let parsed: Vec<Family> = addresses
        .iter()
        .filter_map(|text| Some(Family::of(text.parse().ok()?)))
        .collect();
    if addresses.len() > 1 && !(parsed.len() == 2 && parsed[0] != parsed[1]) {
        let why = "may specify no more than one IP for each IP family";
        wrong.push(FieldError::invalid(place("clusterIPs"), listed(), why));
    }
    for (index, (found, wanted)) in parsed.iter().zip(&families).enumerate() {
        if Family::parse(wanted).is_some_and(|wanted| wanted != *found) {
            let why = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            let place = place("clusterIPs").index(index);
            wrong.push(FieldError::invalid(place, addresses[index].as_str(), why));
        }
    }
    wrong
}

/// Reports invalid addresses; returns true if further checks make no sense.
fn wrong_addresses(
    addresses: &[String],
    listed: &dyn Fn() -> Value,
    wrong: &mut Vec<FieldError>,
) -> bool {
    let mut none = false;
    for (index, address) in addresses.iter().enumerate() {
        if index == 0 && address == "None" {
            if addresses.len() > 1 {
                none = true;
                let why = "'None' must be the first and only value";
                wrong.push(FieldError::invalid(place("clusterIPs"), listed(), why));
            }
        } else if address.parse::<std::net::IpAddr>().is_err() {
            none = true;
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            let place = place("clusterIPs").index(index);
            wrong.push(FieldError::invalid(place, address.as_str(), why));
        }
    }
    if addresses.len() > 2 {
        let why = "may only hold up to 2 values";
        wrong.push(FieldError::invalid(place("clusterIPs"), listed(), why));
    }
    none
}

/// Drops the second family of a service that changes to SingleStack; rejects any other removal.
fn keep_to_one(spec: &mut Value, old: &Value) -> Result<(), Vec<FieldError>> {
    let mut wrong = Vec::new();
    let lists = [
        (
            "clusterIPs",
            "must be 'SingleStack' to release the secondary cluster IP",
        ),
        (
            "ipFamilies",
            "must be 'SingleStack' to release the secondary IP family",
        ),
    ];
    let single = spec.text(&["ipFamilyPolicy"]) == SINGLE;
    for (member, why) in lists {
        let (now, before) = (texts(spec, member), texts(old, member));
        if single && now == before && now.len() > 1 {
            set(spec, member, value_of(&now[..1]));
        } else if !single && !now.is_empty() && now.len() < before.len() {
            let place = place("ipFamilyPolicy");
            wrong.push(FieldError::invalid(
                place,
                spec.text(&["ipFamilyPolicy"]),
                why,
            ));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn value_of(texts: &[String]) -> Value {
    texts.iter().map(String::as_str).collect()
}

/// Appends to `ipFamilies` the families of those `clusterIPs` that have none yet, up to the first that is no address.
/// Fails for families without a range, and for two addresses or families under `SingleStack`.
fn infer_from_addresses(spec: &mut Value, ranges: &ServiceRanges) -> Result<(), Vec<FieldError>> {
    let mut wrong = Vec::new();
    let addresses = texts(spec, "clusterIPs");
    let mut families = texts(spec, "ipFamilies");
    if spec.text(&["ipFamilyPolicy"]) == SINGLE {
        let lists = [(&addresses, "cluster IPs"), (&families, "IP families")];
        for (list, what) in lists {
            if list.len() == 2 {
                let why = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                wrong.push(FieldError::invalid(place("ipFamilyPolicy"), SINGLE, why));
            }
        }
    }
    for (index, text) in addresses.iter().enumerate().skip(families.len()) {
        let Ok(address) = text.parse() else {
            break;
        };
        let family = Family::of(address);
        if ranges.network(family).is_some() {
            families.push(family.name().to_owned());
        } else {
            let why = format!("{} is not configured on this cluster", family.name());
            let place = place("clusterIPs").index(index);
            wrong.push(FieldError::invalid(place, value_of(&addresses), why));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    if !families.is_empty() {
        set(spec, "ipFamilies", value_of(&families));
    }
    Ok(())
}

/// Returns errors for families that this server has no range for.
fn cannot_be_had(
    policy: &str,
    families: &[String],
    ranges: &ServiceRanges,
) -> Result<(), Vec<FieldError>> {
    let mut wrong = Vec::new();
    if policy == REQUIRE && !ranges.is_dual_stack() {
        let why = "this cluster is not configured for dual-stack services";
        wrong.push(FieldError::invalid(place("ipFamilyPolicy"), policy, why));
    }
    for (index, family) in families.iter().enumerate() {
        if Family::parse(family).is_some_and(|family| ranges.network(family).is_none()) {
            let place = place("ipFamilies").index(index);
            let why = "not configured on this cluster";
            wrong.push(FieldError::invalid(place, family.as_str(), why));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}
