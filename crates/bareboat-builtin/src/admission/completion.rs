//! Defaults set by upstream's default plug-ins that need no other object: tolerations of pods, the taint of new nodes.

use super::priority;
use crate::defaults::not_ready_taint;
use crate::reach::{Fill, Reach};
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Kind, Object, Status, Value, value};

/// Sets admission defaults of a new pod or node.
pub fn complete_on_create(kind: &Kind, object: &mut Object) {
    if !kind.group.is_empty() {
        return;
    }
    match kind.names.plural.as_str() {
        "pods" => {
            tolerate_broken_nodes(object);
            priority::without_classes(object);
        }
        "nodes" => taint_until_ready(object),
        _ => {}
    }
}

/// Sets default tolerations of an updated pod, and keeps priority fields that the update left out.
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

/// How long a pod stays on a node that is not ready or unreachable, in seconds.
const PATIENCE: i64 = 300;

/// Adds tolerations for nodes that are not ready or unreachable.
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

/// Taints a new node as not ready.
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

/// The plug-in that sets these defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion;

impl Mutator for Completion {
    fn name(&self) -> &'static str {
        "Completion"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let kind = review.kind;
        match (review.operation, review.object.as_deref_mut(), review.old) {
            _ if !review.subresource.is_empty() => {}
            (Operation::Create, Some(object), _) => complete_on_create(kind, object),
            (Operation::Update, Some(object), Some(old)) => complete_on_update(kind, object, old),
            _ => {}
        }
        decided(Ok(()))
    }
}
