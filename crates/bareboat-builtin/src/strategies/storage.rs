//! StorageClasses, CSI objects, VolumeAttachments, PriorityClasses and RuntimeClasses.

use super::Rules;
use super::amounts::{amount_of, container_resource_name, quantity};
use super::check::{Errors, NOT_NEGATIVE, immutable, name, not_negative, one_of, path, required};
use super::pod_spec::tolerations;
use super::volume_source::{driver_name, source};
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::metadata::validate_labels;
use bareboat_api::value::Seen;
use bareboat_api::{FieldError, FieldPath, Map, Object, Value, names};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Validates that members did not change.
fn frozen(new: &Object, old: &Object, members: &[&str], wrong: &mut Errors) {
    for member in members {
        immutable(new.get(member), old.get(member), path(&[member]), wrong);
    }
}

/// Returns the strategy of StorageClass: validation; most fields are immutable.
pub(crate) fn storage_class() -> Rules {
    Rules::validating(|class, wrong| {
        let value = class.value();
        let provisioner = value.text(&["provisioner"]);
        if required(provisioner, path(&["provisioner"]), wrong) {
            name(
                &provisioner.to_lowercase(),
                names::qualified_name,
                path(&["provisioner"]),
                wrong,
            );
        }
        if value.has(&["reclaimPolicy"]) {
            one_of(
                value.text(&["reclaimPolicy"]),
                &["Delete", "Retain"],
                path(&["reclaimPolicy"]),
                wrong,
            );
        }
        one_of(
            value.text(&["volumeBindingMode"]),
            &["Immediate", "WaitForFirstConsumer"],
            path(&["volumeBindingMode"]),
            wrong,
        );
        parameters(class, false, wrong);
        topologies(class, wrong);
    })
    .updating(|new, old, wrong| {
        frozen(
            new,
            old,
            &[
                "parameters",
                "provisioner",
                "reclaimPolicy",
                "volumeBindingMode",
            ],
            wrong,
        );
    })
}

/// Validates driver parameters: number, length and names.
fn parameters(class: &Object, needed: bool, wrong: &mut Errors) {
    const MOST: usize = 512;
    const LONGEST: usize = 256 * 1024;
    let place = path(&["parameters"]);
    let empty = Map::new();
    let given = class.value().members(&["parameters"]).unwrap_or(&empty);
    if needed && given.is_empty() {
        let detail = "must contain at least one key/value pair";
        return wrong.push(FieldError::required(place, detail));
    }
    if given.len() > MOST {
        let detail = format!("cannot be more than {MOST}");
        return wrong.push(FieldError::invalid(place, given.len() as i64, detail));
    }
    let mut length = 0;
    for (key, value) in given.iter() {
        if key.is_empty() {
            let detail = "field can not be empty.";
            wrong.push(FieldError::invalid(place.clone(), key, detail));
        }
        length += key.len() + value.as_str().map_or(0, str::len);
    }
    if length > LONGEST {
        wrong.push(FieldError::too_long(place, LONGEST));
    }
}

/// Validates allowed topologies: terms must differ.
fn topologies(class: &Object, wrong: &mut Errors) {
    let terms = class.value().list(&["allowedTopologies"]);
    let mut seen: HashSet<BTreeMap<&str, BTreeSet<&str>>> = HashSet::new();
    for (index, term) in terms.iter().enumerate() {
        let place = path(&["allowedTopologies"])
            .index(index)
            .child("matchLabelExpressions");
        let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (index, needed) in term.list(&["matchLabelExpressions"]).iter().enumerate() {
            let place = place.index(index);
            let values = needed.list(&["values"]);
            if values.is_empty() {
                wrong.push(FieldError::required(place.child("values"), ""));
            }
            let mut known = BTreeSet::new();
            for (index, value) in values.iter().enumerate() {
                let value = value.as_str().unwrap_or("");
                if !known.insert(value) {
                    let place = place.child("values").index(index);
                    wrong.push(FieldError::duplicate(place, value));
                }
            }
            let key = needed.text(&["key"]);
            name(key, names::qualified_name, place.child("key"), wrong);
            if found.insert(key, known).is_some() {
                wrong.push(FieldError::duplicate(place.child("key"), key));
            }
        }
        // An empty term counts as a duplicate.
        if found.is_empty() || !seen.insert(found) {
            wrong.push(FieldError::duplicate(place, ""));
        }
    }
}

