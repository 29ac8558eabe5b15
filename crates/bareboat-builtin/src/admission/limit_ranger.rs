//! Applies LimitRanges: defaults for containers, minimum and maximum for containers, pods and claims.
// Upstream: plugin/pkg/admission/limitranger.

mod bounds;

use crate::reach::Reach;
use crate::resources::{Amounts, Side, of_container, specified};
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};
use bounds::Asked;
use std::collections::HashSet;

/// The storage resource of LimitRanges.
const RANGES: &str = "core/limitranges";
/// The annotation that lists the values set by this plug-in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Checks containers, pods and claims against the LimitRanges of their namespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct LimitRanger;

/// The kind of object that is limited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Pod,
    Claim,
}

/// Returns the limited kind that a write is about, if any.
fn subject(review: &Review<'_>) -> Option<Subject> {
    if !review.kind.group.is_empty() || review.object.is_none() {
        return None;
    }
    let going = |old: &Object| old.deletion_timestamp().is_some();
    if review.old.is_some_and(going) {
        return None;
    }
    match (
        review.kind.names.plural.as_str(),
        review.subresource,
        review.operation,
    ) {
        ("pods", "", Operation::Create) | ("pods", "resize", Operation::Update) => {
            Some(Subject::Pod)
        }
        ("persistentvolumeclaims", "", Operation::Create | Operation::Update) => {
            Some(Subject::Claim)
        }
        _ => None,
    }
}

impl Mutator for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if subject(review) == Some(Subject::Pod) {
            for range in lookup.list(RANGES, review.namespace) {
                if let Some(pod) = review.object.as_deref_mut() {
                    fill(pod, range.value());
                }
            }
        }
        decided(Ok(()))
    }
}

impl Validator for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        decided(check(review, lookup))
    }
}

fn check(review: &Review<'_>, lookup: &dyn Lookup) -> Result<(), Status> {
    let (Some(subject), Some(object)) = (subject(review), review.object.as_deref()) else {
        return Ok(());
    };
    for range in lookup.list(RANGES, review.namespace) {
        let problems = match subject {
            Subject::Pod => pod_problems(range.value(), object.value()),
            Subject::Claim => claim_problems(range.value(), object.value()),
        };
        let why = match problems.as_slice() {
            [] => continue,
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let what = review.kind.group_resource();
        return Err(Status::forbidden(what, object.name(), why));
    }
    Ok(())
}

/// Returns the limits of a LimitRange with the given type.
fn limits<'a>(range: &'a Value, of: &'a str) -> impl Iterator<Item = &'a Value> {
    let limits = range.list(&["spec", "limits"]).iter();
    limits.filter(move |limit| limit.text(&["type"]) == of)
}

fn pod_problems(range: &Value, pod: &Value) -> Vec<String> {
    let mut problems = Problems::default();
    for limit in range.list(&["spec", "limits"]) {
        let asked: Vec<Asked> = match limit.text(&["type"]) {
            "Container" => ["containers", "initContainers"]
                .iter()
                .flat_map(|list| pod.list(&["spec", list]))
                .map(|container| Asked {
                    by: "Container",
                    requests: of_container(container, Side::Requests),
                    limits: of_container(container, Side::Limits),
                })
                .collect(),
            "Pod" => vec![Asked {
                by: "Pod",
                requests: specified(pod, Side::Requests),
                limits: specified(pod, Side::Limits),
            }],
            _ => continue,
        };
        for asked in asked {
            let all = asked
                .below(limit)
                .chain(asked.above(limit))
                .chain(asked.out_of_proportion(limit));
            for problem in all {
                problems.note(problem);
            }
        }
    }
    problems.texts
}

fn claim_problems(range: &Value, claim: &Value) -> Vec<String> {
    let mut problems = Problems::default();
    for limit in limits(range, "PersistentVolumeClaim") {
        let asked = Asked {
            by: "PersistentVolumeClaim",
            requests: Amounts::read(claim.members(&["spec", "resources", "requests"])),
            // A claim has requests only.
            limits: Amounts::default(),
        };
        for problem in asked.below(limit).chain(asked.requests_above(limit)) {
            problems.note(problem);
        }
    }
    problems.texts
}

/// Error texts in order of discovery, without duplicates.
#[derive(Default)]
struct Problems {
    texts: Vec<String>,
    seen: HashSet<String>,
}

impl Problems {
    fn note(&mut self, problem: String) {
        if self.seen.insert(problem.clone()) {
            self.texts.push(problem);
        }
    }
}

/// Sets missing requests and limits of containers and lists them in an annotation.
fn fill(pod: &mut Object, range: &Value) {
    let (mut requests, mut most) = (Amounts::default(), Amounts::default());
    for limit in limits(range, "Container") {
        for (name, amount) in Amounts::read(limit.members(&["defaultRequest"])).iter() {
            requests.set(name, amount);
        }
        for (name, amount) in Amounts::read(limit.members(&["default"])).iter() {
            most.set(name, amount);
        }
    }
    if requests.is_empty() && most.is_empty() {
        return;
    }
    let mut changes = Vec::new();
    let spec = pod.map_mut().object_mut("spec");
    for (list, called) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container.text(&["name"]).to_owned();
            for (member, given, what) in [
                ("requests", &requests, "request"),
                ("limits", &most, "limit"),
            ] {
                let set = fill_side(container, member, given);
                if !set.is_empty() {
                    changes.push(format!("{} {what} for {called} {name}", set.join(", ")));
                }
            }
        }
    }
    if !changes.is_empty() {
        let text = format!("LimitRanger plugin set: {}", changes.join("; "));
        let annotations = pod.metadata_mut().object_mut("annotations");
        annotations.insert(ANNOTATION, Value::from(text));
    }
}

/// Sets missing requests or limits of a container and returns their names.
fn fill_side(container: &mut Value, member: &str, given: &Amounts) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in given.iter() {
        if !container.has(&["resources", member, name]) {
            let resources = container.make_object().object_mut("resources");
            let side = resources.object_mut(member);
            side.insert(name, Value::from(amount.to_string()));
            set.push(name.to_owned());
        }
    }
    set
}

#[cfg(test)]
mod tests;
