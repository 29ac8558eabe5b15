//! The group `networking.k8s.io`.

use super::build::{cluster, namespaced};
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::NameRule;

const GROUP: &str = "networking.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "ingresses", "Ingress")
            .version("v1", defaults::none)
            .short(&["ing"])
            .status()
            .columns(columns::ingresses())
            .generation()
            .rules(strategies::ingress())
            .done(),
        cluster(GROUP, "ingressclasses", "IngressClass")
            .version("v1", defaults::ingress_class)
            .columns(columns::ingress_classes())
            .generation()
            .rules(strategies::ingress_class())
            .done(),
        namespaced(GROUP, "networkpolicies", "NetworkPolicy")
            .version("v1", defaults::network_policy)
            .short(&["netpol"])
            .columns(columns::network_policies())
            .generation()
            .rules(strategies::network_policy())
            .done(),
        cluster(GROUP, "ipaddresses", "IPAddress")
            .version("v1", defaults::none)
            .short(&["ip"])
            .columns(columns::ip_addresses())
            .names_are(NameRule::PathSegment)
            .rules(strategies::ip_address())
            .done(),
        cluster(GROUP, "servicecidrs", "ServiceCIDR")
            .version("v1", defaults::none)
            .status()
            .status_alone()
            .columns(columns::service_cidrs())
            .rules(strategies::service_cidr())
            .done(),
    ]
}
