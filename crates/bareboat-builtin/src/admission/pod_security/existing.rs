//! Warnings about existing pods that violate the new policy of their namespace.

use super::evaluate::Violations;
use super::policy::LevelVersion;
use crate::reach::Reach as _;
use bareboat_api::{Object, Value};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// How many pods are checked.
pub(super) const MOST: usize = 3000;
/// How long pods are checked.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the warnings about the pods of a namespace that has `total` of them.
pub(super) fn warnings(
    namespace: &str,
    enforce: LevelVersion,
    pods: Vec<Object>,
    total: usize,
    is_exempt: impl Fn(&Value) -> bool,
) -> Vec<String> {
    let begun = Instant::now();
    let listed = pods.len();
    let pods = first_of_each(pods, is_exempt);
    let exempt = listed - pods.len();
    let total = total.saturating_sub(exempt);
    let mut checked = 0;
    // By reasons: the first name, and how many more there are.
    let mut bad: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in &pods {
        checked += 1;
        let violations = Violations::of(pod.value(), enforce);
        if !violations.is_empty() {
            let name = pod.name();
            let found = bad.entry(violations.reasons());
            let (first, count) = found.or_insert_with(|| (name.to_owned(), 0));
            *count += 1;
            if name < first.as_str() {
                *first = name.to_owned();
            }
        }
        if begun.elapsed() > PATIENCE {
            break;
        }
    }
    let mut warnings = Vec::new();
    if checked < total {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
        ));
    }
    if !bad.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{enforce}\""
        ));
    }
    let mut messages: Vec<String> = bad
        .into_iter()
        .map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            _ => format!("{name} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    messages.sort_unstable();
    warnings.extend(messages);
    warnings
}

/// Puts one pod of each controller first, and leaves out those that are exempt.
fn first_of_each(pods: Vec<Object>, is_exempt: impl Fn(&Value) -> bool) -> Vec<Object> {
    let mut seen = HashSet::new();
    let (mut first, mut more) = (Vec::with_capacity(pods.len()), Vec::new());
    for pod in pods {
        if is_exempt(pod.value()) {
            continue;
        }
        let owners = pod.value().list(&["metadata", "ownerReferences"]);
        let controller = owners.iter().find(|owner| owner.flag(&["controller"]));
        let uid = controller.map(|owner| owner.text(&["uid"]).to_owned());
        match uid.is_none_or(|uid| seen.insert(uid)) {
            true => first.push(pod),
            false => more.push(pod),
        }
    }
    first.append(&mut more);
    first
}

#[cfg(test)]
mod tests;
