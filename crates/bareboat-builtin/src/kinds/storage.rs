//! The group `storage.k8s.io`.

use super::build::{cluster, namespaced};
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

const GROUP: &str = "storage.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(GROUP, "storageclasses", "StorageClass")
            .version("v1", defaults::storage_class)
            .short(&["sc"])
            .columns(columns::storage_classes())
            .delete_returns_object()
            .rules(strategies::storage_class())
            .done(),
        cluster(GROUP, "csidrivers", "CSIDriver")
            .version("v1", defaults::csi_driver)
            .columns(columns::csi_drivers())
            .conditional_update()
            .delete_returns_object()
            .rules(strategies::csi_driver())
            .done(),
        cluster(GROUP, "csinodes", "CSINode")
            .version("v1", defaults::none)
            .columns(columns::csi_nodes())
            .conditional_update()
            .delete_returns_object()
            .rules(strategies::csi_node())
            .done(),
        namespaced(GROUP, "csistoragecapacities", "CSIStorageCapacity")
            .version("v1", defaults::none)
            .conditional_update()
            .rules(strategies::csi_storage_capacity())
            .done(),
        cluster(GROUP, "volumeattachments", "VolumeAttachment")
            .version("v1", defaults::none)
            .status()
            .status_alone()
            .columns(columns::volume_attachments())
            .conditional_update()
            .delete_returns_object()
            .rules(strategies::volume_attachment())
            .done(),
        cluster(GROUP, "volumeattributesclasses", "VolumeAttributesClass")
            .version("v1", defaults::none)
            .short(&["vac"])
            .columns(columns::volume_attributes_classes())
            .delete_returns_object()
            .rules(strategies::volume_attributes_class())
            .done(),
    ]
}
