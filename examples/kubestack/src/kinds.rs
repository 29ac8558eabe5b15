//! The four kinds, by kube's derive macro.

#![allow(clippy::duplicated_attributes, reason = "columns of one type")]

use bareboat::client::{DefinitionError, kind_of};
use bareboat::prelude::{Deserialize, JsonSchema, Kind, Serialize};
use kube::CustomResource;

/// The group of all kinds.
pub(crate) const GROUP: &str = "kubestack.example.com";

/// A machine that is to run somewhere.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kubestack.example.com",
    version = "v1",
    kind = "VirtualMachine"
)]
#[kube(shortname = "vm", namespaced, status = "VirtualMachineStatus")]
#[kube(printcolumn(name = "CPU", type_ = "integer", json_path = ".spec.cpu"))]
#[kube(printcolumn(name = "Memory", type_ = "integer", json_path = ".spec.memory"))]
#[kube(printcolumn(name = "Pool", type_ = "string", json_path = ".spec.pool"))]
#[kube(printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(name = "Node", type_ = "string", json_path = ".status.node"))]
#[kube(printcolumn(name = "Address", type_ = "string", json_path = ".status.address"))]
#[kube(selectable = ".status.node")]
pub(crate) struct VirtualMachineSpec {
    /// Virtual CPUs.
    #[schemars(range(min = 1, max = 256))]
    pub(crate) cpu: u32,
    /// Memory in GiB.
    #[schemars(range(min = 1, max = 4096))]
    pub(crate) memory: u32,
    /// The StoragePool of the disk.
    pub(crate) pool: String,
    /// The size of the disk in GiB.
    pub(crate) disk: u32,
    /// The NetPool of the address.
    pub(crate) network: String,
}

/// Where a machine runs, or why it does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VirtualMachineStatus {
    pub(crate) phase: String,
    pub(crate) node: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) reason: Option<String>,
}

/// A computer that runs machines.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "kubestack.example.com", version = "v1", kind = "PhysicalNode")]
#[kube(shortname = "pn")]
#[kube(printcolumn(name = "CPU", type_ = "integer", json_path = ".spec.cpu"))]
#[kube(printcolumn(name = "Memory", type_ = "integer", json_path = ".spec.memory"))]
pub(crate) struct PhysicalNodeSpec {
    pub(crate) cpu: u32,
    pub(crate) memory: u32,
}

/// Disk space that machines share, in GiB.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "kubestack.example.com", version = "v1", kind = "StoragePool")]
#[kube(shortname = "sp")]
#[kube(printcolumn(name = "Capacity", type_ = "integer", json_path = ".spec.capacity"))]
pub(crate) struct StoragePoolSpec {
    pub(crate) capacity: u32,
}

/// Addresses for machines: `PREFIX.FIRST` to `PREFIX.LAST`.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "kubestack.example.com", version = "v1", kind = "NetPool")]
#[kube(shortname = "np")]
#[kube(printcolumn(name = "Prefix", type_ = "string", json_path = ".spec.prefix"))]
pub(crate) struct NetPoolSpec {
    /// The first three numbers, such as `10.1.0`.
    #[schemars(regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$"))]
    pub(crate) prefix: String,
    pub(crate) first: u8,
    pub(crate) last: u8,
}

/// Returns the kinds for the server.
pub(crate) fn all() -> Result<[Kind; 4], DefinitionError> {
    Ok([
        kind_of::<VirtualMachine>()?,
        kind_of::<PhysicalNode>()?,
        kind_of::<StoragePool>()?,
        kind_of::<NetPool>()?,
    ])
}
