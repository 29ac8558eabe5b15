//! Measures the quota usage of objects of a kind, and decides which writes can change it.
// Upstream: pkg/quota/v1/evaluator/core and apiserver/pkg/quota/v1/generic.

use super::scope::Term;
use super::{claims, pods};
use crate::reach::Reach;
use crate::resources::Amounts;
use bareboat_api::admission::Operation;
use bareboat_api::quantity::{Format, Quantity};
use bareboat_api::{Str, Value};

/// How objects of one kind are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    what: What,
    /// Resources of which each object uses one.
    counts: Vec<Str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Pods,
    Services,
    VolumeClaims,
    DeviceClaims,
    /// Only the number of objects counts.
    Others,
}

/// Returns the quantity one.
pub(super) fn one() -> Quantity {
    count(1)
}

/// Returns a number as a quantity.
pub(super) fn count(number: usize) -> Quantity {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    Quantity::from_units(number, Format::Decimal)
}

impl Meter {
    /// Returns the meter of a kind, or `None` if the kind is never counted.
    pub fn of(group: &str, plural: &str) -> Option<Meter> {
        let (what, alias) = match (group, plural) {
            ("" | "events.k8s.io", "events") | ("", "bindings" | "componentstatuses") => {
                return None;
            }
            ("authentication.k8s.io" | "authorization.k8s.io", _) => return None,
            ("", "pods") => (What::Pods, None),
            ("", "services") => (What::Services, Some("services")),
            ("", "persistentvolumeclaims") => (What::VolumeClaims, Some("persistentvolumeclaims")),
            ("resource.k8s.io", "resourceclaims") => (What::DeviceClaims, None),
            ("", "configmaps" | "resourcequotas" | "replicationcontrollers" | "secrets") => {
                (What::Others, Some(plural))
            }
            _ => (What::Others, None),
        };
        let mut counts = vec![match group {
            "" => Str::from(format!("count/{plural}")),
            _ => Str::from(format!("count/{plural}.{group}")),
        }];
        counts.extend(alias.map(Str::new));
        Some(Meter { what, counts })
    }

    /// Returns whether objects of the kind can use a resource.
    pub fn covers(&self, resource: &str) -> bool {
        self.counts.iter().any(|name| name == resource)
            || match self.what {
                What::Pods => pods::covers(resource),
                What::Services => {
                    matches!(resource, "services.nodeports" | "services.loadbalancers")
                }
                What::VolumeClaims => claims::covers_volumes(resource),
                What::DeviceClaims => claims::covers_devices(resource),
                What::Others => false,
            }
    }

    /// Returns whether all objects use the same amount, so that counting them is enough.
    pub fn only_counts(&self) -> bool {
        self.what == What::Others
    }

    /// Returns the usage of an object.
    pub fn usage(&self, object: &Value) -> Amounts {
        let mut usage = Amounts::default();
        for name in &self.counts {
            usage.set(name.clone(), one());
        }
        match self.what {
            What::Pods => pods::measure(object, &mut usage),
            What::Services => measure_service(object, &mut usage),
            What::VolumeClaims => claims::measure_volumes(object, &mut usage),
            What::DeviceClaims => claims::measure_devices(object, &mut usage),
            What::Others => {}
        }
        usage
    }

    /// Returns whether a scope term matches an object; false if it does not apply to the kind.
    pub(super) fn is_within(&self, term: &Term, object: &Value) -> bool {
        match self.what {
            What::Pods => pods::is_within(term, object),
            What::VolumeClaims => claims::is_within(term, object),
            _ => false,
        }
    }

    /// Returns the resources that an object must specify and does not.
    pub(super) fn missing<'a>(
        &self,
        required: impl Iterator<Item = &'a str>,
        object: &Value,
    ) -> Option<String> {
        match self.what {
            What::Pods => pods::missing(required, object),
            _ => None,
        }
    }

    /// Returns whether a write can change usage.
    pub fn handles(
        &self,
        operation: Operation,
        subresource: &str,
        new: &Value,
        old: Option<&Value>,
    ) -> bool {
        match (self.what, subresource, operation) {
            (_, "", Operation::Create) => true,
            (What::Pods, "", Operation::Update) => {
                old.is_some_and(|old| pods::has_deadline(old) != pods::has_deadline(new))
            }
            (What::Pods, "resize", Operation::Update) => true,
            (What::Services | What::VolumeClaims | What::DeviceClaims, "", Operation::Update) => {
                true
            }
            _ => false,
        }
    }
}

fn measure_service(service: &Value, usage: &mut Amounts) {
    let ports = service.list(&["spec", "ports"]);
    let (node_ports, balancers) = match service.text(&["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        // Ports are allocated later, so the check is whether the service needs them.
        "LoadBalancer" => {
            let wanted = service.at(&["spec", "allocateLoadBalancerNodePorts"]);
            let own = ports
                .iter()
                .filter(|port| port.int(&["nodePort"]).unwrap_or(0) != 0);
            match wanted.and_then(Value::as_bool) {
                Some(false) => (own.count(), 1),
                _ => (ports.len(), 1),
            }
        }
        _ => (0, 0),
    };
    usage.set("services.nodeports", count(node_ports));
    usage.set("services.loadbalancers", count(balancers));
}
