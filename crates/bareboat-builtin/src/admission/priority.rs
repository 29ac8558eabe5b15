//! Sets the priority of new pods from the PriorityClass they name, or from the global default class.
// Upstream: plugin/pkg/admission/priority.

use super::refuse;
use crate::reach::{Fill, Reach};
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};

/// The storage resource of PriorityClasses.
const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
/// The default preemption policy.
const USUAL: &str = "PreemptLowerPriority";

/// Sets the priority of new pods, and rejects a second global default class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority;

/// Priority fields that a pod gets from its class.
struct Rank {
    class: String,
    value: i64,
    preemption: String,
}

impl Rank {
    /// Returns the priority of a pod without a class if there is no global default.
    fn none() -> Rank {
        Rank::plain("", 0)
    }

    fn plain(class: &str, value: i64) -> Rank {
        Rank {
            class: class.to_owned(),
            value,
            preemption: USUAL.to_owned(),
        }
    }

    fn of(class: &Object) -> Rank {
        let value = class.value();
        let preemption = match value.text(&["preemptionPolicy"]) {
            "" => USUAL,
            policy => policy,
        };
        Rank {
            class: class.name().to_owned(),
            value: value.int(&["value"]).unwrap_or(0),
            preemption: preemption.to_owned(),
        }
    }

    fn give(self, pod: &mut Object) {
        let spec = pod.map_mut().object_mut("spec");
        if !self.class.is_empty() {
            spec.insert("priorityClassName", Value::from(self.class));
        }
        spec.fill("priority", Value::Int(self.value));
        spec.fill("preemptionPolicy", self.preemption);
    }
}

/// Returns the global default class; if there are several, the one with the lowest value.
fn everybodys(lookup: &dyn Lookup) -> Option<Object> {
    let classes = lookup.list(CLASSES, "").into_iter();
    classes
        .filter(|class| class.value().flag(&["globalDefault"]))
        .min_by_key(|class| class.value().int(&["value"]).unwrap_or(0))
}

fn named(class: &str, lookup: &dyn Lookup) -> Option<Rank> {
    if let Some(found) = lookup.get(CLASSES, "", class) {
        return Some(Rank::of(&found));
    }
    // The built-in system classes exist even if they are not stored.
    match class {
        "system-cluster-critical" => Some(Rank::plain(class, 2_000_000_000)),
        "system-node-critical" => Some(Rank::plain(class, 2_000_001_000)),
        _ => None,
    }
}

/// Sets the priority of a pod where PriorityClasses do not exist.
pub(super) fn without_classes(pod: &mut Object) {
    Rank::none().give(pod);
}

fn rank(review: &mut Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let Some(pod) = review.object.as_deref_mut() else {
        return Ok(());
    };
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let rank = match spec.text(&["priorityClassName"]) {
        "" => everybodys(lookup).map_or_else(Rank::none, |class| Rank::of(&class)),
        class => match named(class, lookup) {
            Some(rank) => rank,
            None => {
                let why = format!("no PriorityClass with name {class} was found");
                return Err(refuse(review.kind, pod, why));
            }
        },
    };
    // A client must not choose its own priority.
    if let Some(given) = spec.int(&["priority"]).filter(|given| *given != rank.value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            rank.value
        );
        return Err(refuse(review.kind, pod, why));
    }
    let given = spec.text(&["preemptionPolicy"]);
    if !given.is_empty() && given != rank.preemption {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            rank.preemption
        );
        return Err(refuse(review.kind, pod, why));
    }
    rank.give(pod);
    Ok(())
}

impl Mutator for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match super::subject(review) {
            Some(("", "pods", Operation::Create)) => rank(review, lookup),
            _ => Ok(()),
        };
        decided(result)
    }
}

/// Rejects a second global default class.
fn only_one(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let Some(class) = review.object.as_deref() else {
        return Ok(());
    };
    if !class.value().flag(&["globalDefault"]) {
        return Ok(());
    }
    match everybodys(lookup) {
        Some(known) if known.name() != class.name() => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                known.name()
            );
            Err(refuse(review.kind, class, why))
        }
        _ => Ok(()),
    }
}

impl Validator for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match super::subject(review) {
            Some((
                "scheduling.k8s.io",
                "priorityclasses",
                Operation::Create | Operation::Update,
            )) => only_one(review, lookup),
            _ => Ok(()),
        };
        decided(result)
    }
}
