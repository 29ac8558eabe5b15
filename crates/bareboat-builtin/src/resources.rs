//! Resource amounts by name, and the total requests and limits of a pod.
//!
//! `quota` and `admission` decide about limits.

use crate::reach::Reach;
use bareboat_api::quantity::{Format, Quantity};
use bareboat_api::{Map, Str, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Amounts by resource name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<Str, Quantity>);

impl Amounts {
    /// Parses amounts; values that are not quantities are left out.
    pub fn read(map: Option<&Map>) -> Amounts {
        let members = map.into_iter().flat_map(|map| map.iter());
        let read = |value: &Value| match value {
            Value::String(text) => Quantity::parse(text).ok(),
            Value::Int(whole) => Some(Quantity::from_units(*whole, Format::Decimal)),
            _ => None,
        };
        Amounts(
            members
                .filter_map(|(name, value)| Some((Str::new(name), read(value)?)))
                .collect(),
        )
    }

    /// Returns the amount of a resource.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, name: impl Into<Str>, amount: Quantity) {
        self.0.insert(name.into(), amount);
    }

    /// Iterates over names and amounts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Returns whether there are no amounts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the amounts for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, Quantity) -> bool) {
        self.0.retain(|name, amount| keep(name, *amount));
    }

    /// Adds to the amount of a resource. A sum that overflows is not added.
    pub fn add(&mut self, name: &str, amount: Quantity) {
        match self.0.get_mut(name) {
            Some(known) => *known = known.checked_add(amount).unwrap_or(*known),
            None => {
                self.0.insert(Str::new(name), amount);
            }
        }
    }

    /// Adds all other amounts.
    pub fn add_all(&mut self, other: &Amounts) {
        for (name, amount) in other.iter() {
            self.add(name, amount);
        }
    }

    /// Returns the amounts whose resources the other amounts also name.
    fn of_same_names(&self, other: &Amounts) -> Amounts {
        let known = |name: &Str| Some((name.clone(), *self.0.get(name)?));
        Amounts(other.0.keys().filter_map(known).collect())
    }

    /// Subtracts all other amounts.
    pub fn subtract_all(&mut self, other: &Amounts) {
        for (name, amount) in other.iter() {
            self.add(name, amount.negated());
        }
    }

    /// Raises each amount to the other one if that is larger.
    pub fn raise_to(&mut self, other: &Amounts) {
        for (name, amount) in other.iter() {
            if self.get(name).is_none_or(|known| amount > known) {
                self.set(name, amount);
            }
        }
    }

    /// Returns the amounts as JSON.
    pub fn to_value(&self) -> Value {
        let members = self.0.iter();
        let members = members.map(|(name, amount)| (name.clone(), Value::from(amount.to_string())));
        Value::Object(members.collect())
    }
}

/// Formats amounts as `cpu=1,memory=2Gi`.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, amount)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{name}={amount}")?;
        }
        Ok(())
    }
}

/// Requests or limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The requests.
    Requests,
    /// The limits.
    Limits,
}

