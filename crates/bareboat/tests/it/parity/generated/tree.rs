//! Paths in JSON: get, set, remove, and the difference of two values.
//!
//! A path is written `spec/containers/name=web/image`: a step with `=` selects the list element with these members,
//! `~1` is a slash within a name.

use crate::support::{Value, json};

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Member(String),
    Index(usize),
    /// The element with these members.
    Element(Vec<(String, Value)>),
}

/// Parses a path.
pub(super) fn path(text: &str) -> Vec<Step> {
    let step = |part: &str| {
        if !part.contains('=') {
            return Step::Member(part.replace("~1", "/"));
        }
        let members = part.split(',').map(|member| {
            let (key, value) = member.split_once('=').expect("a key and a value");
            let number = value.parse::<i64>().map(Value::from);
            let value = number.unwrap_or_else(|_| Value::from(value.replace("~1", "/")));
            (key.to_owned(), value)
        });
        Step::Element(members.collect())
    };
    text.split('/').map(step).collect()
}

fn is(element: &Value, members: &[(String, Value)]) -> bool {
    members.iter().all(|(key, value)| element[key] == *value)
}

/// Returns the value that a step leads to.
fn child<'a>(at: &'a Value, step: &Step) -> Option<&'a Value> {
    match step {
        Step::Member(name) => at.as_object()?.get(name),
        Step::Index(index) => at.as_array()?.get(*index),
        Step::Element(members) => at.as_array()?.iter().find(|element| is(element, members)),
    }
}

/// Returns the value at a path.
pub(super) fn get<'a>(root: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(root, child)
}

/// Sets a value at a path and creates its parents.
pub(super) fn set(at: &mut Value, path: &[Step], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *at = value;
        return;
    };
    let place = match first {
        Step::Member(name) => {
            if !at.is_object() {
                *at = json!({});
            }
            let members = at.as_object_mut().expect("just made one");
            members.entry(name).or_insert(Value::Null)
        }
        Step::Index(index) => match at.as_array_mut().and_then(|list| list.get_mut(*index)) {
            Some(place) => place,
            None => return,
        },
        Step::Element(members) => {
            if !at.is_array() {
                *at = json!([]);
            }
            let list = at.as_array_mut().expect("just made one");
            let known = list.iter().position(|element| is(element, members));
            let place = known.unwrap_or_else(|| {
                list.push(members.iter().cloned().collect());
                list.len() - 1
            });
            &mut list[place]
        }
    };
    set(place, rest, value);
}

/// Removes the value at a path.
pub(super) fn remove(at: &mut Value, path: &[Step]) {
    let [first, rest @ ..] = path else { return };
    if rest.is_empty() {
        match (first, at) {
            (Step::Member(name), Value::Object(members)) => {
                members.remove(name);
            }
            (Step::Index(index), Value::Array(list)) if *index < list.len() => {
                list.remove(*index);
            }
            _ => {}
        }
        return;
    }
    let place = match (first, at) {
        (Step::Member(name), Value::Object(members)) => members.get_mut(name),
        (Step::Index(index), Value::Array(list)) => list.get_mut(*index),
        _ => None,
    };
    if let Some(place) = place {
        remove(place, rest);
    }
}

/// Returns all paths that clients may change.
pub(super) fn places(root: &Value) -> Vec<Vec<Step>> {
    let mut found = Vec::new();
    walk(root, &mut Vec::new(), &mut found);
    found
}

fn walk(at: &Value, here: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    let steps: Vec<Step> = match at {
        Value::Object(members) => members.keys().cloned().map(Step::Member).collect(),
        Value::Array(list) => (0..list.len()).map(Step::Index).collect(),
        _ => Vec::new(),
    };
    for step in steps {
        if is_the_servers(here, &step) {
            continue;
        }
        let below = child(at, &step).expect("it was just listed");
        here.push(step);
        found.push(here.clone());
        walk(below, here, found);
        here.pop();
    }
}

/// Returns whether the server owns a member: type, identity and some metadata.
fn is_the_servers(here: &[Step], step: &Step) -> bool {
    let Step::Member(name) = step else {
        return false;
    };
    match here {
        [] => ["apiVersion", "kind"].contains(&name.as_str()),
        [Step::Member(first)] if first == "metadata" => {
            !["labels", "annotations", "finalizers", "ownerReferences"].contains(&name.as_str())
        }
        _ => false,
    }
}

/// Returns a path as a JSON pointer; list elements are looked up in `root`.
pub(super) fn pointer(root: &Value, path: &[Step]) -> String {
    let mut text = String::new();
    let mut at = Some(root);
    for step in path {
        let part = match step {
            Step::Member(name) => name.replace('~', "~0").replace('/', "~1"),
            Step::Index(index) => index.to_string(),
            Step::Element(members) => {
                let list = at.and_then(Value::as_array);
                let found = list.and_then(|list| list.iter().position(|one| is(one, members)));
                found.map_or("-".to_owned(), |index| index.to_string())
            }
        };
        at = at.and_then(|at| child(at, step));
        text.push('/');
        text.push_str(&part);
    }
    text
}

/// Returns the difference as a merge patch. Lists are replaced as a whole; an intended null is written as text.
pub(super) fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(members)) = (old, new) else {
        return spelled(new);
    };
    let mut changed = serde_json::Map::new();
    for (key, value) in members {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => {
                changed.insert(key.clone(), difference(before, value));
            }
            None => {
                changed.insert(key.clone(), spelled(value));
            }
        }
    }
    for key in old.keys().filter(|key| !members.contains_key(*key)) {
        changed.insert(key.clone(), Value::Null);
    }
    Value::Object(changed)
}

fn spelled(value: &Value) -> Value {
    match value {
        Value::Null => "<null>".into(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), spelled(value)))
            .collect(),
        Value::Array(list) => list.iter().map(spelled).collect(),
        other => other.clone(),
    }
}
