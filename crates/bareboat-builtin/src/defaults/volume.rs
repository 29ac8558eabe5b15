//! Defaults of pod volumes and of PersistentVolume sources.

use super::pod::pull_policy;
use crate::reach::Fill;
use bareboat_api::Map;

/// Sets the defaults of a pod's volume.
pub(super) fn volume(volume: &mut Map) {
    // A volume without a source is an `emptyDir`.
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir", Map::new().into());
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.sub(source) {
            source.fill("defaultMode", 0o644);
        }
    }
    if let Some(source) = volume.sub("downwardAPI") {
        field_refs(source);
    }
    if let Some(projected) = volume.sub("projected") {
        for source in projected.each("sources") {
            if let Some(token) = source.sub("serviceAccountToken") {
                token.fill("expirationSeconds", 3600);
            }
            if let Some(downward) = source.sub("downwardAPI") {
                field_refs(downward);
            }
        }
    }
    if let Some(claim) = volume
        .sub("ephemeral")
        .and_then(|source| source.sub("volumeClaimTemplate"))
    {
        claim.object_mut("spec").fill("volumeMode", "Filesystem");
    }
    if let Some(image) = volume.sub("image") {
        let policy = pull_policy(image.get_str("reference").unwrap_or(""));
        image.fill("pullPolicy", policy);
    }
    source(volume);
}

/// Sets the defaults that volume sources share in pods and PersistentVolumes.
pub(super) fn source(parent: &mut Map) {
    if let Some(path) = parent.sub("hostPath") {
        path.fill("type", "");
    }
    if let Some(iscsi) = parent.sub("iscsi") {
        iscsi.fill("iscsiInterface", "default");
    }
    if let Some(rbd) = parent.sub("rbd") {
        rbd.fill("pool", "rbd");
        rbd.fill("user", "admin");
        rbd.fill("keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = parent.sub("azureDisk") {
        disk.fill("cachingMode", "ReadWrite");
        disk.fill("fsType", "ext4");
        disk.fill("readOnly", false);
        disk.fill("kind", "Shared");
    }
    if let Some(scale) = parent.sub("scaleIO") {
        scale.fill("storageMode", "ThinProvisioned");
        scale.fill("fsType", "xfs");
    }
}

fn field_refs(source: &mut Map) {
    for item in source.each("items") {
        if let Some(field) = item.sub("fieldRef") {
            field.fill("apiVersion", "v1");
        }
    }
}
