//! Strategies of built-in kinds: prepare and validate objects.
//!
//! One file per family of kinds. Most kinds need a few functions only, combined by `Rules`. Error texts are upstream's,
//! because tests of operators match on them.

mod affinity;
mod amounts;
mod apps;
mod autoscaling;
mod batch;
mod check;
mod complete;
mod config;
mod container;
mod devices;
mod event;
mod expressions;
mod extension;
mod flow;
mod ingress;
mod namespace;
mod network;
mod node;
mod pod;
mod pod_spec;
mod policies;
mod quota;
mod rbac;
mod rules;
mod service;
mod storage;
mod volume_source;
mod volumes;
mod warnings;

pub(crate) use apps::{
    controller_revision, daemon_set, deployment, replica_set, replication_controller, stateful_set,
};
pub(crate) use autoscaling::{
    autoscaler, convert as convert_autoscaler, disruption_budget, normal as normal_autoscaler,
};
pub(crate) use batch::{cron_job, job};
pub(crate) use complete::Complete;
pub(crate) use config::{config_map, secret, service_account};
pub(crate) use devices::{device_class, resource_claim, resource_claim_template, resource_slice};
pub(crate) use event::{
    convert as convert_event, core_event, name_in as event_member_in, newer_event,
};
pub(crate) use extension::{api_service, webhooks};
pub(crate) use flow::{flow_schema, priority_level, signing_request};
pub(crate) use ingress::{ingress, ingress_class};
pub(crate) use namespace::NamespaceStrategy;
pub(crate) use network::{
    endpoint_slice, endpoints, ip_address, lease, network_policy, service_cidr,
};
pub(crate) use node::node;
pub(crate) use pod::{pod, pod_template, quality};
pub(crate) use policies::{
    mutating_policy, policy_binding, validating_policy, validating_policy_binding,
};
pub(crate) use quota::{limit_range, resource_quota};
pub(crate) use rbac::{cluster_role, cluster_role_binding, role, role_binding};
pub(crate) use rules::Rules;
pub(crate) use service::service;
pub(crate) use storage::{
    csi_driver, csi_node, csi_storage_capacity, priority_class, runtime_class, storage_class,
    volume_attachment, volume_attributes_class,
};
pub(crate) use volumes::{persistent_volume, persistent_volume_claim};