/// Returns the strategy of CSIDriver: validation and warnings; changes of the spec raise the generation.
pub(crate) fn csi_driver() -> Rules {
    Rules::validating(validate_driver)
        .warning(|new, old| {
            let asks = !new.value().list(&["spec", "tokenRequests"]).is_empty();
            let unsaid = !new.value().has(&["spec", "serviceAccountTokenInSecrets"]);
            let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";
            (old.is_none() && asks && unsaid).then(|| text.to_owned()).into_iter().collect()
        })
        .changing(|new, old, _| {
            if new.get("spec") != old.get("spec") {
                new.set_meta("generation", Value::Int(old.generation() + 1));
            }
        })
        .updating(|new, old, wrong| {
        for (member, shown) in [
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ] {
            immutable(
                new.at(&["spec", member]),
                old.at(&["spec", member]),
                path(&["spec", shown]),
                wrong,
            );
        }
    })
}

fn validate_driver(driver: &Object, wrong: &mut Errors) {
    let spec = driver.get("spec").unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    driver_name(driver.name(), &path(&["metadata", "name"]), wrong);
    for mode in spec
        .list(&["volumeLifecycleModes"])
        .iter()
        .filter_map(Value::as_str)
    {
        let known = ["Persistent", "Ephemeral"];
        one_of(mode, &known, place.child("volumeLifecycleModes"), wrong);
    }
    if spec.has(&["fsGroupPolicy"]) {
        let policy = spec.text(&["fsGroupPolicy"]);
        let known = ["File", "None", "ReadWriteOnceWithFSType"];
        one_of(policy, &known, place.child("fsGroupPolicy"), wrong);
    }
    let mut audiences: HashSet<&str> = HashSet::new();
    for (index, request) in spec.list(&["tokenRequests"]).iter().enumerate() {
        let place = place.child("tokenRequests").index(index);
        let audience = request.text(&["audience"]);
        if !audiences.insert(audience) {
            wrong.push(FieldError::duplicate(place.child("audience"), audience));
        }
        let at = place.child("expirationSeconds");
        match request.int(&["expirationSeconds"]) {
            Some(seconds) if seconds < 600 => {
                let detail = "may not specify a duration less than 10 minutes";
                wrong.push(FieldError::invalid(at, seconds, detail));
            }
            Some(seconds) if seconds > 1 << 32 => {
                let detail = "may not specify a duration larger than 2^32 seconds";
                wrong.push(FieldError::invalid(at, seconds, detail));
            }
            _ => {}
        }
    }
    let period = spec.int(&["nodeAllocatableUpdatePeriodSeconds"]);
    if let Some(seconds) = period.filter(|seconds| *seconds < 10) {
        wrong.push(FieldError::invalid(
            place.child("nodeAllocatableUpdatePeriodSeconds"),
            seconds,
            "must be greater than or equal to 10 seconds",
        ));
    }
    if spec.has(&["serviceAccountTokenInSecrets"]) && spec.list(&["tokenRequests"]).is_empty() {
        wrong.push(FieldError::invalid(
            place.child("serviceAccountTokenInSecrets"),
            spec.flag(&["serviceAccountTokenInSecrets"]),
            "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
        ));
    }
}

