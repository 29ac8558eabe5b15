//! Settings of the addresses and ports that services get.

use anyhow::{Context as _, Result};
use bareboat::builtin::services::ServiceRanges;

/// Addresses and ports of services.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Services")]
pub(crate) struct ServiceSettings {
    /// Give services addresses of this network, or of one of IPv4 and one of IPv6
    #[arg(
        long,
        value_name = "CIDR[,CIDR]",
        env = "BAREBOAT_SERVICE_CLUSTER_IP_RANGE",
        default_value = "10.0.0.0/24"
    )]
    pub(crate) service_cluster_ip_range: String,

    /// Give services node ports of this range
    #[arg(
        long,
        value_name = "FROM-TO",
        env = "BAREBOAT_SERVICE_NODE_PORT_RANGE",
        default_value = "30000-32767"
    )]
    pub(crate) service_node_port_range: String,
}

impl ServiceSettings {
    /// Returns the ranges, if they are valid.
    pub(crate) fn ranges(&self) -> Result<ServiceRanges> {
        ServiceRanges::parse(
            &self.service_cluster_ip_range,
            &self.service_node_port_range,
        )
        .context("the ranges of services cannot be used")
    }
}
