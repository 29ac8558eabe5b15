//! Volumes, and how `/proc` is mounted.

use super::super::pod::{Failure, Pod, containers, plural, quoted, unless_empty};
use crate::reach::Reach as _;
use bareboat_api::Value;
use std::collections::BTreeSet;

/// The types that everybody may use.
const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The other types, in the order in which they are looked for.
const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// No paths of the host.
pub(crate) fn host_paths(pod: &Pod<'_>) -> Option<Failure> {
    let bad = pod
        .volumes()
        .iter()
        .filter(|volume| volume.has(&["hostPath"]));
    let names: Vec<&str> = bad.map(|volume| volume.text(&["name"])).collect();
    unless_empty(&names, "hostPath volumes", || {
        let noun = plural("volume", "volumes", names.len());
        format!("{noun} {}", quoted(&names))
    })
}

/// Fails if a volume has a type that is not in `ALLOWED` (`restrictedVolumes`).
pub(crate) fn types(pod: &Pod<'_>) -> Option<Failure> {
    let (mut names, mut types) = (Vec::new(), BTreeSet::new());
    for volume in pod.volumes() {
        let has = |kind: &&&str| volume.has(&[kind]);
        if ALLOWED.iter().any(|kind| has(&kind)) {
            continue;
        }
        names.push(volume.text(&["name"]));
        types.insert(RESTRICTED.iter().find(has).copied().unwrap_or("unknown"));
    }
    unless_empty(&names, "restricted volume types", || {
        format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", names.len()),
            quoted(&names),
            plural("uses", "use", names.len()),
            plural(
                "restricted volume type",
                "restricted volume types",
                types.len()
            ),
            quoted(types)
        )
    })
}

/// Parts of `/proc` stay hidden.
pub(crate) fn proc_mount(pod: &Pod<'_>) -> Option<Failure> {
    let (mut bad, mut types) = (Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let found = container.security(&["procMount"]);
        let Some(kind) = found
            .and_then(Value::as_str)
            .filter(|kind| *kind != "Default")
        else {
            continue;
        };
        bad.push(container.name());
        types.insert(kind);
    }
    unless_empty(&bad, "procMount", || {
        format!(
            "{} must not set securityContext.procMount to {}",
            containers(&bad),
            quoted(types)
        )
    })
}

/// In a user namespace there is nothing to hide.
pub(crate) fn proc_mount_1_35(pod: &Pod<'_>) -> Option<Failure> {
    match pod.has_user_namespace() {
        true => None,
        false => proc_mount(pod),
    }
}