/// Returns the strategy of CSINode: validation; drivers may be added and removed, but not changed.
pub(crate) fn csi_node() -> Rules {
    Rules::validating(|node, wrong| {
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, driver) in node.value().list(&["spec", "drivers"]).iter().enumerate() {
            let place = path(&["spec", "drivers"]).index(index);
            let text = driver.text(&["name"]);
            required(text, place.child("name"), wrong);
            driver_name(text, &place.child("name"), wrong);
            if !seen.insert(text) {
                wrong.push(FieldError::duplicate(place.child("name"), text));
            }
            required(driver.text(&["nodeID"]), place.child("nodeID"), wrong);
            let count = driver.int(&["allocatable", "count"]);
            not_negative(count, place.child("allocatable").child("count"), wrong);
            let mut keys: HashSet<&str> = HashSet::new();
            for key in driver
                .list(&["topologyKeys"])
                .iter()
                .filter_map(Value::as_str)
            {
                required(key, place.clone(), wrong);
                name(key, names::qualified_name, place.clone(), wrong);
                if !keys.insert(key) {
                    wrong.push(FieldError::duplicate(place.clone(), key));
                }
            }
        }
    })
    .updating(|new, old, wrong| {
        let before = old.value().list(&["spec", "drivers"]).iter();
        // Driver names are unique.
        let before: HashMap<&str, &Value> =
            before.map(|known| (known.text(&["name"]), known)).collect();
        for driver in new.value().list(&["spec", "drivers"]) {
            let known = before.get(driver.text(&["name"]));
            if known.is_some_and(|known| *known != driver) {
                let place = path(&["spec", "drivers"]);
                wrong.push(FieldError::invalid(
                    place,
                    driver.clone(),
                    "field is immutable",
                ));
            }
        }
    })
}

/// Returns the strategy of CSIStorageCapacity: validation; topology and storage class are immutable.
pub(crate) fn csi_storage_capacity() -> Rules {
    Rules::validating(|capacity, wrong| {
        let class = capacity.value().text(&["storageClassName"]);
        name(
            class,
            names::dns1123_subdomain,
            path(&["storageClassName"]),
            wrong,
        );
        for member in ["capacity", "maximumVolumeSize"] {
            let Some(value) = capacity.get(member) else {
                continue;
            };
            if quantity(value).is_some_and(|amount| amount.sign() < 0) {
                // Upstream reports both at the capacity.
                let place = path(&["capacity"]);
                wrong.push(FieldError::invalid(place, value.clone(), NOT_NEGATIVE));
            }
        }
        if let Some(topology) = capacity
            .get("nodeTopology")
            .filter(|value| !value.is_null())
        {
            wrong.extend(validate_selector(topology, &path(&["nodeTopology"])));
        }
    })
    .updating(|new, old, wrong| frozen(new, old, &["nodeTopology", "storageClassName"], wrong))
}

/// Returns the strategy of VolumeAttachment: validation; the spec is immutable.
pub(crate) fn volume_attachment() -> Rules {
    Rules::validating(|attachment, wrong| {
        let value = attachment.value();
        let attacher = value.text(&["spec", "attacher"]);
        required(attacher, path(&["spec", "attacher"]), wrong);
        driver_name(attacher, &path(&["spec", "attacher"]), wrong);
        let inline = value.has(&["spec", "source", "inlineVolumeSpec"]);
        let named = value.has(&["spec", "source", "persistentVolumeName"]);
        let place = path(&["spec", "source"]);
        if !inline && !named {
            wrong.push(FieldError::required(
                place,
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ));
        } else if inline && named {
            wrong.push(FieldError::forbidden(
                place,
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            ));
        }
        let place = path(&["spec", "source"]);
        let volume = value.at(&["spec", "source", "persistentVolumeName"]);
        if let Some(volume) = volume.and_then(Value::as_str) {
            let place = place.child("persistentVolumeName");
            if volume.is_empty() {
                let detail = "must specify non empty persistentVolumeName";
                wrong.push(FieldError::required(place.clone(), detail));
            }
            name(volume, names::dns1123_subdomain, place, wrong);
        }
        if let Some(volume) = value.members(&["spec", "source", "inlineVolumeSpec"]) {
            inline_volume(volume, &place.child("inlineVolumeSpec"), wrong);
        }
        name(
            value.text(&["spec", "nodeName"]),
            names::dns1123_subdomain,
            path(&["spec", "nodeName"]),
            wrong,
        );
    })
    .updating(|new, old, wrong| frozen(new, old, &["spec"], wrong))
}

/// Validates an inline CSI volume.
fn inline_volume(volume: &Map, place: &FieldPath, wrong: &mut Errors) {
    for member in ["capacity", "claimRef", "storageClassName", "volumeMode"] {
        if volume.get(member).is_some_and(|value| !value.is_null()) {
            let detail = "may not be specified in the context of inline volumes";
            wrong.push(FieldError::forbidden(place.child(member), detail));
        }
    }
    if !volume.contains_key("csi") {
        let detail = "has to be specified in the context of inline volumes";
        wrong.push(FieldError::required(place.child("csi"), detail));
    }
    source(volume, place, wrong);
}

