//! How important pods are: the number of the class they name, or of the one that is everybody's.
// Upstream: plugin/pkg/admission/priority.

use super::refuse;
use crate::reach::{Fill, Reach};
use bareboat_api::admission::{Mutator, Operation, Review, Validator, World};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};

/// Where priority classes are stored.
const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
/// What a class says of preemption unless it says something else.
const USUAL: &str = "PreemptLowerPriority";

/// Looks up the priority of new pods, and sees to it that one class at most is everybody's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority;

/// What a pod gets from its class.
struct Rank {
    class: String,
    value: i64,
    preemption: String,
}

impl Rank {
    /// That of a pod without a class where no class is everybody's.
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

/// The class of pods that name none; should there be several, the least important.
fn everybodys(world: &dyn World) -> Option<Object> {
    let classes = world.list(CLASSES, "").into_iter();
    classes
        .filter(|class| class.value().flag(&["globalDefault"]))
        .min_by_key(|class| class.value().int(&["value"]).unwrap_or(0))
}

fn named(class: &str, world: &dyn World) -> Option<Rank> {
    if let Some(found) = world.get(CLASSES, "", class) {
        return Some(Rank::of(&found));
    }
    // These are there whether anybody made them or not.
    match class {
        "system-cluster-critical" => Some(Rank::plain(class, 2_000_000_000)),
        "system-node-critical" => Some(Rank::plain(class, 2_000_001_000)),
        _ => None,
    }
}

/// Gives a pod the priority it has where there are no classes.
pub(super) fn without_classes(pod: &mut Object) {
    Rank::none().give(pod);
}

fn rank(review: &mut Review<'_>, world: &dyn World) -> Result<(), Status> {
    let Some(pod) = review.object.as_deref_mut() else {
        return Ok(());
    };
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let rank = match spec.text(&["priorityClassName"]) {
        "" => everybodys(world).map_or_else(Rank::none, |class| Rank::of(&class)),
        class => match named(class, world) {
            Some(rank) => rank,
            None => {
                let why = format!("no PriorityClass with name {class} was found");
                return Err(refuse(review.kind, pod, why));
            }
        },
    };
    // Nobody may make a number up.
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
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match super::subject(review) {
            Some(("", "pods", Operation::Create)) => rank(review, world),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(result))
    }
}

/// Refuses a second class that would be everybody's.
fn only_one(review: &Review<'_>, world: &dyn World) -> Result<(), Status> {
    let Some(class) = review.object.as_deref() else {
        return Ok(());
    };
    if !class.value().flag(&["globalDefault"]) {
        return Ok(());
    }
    match everybodys(world) {
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
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match super::subject(review) {
            Some((
                "scheduling.k8s.io",
                "priorityclasses",
                Operation::Create | Operation::Update,
            )) => only_one(review, world),
            _ => Ok(()),
        };
        Box::pin(std::future::ready(result))
    }
}
