//! Quota usage of PersistentVolumeClaims and ResourceClaims.

use super::meter::count;
use super::scope::{Scope, Term};
use crate::reach::Reach;
use crate::resources::Amounts;
use bareboat_api::Value;
use bareboat_api::quantity::{Format, Quantity};

const CLASS: &str = ".storageclass.storage.k8s.io/";
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// Maximum number of devices in one claim.
const ALL_DEVICES: i64 = 32;

pub(super) fn covers_volumes(resource: &str) -> bool {
    let own = |name: &str| matches!(name, "persistentvolumeclaims" | "requests.storage");
    own(resource)
        || resource
            .split_once(CLASS)
            .is_some_and(|(_, name)| own(name))
}

pub(super) fn measure_volumes(claim: &Value, usage: &mut Amounts) {
    let class = match claim.text(&["metadata", "annotations", CLASS_ANNOTATION]) {
        "" => claim.text(&["spec", "storageClassName"]),
        class => class,
    };
    if !class.is_empty() {
        usage.set(format!("{class}{CLASS}persistentvolumeclaims"), count(1));
    }
    let read = |path: &[&str]| {
        let amounts = Amounts::read(claim.members(path));
        amounts.get("storage").map(whole_bytes)
    };
    let Some(mut storage) = read(&["spec", "resources", "requests"]) else {
        return;
    };
    // After a failed expansion, more may be allocated than is requested now.
    if let Some(allocated) = read(&["status", "allocatedResources"]) {
        storage = storage.max(allocated);
    }
    usage.set("requests.storage", storage);
    if !class.is_empty() {
        usage.set(format!("{class}{CLASS}requests.storage"), storage);
    }
}

/// Rounds storage up to whole bytes.
fn whole_bytes(amount: Quantity) -> Quantity {
    match amount.as_i64() {
        Some(_) => amount,
        None => Quantity::from_units(amount.units(), amount.format()),
    }
}

pub(super) fn is_within(term: &Term, claim: &Value) -> bool {
    if term.scope != Scope::VolumeAttributesClass {
        return false;
    }
    let places: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &[
            "status",
            "modifyVolumeStatus",
            "targetVolumeAttributesClassName",
        ],
    ];
    let classes = places.into_iter().map(|place| claim.text(place));
    let classes: Vec<&str> = classes.filter(|class| !class.is_empty()).collect();
    match classes.is_empty() {
        true => term.matches(None),
        false => classes.into_iter().any(|class| term.matches(Some(class))),
    }
}

pub(super) fn covers_devices(resource: &str) -> bool {
    resource.ends_with(DEVICES)
}

pub(super) fn measure_devices(claim: &Value, usage: &mut Amounts) {
    for request in claim.list(&["spec", "devices", "requests"]) {
        let mut most = Amounts::default();
        let alternatives = request.list(&["firstAvailable"]).iter();
        for wanted in alternatives.chain(request.get("exactly")) {
            let number = match wanted.text(&["allocationMode"]) {
                "ExactCount" => wanted.int(&["count"]).unwrap_or(0),
                "All" => ALL_DEVICES,
                _ => 0,
            };
            let mut own = Amounts::default();
            own.set(
                format!("{}{DEVICES}", wanted.text(&["deviceClassName"])),
                Quantity::from_units(number, Format::Decimal),
            );
            most.raise_to(&own);
        }
        usage.add_all(&most);
    }
}
