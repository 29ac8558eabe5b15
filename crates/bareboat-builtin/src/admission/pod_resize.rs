//! Rejects pod resizes on nodes that do not run Linux, and resizes that exceed the node's resources.
// Upstream: plugin/pkg/admission/podresize.

use super::refuse;
use crate::reach::Reach;
use crate::resources::{Amounts, Side, taken};
use bareboat_api::admission::{Lookup, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::quantity::Quantity;
use bareboat_api::{Object, Status};

/// Rejects resizes that do not fit the pod's node.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodResize;

/// Reason and message of a rejected resize.
type Refusal = (&'static str, String);

fn check(new: &Object, old: &Object, lookup: &dyn Lookup) -> Result<(), Refusal> {
    let name = new.value().text(&["spec", "nodeName"]);
    if name.is_empty() || new.generation() == old.generation() {
        return Ok(());
    }
    let Some(node) = lookup.get("core/nodes", "", name) else {
        return Err(("", format!("node {name:?} not found")));
    };
    if let Some(system) = node.label("kubernetes.io/os").filter(|os| *os != "linux") {
        let why =
            format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return Err(("UnsupportedPlatform", why));
    }
    let requests = taken(new.value(), Side::Requests);
    let given = Amounts::read(node.value().members(&["status", "allocatable"]));
    let above = |resource: &str, number: fn(Quantity) -> i64| {
        let (asked, has) = (requests.get(resource)?, given.get(resource));
        let has = has.unwrap_or(Quantity::ZERO);
        let message = format!(
            "{resource}, requested: {}, allocatable: {}",
            number(asked),
            number(has)
        );
        (asked > has).then_some(message)
    };
    let problems: Vec<String> = [
        above("cpu", Quantity::millis),
        above("memory", Quantity::units),
    ]
    .into_iter()
    .flatten()
    .collect();
    if problems.is_empty() {
        return Ok(());
    }
    let why = format!(
        "node didn't have enough allocatable resources: {}",
        problems.join("; ")
    );
    Err(("NodeCapacity", why))
}

impl Validator for PodResize {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let pods = review.kind.group.is_empty() && review.kind.names.plural == "pods";
        let resizes = pods && review.subresource == "resize";
        let result = match (review.operation, review.object.as_deref(), review.old) {
            (Operation::Update, Some(new), Some(old)) if resizes => check(new, old, lookup)
                .map_err(|(reason, why)| {
                    let refusal = refuse(review.kind, new, why);
                    match reason {
                        "" => refusal,
                        reason => refusal.with_cause(reason, "", ""),
                    }
                }),
            _ => Ok(()),
        };
        decided(result)
    }
}
