//! What upstream's default plug-ins fill in: tolerations and priorities of pods, the taint of new nodes.

use crate::defaults::not_ready_taint;
use crate::reach::{Fill, Reach};
use bareboat_api::admission::{Mutator, Operation, Review, World};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Kind, Object, Status, Value, value};

/// Fills in what a new pod or node has without anybody else being asked.
pub fn complete_on_create(kind: &Kind, object: &mut Object) {
    if !kind.group.is_empty() {
        return;
    }
    match kind.names.plural.as_str() {
        "pods" => {
            tolerate_broken_nodes(object);
            // Without a class a pod is as important as any other.
            priority(object, 0, "PreemptLowerPriority");
        }
        "nodes" => taint_until_ready(object),
        _ => {}
    }
}

/// Fills in what a writer of a pod left out and the pod has anyway.
pub fn complete_on_update(kind: &Kind, new: &mut Object, old: &Object) {
    if !kind.group.is_empty() || kind.names.plural != "pods" {
        return;
    }
    tolerate_broken_nodes(new);
    let spec = new.map_mut().object_mut("spec");
    for member in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.at(&["spec", member]).cloned() {
            spec.fill(member, value);
        }
    }
}

/// How long a pod stays on a node that went silent, in seconds.
const PATIENCE: i64 = 300;

/// Pods stay a while on nodes that are not ready or cannot be reached.
fn tolerate_broken_nodes(pod: &mut Object) {
    let spec = pod.map_mut().object_mut("spec");
    let known = match spec.remove("tolerations") {
        Some(Value::Array(known)) => known,
        _ => Vec::new(),
    };
    let tolerated = |key: &str| {
        known.iter().any(|toleration| {
            let of = toleration.text(&["key"]);
            let effect = toleration.text(&["effect"]);
            (of == key || of.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        })
    };
    let added: Vec<Value> = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    .into_iter()
    .filter(|key| !tolerated(key))
    .map(|key| {
        value!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE})
    })
    .collect();
    let all: Vec<Value> = known.into_iter().chain(added).collect();
    if !all.is_empty() {
        spec.insert("tolerations", Value::Array(all));
    }
}

/// A new node takes no pods until somebody says that it is ready.
fn taint_until_ready(node: &mut Object) {
    let spec = node.map_mut().object_mut("spec");
    let mut taints = match spec.remove("taints") {
        Some(Value::Array(taints)) => taints,
        _ => Vec::new(),
    };
    let taint = not_ready_taint();
    let known = taints.iter().any(|known| {
        known.text(&["key"]) == taint.text(&["key"])
            && known.text(&["effect"]) == taint.text(&["effect"])
    });
    if !known {
        taints.push(taint);
    }
    spec.insert("taints", Value::Array(taints));
}

fn priority(pod: &mut Object, value: i64, preemption: &str) {
    let spec = pod.map_mut().object_mut("spec");
    spec.fill("priority", Value::Int(value));
    spec.fill("preemptionPolicy", preemption);
}

/// What a class says of the priority of its pods; no class at all says something, too.
fn class_of(class: &str, world: &dyn World) -> Option<(i64, String)> {
    const USUAL: &str = "PreemptLowerPriority";
    if class.is_empty() {
        return Some((0, USUAL.to_owned()));
    }
    if let Some(found) = world.get("scheduling.k8s.io/priorityclasses", "", class) {
        let policy = match found.value().text(&["preemptionPolicy"]) {
            "" => USUAL,
            policy => policy,
        };
        let value = found.value().int(&["value"]).unwrap_or(0);
        return Some((value, policy.to_owned()));
    }
    // These are there whether anybody made them or not.
    let value = match class {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => return None,
    };
    Some((value, USUAL.to_owned()))
}

/// The plug-in that completes pods and nodes, and looks up the priority of pods with a class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion;

impl Completion {
    fn complete(review: &mut Review<'_>, world: &dyn World) -> Result<(), Status> {
        if !review.subresource.is_empty() {
            return Ok(());
        }
        let kind = review.kind;
        let Some(object) = review.object.as_deref_mut() else {
            return Ok(());
        };
        match review.operation {
            Operation::Create => {}
            Operation::Update => {
                if let Some(old) = review.old {
                    complete_on_update(kind, object, old);
                }
                return Ok(());
            }
            Operation::Delete | Operation::Connect => return Ok(()),
        }
        if kind.group.is_empty() && kind.names.plural == "pods" {
            let refuse = |object: &Object, reason: String| {
                let resource = kind.group_resource();
                Err(Status::forbidden(resource, object.name(), &reason))
            };
            let class = object.value().text(&["spec", "priorityClassName"]);
            let Some((value, policy)) = class_of(class, world) else {
                let reason = format!("no PriorityClass with name {class} was found");
                return refuse(object, reason);
            };
            // Who names neither a class nor a number has none; nobody may make one up.
            let spec = object.get("spec").unwrap_or(&Value::Null);
            if let Some(given) = spec.int(&["priority"]).filter(|given| *given != value) {
                let reason = format!(
                    "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
                );
                return refuse(object, reason);
            }
            let given = spec.text(&["preemptionPolicy"]);
            if !given.is_empty() && given != policy {
                let reason = format!(
                    "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
                );
                return refuse(object, reason);
            }
            priority(object, value, &policy);
        }
        complete_on_create(kind, object);
        Ok(())
    }
}

impl Mutator for Completion {
    fn name(&self) -> &'static str {
        "Completion"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        world: &'a dyn World,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { Completion::complete(review, world) })
    }
}
