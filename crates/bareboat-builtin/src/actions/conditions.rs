//! Reads and sets conditions of pods and PodDisruptionBudgets.

use crate::reach::Reach;
use bareboat_api::{Map, Object, Value};

/// Returns the condition with the given type.
pub(super) fn find<'a>(object: &'a Object, ty: &str) -> Option<&'a Value> {
    let conditions = object.value().list(&["status", "conditions"]);
    conditions
        .iter()
        .find(|condition| condition.text(&["type"]) == ty)
}

/// Sets the condition of the given type; `lastTransitionTime` changes only if the status changes.
pub(super) fn set(object: &mut Object, mut wanted: Map, now: &str) {
    let status = object.map_mut().object_mut("status");
    let mut conditions = match status.remove("conditions") {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    };
    let ty = wanted.get_str("type").unwrap_or("").to_owned();
    let place = conditions
        .iter()
        .position(|condition| condition.text(&["type"]) == ty);
    let same = place
        .map(|place| &conditions[place])
        .filter(|old| Some(old.text(&["status"])) == wanted.get_str("status"))
        .and_then(|old| old.at(&["lastTransitionTime"]).cloned());
    wanted.insert("lastTransitionTime", same.unwrap_or_else(|| now.into()));
    match place {
        Some(place) => conditions[place] = wanted.into(),
        None => conditions.push(wanted.into()),
    }
    status.insert("conditions", Value::Array(conditions));
}
