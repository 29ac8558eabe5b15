//! Computes the status of a definition in one step: accepted names and conditions.
//!
//! Upstream: apiextensions pkg/controller, status, establish, nonstructuralschema, apiapproval.

use super::approval::{self, Approval};
use super::props::Props;
use super::{conversion, is_condition_true, structural, validate};
use bareboat_api::field::go_quote;
use bareboat_api::{FieldError, FieldPath, Map, Value};
use std::collections::{BTreeSet, HashSet};

/// The names that other definitions of a group use.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Collects the accepted names of definitions; all must be of one group, and without the
    /// definition that is about to be reconciled.
    pub fn by<'a>(others: impl IntoIterator<Item = &'a Value>) -> Taken {
        let mut taken = Taken::default();
        for other in others {
            if let Some(names) = other.at(&["status", "acceptedNames"]) {
                taken.add(names);
            }
        }
        taken
    }

    /// Adds a set of accepted names.
    pub fn add(&mut self, names: &Value) {
        let text = |key: &str| names.get(key).and_then(Value::as_str);
        let short = names.get("shortNames").and_then(Value::as_array);
        let resources = [text("plural"), text("singular")]
            .into_iter()
            .flatten()
            .chain(short.unwrap_or(&[]).iter().filter_map(Value::as_str));
        self.resources.extend(resources.map(str::to_owned));
        let kinds = [text("kind"), text("listKind")].into_iter().flatten();
        self.kinds.extend(kinds.map(str::to_owned));
    }
}

/// Returns the status that a definition should have, or `None` if it has it already; `now` is the
/// time of conditions that change.
pub fn reconcile(crd: &Value, taken: &Taken, now: &str) -> Option<Value> {
    let nothing = Value::object();
    let before = crd.get("status").unwrap_or(&nothing);
    let mut status = before.clone();
    status.make_object();

    let conflict = accept_names(crd, taken, &mut status);
    match &conflict {
        None => set_condition(
            &mut status,
            Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            now,
        ),
        Some((reason, message)) => set_condition(
            &mut status,
            Condition::new("NamesAccepted", "False", reason, message),
            now,
        ),
    }
    establish(crd, conflict.is_none(), &mut status, now);
    non_structural(crd, &mut status, now);
    approve(crd, &mut status, now);
    (status != *before).then_some(status)
}

