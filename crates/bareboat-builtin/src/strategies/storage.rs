//! Storage classes and drivers, priorities and runtimes, claims of devices.

use super::Rules;
use super::check::{Errors, immutable, name, one_of, path, required};
use crate::reach::Reach;
use bareboat_api::{FieldError, Object, names};

/// Members that may not change.
fn frozen(new: &Object, old: &Object, members: &[&str], wrong: &mut Errors) {
    for member in members {
        immutable(new.get(member), old.get(member), path(&[member]), wrong);
    }
}

/// What storage classes do.
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

/// What CSI drivers do.
pub(crate) fn csi_driver() -> Rules {
    Rules::default().updating(|new, old, wrong| {
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

/// What CSI nodes do.
pub(crate) fn csi_node() -> Rules {
    Rules::validating(|node, wrong| {
        for (index, driver) in node.value().list(&["spec", "drivers"]).iter().enumerate() {
            let place = path(&["spec", "drivers"]).index(index);
            required(driver.text(&["name"]), place.child("name"), wrong);
            required(driver.text(&["nodeID"]), place.child("nodeID"), wrong);
        }
    })
}

/// What CSI storage capacities do.
pub(crate) fn csi_storage_capacity() -> Rules {
    Rules::validating(|capacity, wrong| {
        let class = capacity.value().text(&["storageClassName"]);
        name(
            class,
            names::dns1123_subdomain,
            path(&["storageClassName"]),
            wrong,
        );
    })
    .updating(|new, old, wrong| frozen(new, old, &["nodeTopology", "storageClassName"], wrong))
}

/// What volume attachments do.
pub(crate) fn volume_attachment() -> Rules {
    Rules::validating(|attachment, wrong| {
        let value = attachment.value();
        required(
            value.text(&["spec", "attacher"]),
            path(&["spec", "attacher"]),
            wrong,
        );
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
        name(
            value.text(&["spec", "nodeName"]),
            names::dns1123_subdomain,
            path(&["spec", "nodeName"]),
            wrong,
        );
    })
    .updating(|new, old, wrong| frozen(new, old, &["spec"], wrong))
}

/// What volume attributes classes do.
pub(crate) fn volume_attributes_class() -> Rules {
    Rules::validating(|class, wrong| {
        required(
            class.value().text(&["driverName"]),
            path(&["driverName"]),
            wrong,
        );
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

/// The highest priority a user may give.
const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

/// What priority classes do.
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
                &["Never", "PreemptLowerPriority"],
                path(&["preemptionPolicy"]),
                wrong,
            );
        }
    })
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

/// What runtime classes do.
pub(crate) fn runtime_class() -> Rules {
    Rules::validating(|class, wrong| {
        let handler = class.value().text(&["handler"]);
        if required(handler, path(&["handler"]), wrong) {
            name(handler, names::dns1123_label, path(&["handler"]), wrong);
        }
    })
    .updating(|new, old, wrong| frozen(new, old, &["handler"], wrong))
}

/// What resource claims do.
pub(crate) fn resource_claim() -> Rules {
    Rules::default().updating(|new, old, wrong| frozen(new, old, &["spec"], wrong))
}

/// What templates of resource claims do.
pub(crate) fn resource_claim_template() -> Rules {
    resource_claim()
}
