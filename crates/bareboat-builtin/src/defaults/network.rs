//! Defaults of networking, discovery, flow control and role bindings.

use super::spec;
use crate::reach::Fill;
use bareboat_api::{Value, value};

/// Sets the defaults of NetworkPolicy.
pub(crate) fn network_policy(object: &mut Value) {
    let spec = spec(object);
    let egress = spec
        .get("egress")
        .and_then(Value::as_array)
        .is_some_and(|rules| !rules.is_empty());
    let types = if egress {
        value!(["Ingress", "Egress"])
    } else {
        value!(["Ingress"])
    };
    spec.fill("policyTypes", types);
    for direction in ["ingress", "egress"] {
        for rule in spec.each(direction) {
            for port in rule.each("ports") {
                port.fill("protocol", "TCP");
            }
        }
    }
}

/// Sets the defaults of IngressClass.
pub(crate) fn ingress_class(object: &mut Value) {
    if let Some(parameters) = spec(object).sub("parameters") {
        parameters.fill("scope", "Cluster");
    }
}

/// Sets the defaults of EndpointSlice.
pub(crate) fn endpoint_slice(object: &mut Value) {
    for port in object.make_object().each("ports") {
        port.fill("name", "");
        port.fill("protocol", "TCP");
    }
}

/// Sets the defaults of PriorityClass.
pub(crate) fn priority_class(object: &mut Value) {
    object
        .make_object()
        .fill("preemptionPolicy", "PreemptLowerPriority");
}

/// Sets the defaults of FlowSchema.
pub(crate) fn flow_schema(object: &mut Value) {
    let spec = spec(object);
    if spec
        .get("matchingPrecedence")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        == 0
    {
        spec.insert("matchingPrecedence", Value::Int(1000));
    }
}

/// Sets the defaults of PriorityLevelConfiguration.
pub(crate) fn priority_level(object: &mut Value) {
    let spec = spec(object);
    if let Some(exempt) = spec.sub("exempt") {
        exempt.fill("nominalConcurrencyShares", 0);
        exempt.fill("lendablePercent", 0);
    }
    if let Some(limited) = spec.sub("limited") {
        limited.fill("nominalConcurrencyShares", 30);
        limited.fill("lendablePercent", 0);
        if let Some(queuing) = limited
            .sub("limitResponse")
            .and_then(|response| response.sub("queuing"))
        {
            for (member, default) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
                if queuing.get(member).and_then(Value::as_i64).unwrap_or(0) == 0 {
                    queuing.insert(member, Value::Int(default));
                }
            }
        }
    }
}

/// Sets the defaults of RoleBinding and ClusterRoleBinding.
pub(crate) fn role_binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let map = object.make_object();
    let role = map.object_mut("roleRef");
    if role.get_str("apiGroup").unwrap_or("").is_empty() {
        role.insert("apiGroup", GROUP.into());
    }
    for subject in map.each("subjects") {
        if matches!(subject.get_str("kind"), Some("User" | "Group")) {
            subject.fill("apiGroup", GROUP);
        }
    }
}