/// Accepts the names that are free; returns the reason and message of a conflict.
fn accept_names(crd: &Value, taken: &Taken, status: &mut Value) -> Option<(&'static str, String)> {
    let nothing = Value::object();
    let wanted = crd.at(&["spec", "names"]).unwrap_or(&nothing);
    let mut accepted = match status.get("acceptedNames") {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    let mut conflict = None;
    let in_use = |name: &str| format!("{} is already in use", go_quote(name));
    for (key, reason, used) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let Some(value) = wanted.get(key) else {
            accepted.remove(key);
            continue;
        };
        if accepted.get(key) == Some(value) {
            continue;
        }
        let fresh = |value: &Value| {
            let name = value.as_str().unwrap_or("");
            used.contains(name).then(|| in_use(name))
        };
        let problems: Vec<String> = match value {
            Value::Array(list) => {
                let held = accepted.get(key).and_then(Value::as_array).unwrap_or(&[]);
                let held: HashSet<&str> = held.iter().filter_map(Value::as_str).collect();
                let is_held = |name: &&Value| name.as_str().is_some_and(|name| held.contains(name));
                let new = list.iter().filter(|name| !is_held(name));
                new.filter_map(fresh).collect()
            }
            name => fresh(name).into_iter().collect(),
        };
        match &problems[..] {
            [] => {
                accepted.insert(key, value.clone());
            }
            [problem] => conflict = Some((reason, problem.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    match wanted.get("categories") {
        Some(categories) => accepted.insert("categories", categories.clone()),
        None => accepted.remove("categories"),
    };
    for key in ["plural", "kind"] {
        accepted.entry_or_insert_with(key, || Value::string(""));
    }
    status
        .make_object()
        .insert("acceptedNames", Value::Object(accepted));
    conflict
}

fn establish(crd: &Value, accepted: bool, status: &mut Value, now: &str) {
    if is_condition_true(crd, "Established") {
        return;
    }
    let condition = if !accepted {
        Condition::new(
            "Established",
            "False",
            "NotAccepted",
            "not all names are accepted",
        )
    } else if !conversion::bundle_is_valid(crd) {
        Condition::new(
            "Established",
            "False",
            "InvalidCABundle",
            "The conversion webhook CABundle is invalid",
        )
    } else {
        Condition::new(
            "Established",
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        )
    };
    set_condition(status, condition, now);
}

fn non_structural(crd: &Value, status: &mut Value, now: &str) {
    let mut violations = Vec::new();
    if crd.at(&["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)) {
        let path = FieldPath::new("spec").child("preserveUnknownFields");
        violations.push(FieldError::invalid(path, true, "must be false"));
    }
    for (index, version) in validate::versions(crd).iter().enumerate() {
        let Some(schema) = Props::of_version(version) else {
            continue;
        };
        let path = FieldPath::new("spec.versions").index(index);
        let path = path.child("schema").child("openAPIV3Schema");
        if let Some(problem) = structural::unsupported(schema) {
            let name = version.get("name").and_then(Value::as_str).unwrap_or("");
            let message =
                format!("failed to check validation schema for version {name}: {problem}");
            let condition = Condition::new(
                "NonStructuralSchema",
                "Unknown",
                "StructuralError",
                &message,
            );
            set_condition(status, condition, now);
            return;
        }
        violations.append(&mut structural::violations(schema, &path));
    }
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let message = match &texts[..] {
        [] => return remove_condition(status, "NonStructuralSchema"),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let condition = Condition::new("NonStructuralSchema", "True", "Violations", &message);
    set_condition(status, condition, now);
}

fn approve(crd: &Value, status: &mut Value, now: &str) {
    let group = crd.at(&["spec", "group"]).and_then(Value::as_str);
    if !group.is_some_and(approval::is_protected) {
        return;
    }
    let (approval, message) = approval::state(crd);
    let (truth, reason) = match approval {
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    set_condition(status, Condition::new(kind, truth, reason, &message), now);
}

/// A condition to set.
#[derive(Clone, Debug)]
pub struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl<'a> Condition<'a> {
    /// Returns a condition with its type, its status (`True`, `False`, `Unknown`), reason and
    /// message.
    pub fn new(kind: &'a str, status: &'a str, reason: &'a str, message: &'a str) -> Condition<'a> {
        Condition {
            kind,
            status,
            reason,
            message,
        }
    }
}

/// Sets a condition in a status; its transition time changes only with its status.
pub fn set_condition(status: &mut Value, condition: Condition<'_>, now: &str) {
    let list = status
        .make_object()
        .entry_or_insert_with("conditions", || Value::Array(Vec::new()));
    if !matches!(list, Value::Array(_)) {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(list) = list else { return };
    let place = list
        .iter()
        .position(|found| found.get("type").and_then(Value::as_str) == Some(condition.kind));
    let index = place.unwrap_or_else(|| {
        list.push(Value::object());
        list.len() - 1
    });
    let entry = list[index].make_object();
    let moved = entry.get_str("status") != Some(condition.status)
        || entry.get_str("lastTransitionTime").is_none();
    for (key, text) in [
        ("type", condition.kind),
        ("status", condition.status),
        ("reason", condition.reason),
        ("message", condition.message),
    ] {
        entry.insert(key, Value::string(text));
    }
    if moved {
        entry.insert("lastTransitionTime", Value::string(now));
    }
}

fn remove_condition(status: &mut Value, kind: &str) {
    if let Some(Value::Array(list)) = status.make_object().get_mut("conditions") {
        list.retain(|found| found.get("type").and_then(Value::as_str) != Some(kind));
    }
}