impl Side {
    fn member(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// Returns the total of a running pod: its specification, its resized containers and its overhead.
// Upstream: component-helpers/resource/helpers.go, PodRequests and PodLimits.
pub(crate) fn taken(pod: &Value, side: Side) -> Amounts {
    let resized = Resized::of(pod);
    let mut sum = of_containers(pod, side, |container| resized.effective(container, side));
    override_by_pod(pod, side, &mut sum, is_pod_level);
    for (name, overhead) in Amounts::read(pod.members(&["spec", "overhead"])).iter() {
        let counts = match side {
            Side::Requests => true,
            Side::Limits => sum.get(name).is_some_and(|amount| !amount.is_zero()),
        };
        if counts {
            sum.add(name, overhead);
        }
    }
    sum
}

/// Returns the total of a pod's specification only.
// Upstream: plugin/pkg/admission/limitranger, podRequests and podLimits.
pub(crate) fn specified(pod: &Value, side: Side) -> Amounts {
    let mut sum = of_containers(pod, side, |container| of_container(container, side));
    override_by_pod(pod, side, &mut sum, |name| matches!(name, "cpu" | "memory"));
    sum
}

/// Returns the amounts of one container.
pub(crate) fn of_container(container: &Value, side: Side) -> Amounts {
    Amounts::read(container.members(&["resources", side.member()]))
}

/// Returns whether a pod has pod-level resources.
pub(crate) fn asks_as_a_whole(pod: &Value) -> bool {
    [Side::Requests, Side::Limits].into_iter().any(|side| {
        let amounts = Amounts::read(pod.members(&["spec", "resources", side.member()]));
        amounts.iter().any(|(name, _)| is_pod_level(name))
    })
}

fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn override_by_pod(pod: &Value, side: Side, sum: &mut Amounts, counts: impl Fn(&str) -> bool) {
    let own = Amounts::read(pod.members(&["spec", "resources", side.member()]));
    for (name, amount) in own.iter().filter(|(name, _)| counts(name)) {
        sum.set(name, amount);
    }
}

/// Containers run at the same time. Init containers run before them, one by one, next to sidecars.
fn of_containers(pod: &Value, side: Side, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut sum = Amounts::default();
    for container in pod.list(&["spec", "containers"]) {
        sum.add_all(&of(container));
    }
    let (mut running, mut peak) = (Amounts::default(), Amounts::default());
    for container in pod.list(&["spec", "initContainers"]) {
        if keeps_running(container) {
            let own = of(container);
            sum.add_all(&own);
            running.add_all(&own);
            peak.raise_to(&running.of_same_names(&own));
        } else {
            let mut own = of_container(container, side);
            own.add_all(&running.of_same_names(&own));
            // Sidecars were counted when they started.
            peak.raise_to(&own);
        }
    }
    sum.raise_to(&peak);
    sum
}

fn keeps_running(container: &Value) -> bool {
    container.text(&["restartPolicy"]) == "Always"
}

/// Resources in the status of a pod's containers, which differ from the spec during a resize.
struct Resized<'a> {
    /// The statuses of containers and of init containers, by name.
    statuses: [HashMap<&'a str, &'a Value>; 2],
    infeasible: bool,
}

impl<'a> Resized<'a> {
    fn of(pod: &'a Value) -> Resized<'a> {
        let statuses = ["containerStatuses", "initContainerStatuses"].map(|list| {
            // Of two statuses with the same name the first counts.
            let statuses = pod.list(&["status", list]).iter().rev();
            statuses
                .map(|status| (status.text(&["name"]), status))
                .collect()
        });
        let infeasible = pod.list(&["status", "conditions"]).iter().any(|condition| {
            condition.text(&["type"]) == "PodResizePending"
                && condition.text(&["reason"]) == "Infeasible"
        });
        Resized {
            statuses,
            infeasible,
        }
    }

    /// Returns the amounts of a container during a resize.
    fn effective(&self, container: &Value, side: Side) -> Amounts {
        let wanted = of_container(container, side);
        let statuses = &self.statuses[usize::from(keeps_running(container))];
        let status = statuses.get(container.text(&["name"]));
        let Some(status) = status.filter(|status| status.has(&["resources"])) else {
            return wanted;
        };
        let mut taken = Amounts::read(status.members(&["resources", side.member()]));
        if side == Side::Requests {
            taken.raise_to(&Amounts::read(status.members(&["allocatedResources"])));
        }
        if !self.infeasible {
            taken.raise_to(&wanted);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn a_pod_uses_its_peak_amounts() {
        let pod = value!({"spec": {
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}},
                {"name": "b", "resources": {"requests": {"cpu": "200m"}}},
            ],
            "initContainers": [
                {"name": "c", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
                {"name": "d", "resources": {"requests": {"cpu": "900m"}}},
            ],
            "overhead": {"cpu": "10m", "memory": "1Mi"},
        }});
        assert_eq!(
            taken(&pod, Side::Requests).to_string(),
            "cpu=960m,memory=1Mi"
        );
        assert_eq!(taken(&pod, Side::Limits).to_string(), "cpu=1010m");
        assert_eq!(specified(&pod, Side::Requests).to_string(), "cpu=950m");
    }

    #[test]
    fn sidecars_count_next_to_all_later_containers() {
        let asks = |name: &str, policy: &str, requests: Value| value!({"name": name, "restartPolicy": policy, "resources": {"requests": requests}});
        let pod = value!({"spec": {
            "containers": [(asks("a", "", value!({"cpu": "1"})))],
            "initContainers": [
                (asks("b", "", value!({"memory": "8Gi"}))),
                (asks("c", "Always", value!({"cpu": "1", "memory": "1Gi"}))),
                (asks("d", "", value!({"cpu": "4"}))),
                (asks("e", "Always", value!({"example.com/x": "2"}))),
                (asks("f", "", value!({"memory": "2Gi", "example.com/x": "1"}))),
            ],
        }});
        assert_eq!(
            taken(&pod, Side::Requests).to_string(),
            "cpu=5,example.com/x=3,memory=8Gi"
        );
    }

    #[test]
    fn pod_level_resources_replace_those_of_the_containers() {
        let pod = value!({"spec": {
            "containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            "resources": {"requests": {"cpu": "3"}},
        }});
        assert!(asks_as_a_whole(&pod));
        assert_eq!(taken(&pod, Side::Requests).to_string(), "cpu=3,memory=1Gi");
    }

    #[test]
    fn a_container_that_shrinks_counts_in_full_until_it_has_shrunk() {
        let pod = value!({
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"containerStatuses": [
                {"name": "a", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "1"}},
            ]},
        });
        assert_eq!(taken(&pod, Side::Requests).to_string(), "cpu=2");
    }
}