/// Returns the strategy of VolumeAttributesClass: validation; driver and parameters are immutable.
pub(crate) fn volume_attributes_class() -> Rules {
    Rules::validating(|class, wrong| {
        let driver = class.value().text(&["driverName"]);
        if required(driver, path(&["driverName"]), wrong) {
            let lower = driver.to_lowercase();
            name(&lower, names::qualified_name, path(&["driverName"]), wrong);
        }
        parameters(class, true, wrong);
    })
    .updating(|new, old, wrong| {
        for member in ["driverName", "parameters"] {
            if new.get(member) != old.get(member) {
                wrong.push(FieldError::forbidden(
                    path(&[member]),
                    format!("updates to {member} are forbidden."),
                ));
            }
        }
    })
}

/// The highest priority of a PriorityClass that users may create.
const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

/// Returns the strategy of PriorityClass: validation; value and preemption policy are immutable.
pub(crate) fn priority_class() -> Rules {
    Rules::validating(|class, wrong| {
        let value = class.value().int(&["value"]).unwrap_or(0);
        let name = class.name();
        if name.starts_with("system-") {
            let known = match name {
                "system-cluster-critical" => Some(2_000_000_000),
                "system-node-critical" => Some(2_000_001_000),
                _ => None,
            };
            let problem = match known {
                None => Some(format!("{name} is not a known system priority class")),
                Some(wanted) if wanted != value => {
                    Some(format!("value of {name} PriorityClass must be {wanted}"))
                }
                Some(_) if class.value().flag(&["globalDefault"]) => {
                    Some(format!("globalDefault of {name} PriorityClass must be false"))
                }
                Some(_) => None,
            };
            if let Some(problem) = problem {
                wrong.push(FieldError::forbidden(
                    path(&["metadata", "name"]),
                    format!("priority class names with 'system-' prefix are reserved for system use only. error: {problem}"),
                ));
            }
        } else if value > HIGHEST_USER_PRIORITY {
            wrong.push(FieldError::forbidden(
                path(&["value"]),
                format!("maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"),
            ));
        }
        let policy = class.value().text(&["preemptionPolicy"]);
        if !policy.is_empty() {
            one_of(
                policy,
                &["PreemptLowerPriority", "Never"],
                path(&["preemptionPolicy"]),
                wrong,
            );
        }
    })
    // Their generation is always 1.
    .creating(|class, _| class.set_meta("generation", Value::Int(1)))
    .updating(|new, old, wrong| {
        if new.get("value") != old.get("value") {
            wrong.push(FieldError::forbidden(
                path(&["value"]),
                "may not be changed in an update.",
            ));
        }
        frozen(new, old, &["preemptionPolicy"], wrong);
    })
}

/// Returns the strategy of RuntimeClass: validation; the handler is immutable.
pub(crate) fn runtime_class() -> Rules {
    Rules::validating(|class, wrong| {
        let handler = class.value().text(&["handler"]);
        if required(handler, path(&["handler"]), wrong) {
            name(handler, names::dns1123_label, path(&["handler"]), wrong);
        }
        let overhead = class.value().members(&["overhead", "podFixed"]);
        for (resource, value) in overhead.into_iter().flat_map(Map::iter) {
            let place = path(&["overhead", "limits"]).key(resource);
            container_resource_name(resource, &place, wrong);
            amount_of(resource, value, &place, wrong);
        }
        let place = path(&["scheduling"]);
        validate_labels(
            class.at(&["scheduling", "nodeSelector"]),
            &place.child("nodeSelector"),
            wrong,
        );
        let place = place.child("tolerations");
        let given = class.value().list(&["scheduling", "tolerations"]);
        tolerations(given, &place, wrong);
        let mut seen = Seen::new();
        for (index, toleration) in given.iter().enumerate() {
            if !seen.insert(toleration) {
                let place = place.index(index);
                wrong.push(FieldError::duplicate(place, toleration.clone()));
            }
        }
    })
    .updating(|new, old, wrong| frozen(new, old, &["handler"], wrong))
}
