//! Defaults of storage classes and CSI drivers.

use super::spec;
use crate::reach::Fill;
use bareboat_api::{Value, value};

/// Sets the defaults of StorageClass.
pub(crate) fn storage_class(object: &mut Value) {
    let map = object.make_object();
    map.fill("reclaimPolicy", "Delete");
    map.fill("volumeBindingMode", "Immediate");
}

/// Sets the defaults of CSIDriver.
pub(crate) fn csi_driver(object: &mut Value) {
    let spec = spec(object);
    spec.fill("attachRequired", true);
    spec.fill("podInfoOnMount", false);
    spec.fill("storageCapacity", false);
    spec.fill("fsGroupPolicy", "ReadWriteOnceWithFSType");
    spec.fill("volumeLifecycleModes", value!(["Persistent"]));
    spec.fill("requiresRepublish", false);
    spec.fill("seLinuxMount", false);
}
