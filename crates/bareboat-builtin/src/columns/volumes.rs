//! Columns of volumes, claims, storage classes and CSI objects.

use super::{UNSET, boolean, text, text_or};
use crate::reach::Reach;
use bareboat_api::kind::Column;
use bareboat_api::{Str, Value};

/// Formats access modes in their short form, in a fixed order.
fn access_modes(modes: &[Value]) -> Value {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found: Vec<&str> = SHORT
        .iter()
        .filter(|(mode, _)| modes.iter().any(|found| found.as_str() == Some(mode)))
        .map(|(_, short)| *short)
        .collect();
    found.join(",").into()
}

/// Returns a column with the phase, or `Terminating` for an object that is being deleted.
fn phase() -> Column {
    Column::string("Status", |object, _| {
        if object.has(&["metadata", "deletionTimestamp"]) {
            return "Terminating".into();
        }
        object.text(&["status", "phase"]).into()
    })
}

fn volume_mode() -> Column {
    text_or("VolumeMode", &["spec", "volumeMode"], UNSET).wide()
}

/// Returns a column with the class from the deprecated annotation or from the spec.
fn storage_class() -> Column {
    Column::string("StorageClass", |object, _| {
        const OLD: &[&str] = &[
            "metadata",
            "annotations",
            "volume.beta.kubernetes.io/storage-class",
        ];
        match object.at(OLD).and_then(Value::as_str) {
            Some(class) => class.into(),
            None => object.text(&["spec", "storageClassName"]).into(),
        }
    })
}

/// Returns the table columns of PersistentVolume.
pub(crate) fn persistent_volumes() -> Vec<Column> {
    vec![
        text("Capacity", &["spec", "capacity", "storage"]),
        Column::string("Access Modes", |volume, _| {
            access_modes(volume.list(&["spec", "accessModes"]))
        }),
        text("Reclaim Policy", &["spec", "persistentVolumeReclaimPolicy"]),
        phase(),
        Column::string("Claim", |volume, _| {
            if !volume.has(&["spec", "claimRef"]) {
                return "".into();
            }
            let claim = |member| volume.text(&["spec", "claimRef", member]);
            format!("{}/{}", claim("namespace"), claim("name")).into()
        }),
        storage_class(),
        text_or(
            "VolumeAttributesClass",
            &["spec", "volumeAttributesClassName"],
            UNSET,
        ),
        text("Reason", &["status", "reason"]),
        Column::age(),
        volume_mode(),
    ]
}

/// Returns the table columns of PersistentVolumeClaim. Capacity and access modes show once a volume is bound.
pub(crate) fn persistent_volume_claims() -> Vec<Column> {
    let bound = |claim: &Value| !claim.text(&["spec", "volumeName"]).is_empty();
    vec![
        phase(),
        text("Volume", &["spec", "volumeName"]),
        Column::string("Capacity", move |claim, _| {
            if bound(claim) {
                super::or(claim.text(&["status", "capacity", "storage"]), "0")
            } else {
                "".into()
            }
        }),
        Column::string("Access Modes", move |claim, _| {
            if bound(claim) {
                access_modes(claim.list(&["status", "accessModes"]))
            } else {
                "".into()
            }
        }),
        storage_class(),
        text_or(
            "VolumeAttributesClass",
            &["spec", "volumeAttributesClassName"],
            UNSET,
        ),
        Column::age(),
        volume_mode(),
    ]
}

/// Returns the table columns of StorageClass. The name of the default class is marked.
pub(crate) fn storage_classes() -> Vec<Column> {
    const DEFAULT: [&str; 2] = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    let name = Column::string("Name", |class, _| {
        let name = class.text(&["metadata", "name"]);
        let default = DEFAULT
            .iter()
            .any(|key| class.text(&["metadata", "annotations", key]) == "true");
        if default {
            return format!("{name} (default)").into();
        }
        name.into()
    });
    vec![
        Column {
            format: Str::const_new("name"),
            ..name
        },
        text("Provisioner", &["provisioner"]),
        text_or("ReclaimPolicy", &["reclaimPolicy"], "Delete"),
        text_or("VolumeBindingMode", &["volumeBindingMode"], "Immediate"),
        Column::string("AllowVolumeExpansion", |class, _| {
            class.flag(&["allowVolumeExpansion"]).into()
        }),
        Column::age(),
    ]
}

/// Returns the table columns of VolumeAttachment.
pub(crate) fn volume_attachments() -> Vec<Column> {
    let attacher = text("Attacher", &["spec", "attacher"]);
    vec![
        Column {
            format: Str::const_new("name"),
            ..attacher
        },
        text("PV", &["spec", "source", "persistentVolumeName"]),
        text("Node", &["spec", "nodeName"]),
        boolean("Attached", &["status", "attached"]),
        Column::age(),
    ]
}

/// Returns the table columns of CSIDriver.
pub(crate) fn csi_drivers() -> Vec<Column> {
    vec![
        Column::string("AttachRequired", |driver, _| {
            driver
                .at(&["spec", "attachRequired"])
                .is_none_or(|value| value.as_bool() != Some(false))
                .into()
        })
        .typed("boolean"),
        boolean("PodInfoOnMount", &["spec", "podInfoOnMount"]),
        boolean("StorageCapacity", &["spec", "storageCapacity"]),
        Column::string("TokenRequests", |driver, _| {
            let audiences: Vec<&str> = driver
                .list(&["spec", "tokenRequests"])
                .iter()
                .map(|request| request.text(&["audience"]))
                .collect();
            super::or(&audiences.join(","), UNSET)
        }),
        boolean("RequiresRepublish", &["spec", "requiresRepublish"]),
        Column::string("Modes", |driver, _| {
            let modes: Vec<&str> = driver
                .list(&["spec", "volumeLifecycleModes"])
                .iter()
                .filter_map(Value::as_str)
                .collect();
            super::or(&modes.join(","), super::NONE)
        }),
        Column::age(),
    ]
}

/// Returns the table columns of CSINode.
pub(crate) fn csi_nodes() -> Vec<Column> {
    vec![
        super::count("Drivers", &["spec", "drivers"]).typed("integer"),
        Column::age(),
    ]
}

/// Returns the table columns of VolumeAttributesClass.
pub(crate) fn volume_attributes_classes() -> Vec<Column> {
    vec![text("DriverName", &["driverName"]), Column::age()]
}
