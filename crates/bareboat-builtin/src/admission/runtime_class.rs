//! Applies the RuntimeClass of a pod: overhead and scheduling.
// Upstream: plugin/pkg/admission/runtimeclass.

use super::refuse;
use super::tolerations::merged;
use crate::reach::Reach;
use crate::resources::Amounts;
use bareboat_api::admission::{Lookup, Mutator, Operation, Review, Validator, decided};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status, Value};

/// The storage resource of RuntimeClasses.
const CLASSES: &str = "node.k8s.io/runtimeclasses";
const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const NO_OVERHEAD: &str =
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";

/// Sets overhead and scheduling of new pods from their RuntimeClass, and rejects pods that contradict it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeClass;

/// Returns the class of a new pod, if it names one.
fn class_of(pod: &Object, lookup: &dyn Lookup) -> Result<Option<Object>, String> {
    let Some(name) = pod
        .at(&["spec", "runtimeClassName"])
        .and_then(Value::as_str)
    else {
        return Ok(None);
    };
    match lookup.get(CLASSES, "", name) {
        Some(class) => Ok(Some(class)),
        None => Err(format!("pod rejected: RuntimeClass {name:?} not found")),
    }
}

/// Returns the overhead of a class, if it has one.
fn overhead(class: &Object) -> Option<Value> {
    class.at(&["overhead"]).filter(|value| !value.is_null())?;
    let fixed = class.at(&["overhead", "podFixed"]);
    Some(fixed.cloned().unwrap_or_else(Value::object))
}

fn amounts(value: Option<&Value>) -> Amounts {
    Amounts::read(value.and_then(Value::as_object))
}

fn complete(pod: &mut Object, lookup: &dyn Lookup) -> Result<(), String> {
    let Some(class) = class_of(pod, lookup)? else {
        return Ok(());
    };
    if let Some(overhead) = overhead(&class) {
        let given = amounts(pod.at(&["spec", "overhead"]));
        if !given.is_empty() && given != amounts(Some(&overhead)) {
            return Err(OTHER_OVERHEAD.to_owned());
        }
        let spec = pod.map_mut().object_mut("spec");
        spec.insert("overhead", overhead);
    }
    let Some(selected) = class.at(&["scheduling"]).filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let spec = pod.map_mut().object_mut("spec");
    let wanted = selected.members(&["nodeSelector"]);
    for (key, value) in wanted.into_iter().flat_map(|map| map.iter()) {
        let selector = spec.object_mut("nodeSelector");
        if let Some(own) = selector.get(key).filter(|own| *own != value) {
            let (theirs, own) = (value.text(&[]), own.text(&[]));
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {theirs}; pod.spec.nodeSelector[{key}] = {own}"
            ));
        }
        selector.insert(key, value.clone());
    }
    let own = match spec.remove("tolerations") {
        Some(Value::Array(own)) => own,
        _ => Vec::new(),
    };
    let merged = merged(own, selected.list(&["tolerations"]));
    if !merged.is_empty() {
        spec.insert("tolerations", Value::Array(merged));
    }
    Ok(())
}

/// Checks that the overhead of a pod equals that of its class.
fn check(pod: &Object, lookup: &dyn Lookup) -> Result<(), String> {
    let given = pod
        .at(&["spec", "overhead"])
        .filter(|value| !value.is_null());
    match class_of(pod, lookup)?.as_ref().and_then(overhead) {
        Some(overhead) if amounts(given) != amounts(Some(&overhead)) => {
            Err(OTHER_OVERHEAD.to_owned())
        }
        None if given.is_some() => Err(NO_OVERHEAD.to_owned()),
        _ => Ok(()),
    }
}

impl Mutator for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn admit<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match (super::subject(review), review.object.as_deref_mut()) {
            (Some(("", "pods", Operation::Create)), Some(pod)) => {
                complete(pod, lookup).map_err(|why| refuse(review.kind, pod, why))
            }
            _ => Ok(()),
        };
        decided(result)
    }
}

impl Validator for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        lookup: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match (super::subject(review), review.object.as_deref()) {
            (Some(("", "pods", Operation::Create)), Some(pod)) => {
                check(pod, lookup).map_err(|why| refuse(review.kind, pod, why))
            }
            _ => Ok(()),
        };
        decided(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;

    #[test]
    fn covered_tolerations_are_dropped() {
        let all = value!({"operator": "Exists"});
        let key = |effect: &str| value!({"key": "k", "operator": "Exists", "effect": effect});
        let equal = |value: &str| value!({"key": "k", "operator": "Equal", "value": value});
        let short = value!({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        let check = |own: &[&Value], more: &[&Value], expected: &[&Value]| {
            let owned = |list: &[&Value]| list.iter().map(|&value| value.clone()).collect();
            let (own, more): (Vec<Value>, Vec<Value>) = (owned(own), owned(more));
            let expected: Vec<Value> = owned(expected);
            assert_eq!(merged(own, &more), expected);
        };
        check(&[], &[], &[]);
        check(&[&equal("a")], &[&equal("b")], &[&equal("a"), &equal("b")]);
        check(&[&equal("a")], &[&equal("a")], &[&equal("a")]);
        check(&[&equal("a"), &key("NoSchedule")], &[&all], &[&all]);
        check(&[&all], &[&key("NoSchedule")], &[&all]);
        check(
            &[&key("NoSchedule")],
            &[&key("NoExecute")],
            &[&key("NoSchedule"), &key("NoExecute")],
        );
        check(&[&key("NoExecute")], &[&short], &[&key("NoExecute")]);
        check(&[&short], &[&key("NoExecute")], &[&key("NoExecute")]);
    }
}
