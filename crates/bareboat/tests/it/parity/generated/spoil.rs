//! Random changes of values.

use super::chance::Chance;
use super::tree::{self, Step};
use crate::support::{Value, json};

/// Changes a random place of a value.
pub(super) fn spoil(chance: &mut Chance, value: &mut Value, may_be_wrong: bool) {
    let places = tree::places(value);
    if places.is_empty() {
        return;
    }
    let place = chance.one(&places).clone();
    let Some(before) = tree::get(value, &place).cloned() else {
        return;
    };
    match chance.below(if may_be_wrong { 14 } else { 9 }) {
        0..=3 => tree::remove(value, &place),
        4 => tree::set(value, &place, Value::Null),
        5 | 6 => tree::set(value, &place, empty(&before)),
        7 | 8 => tree::set(value, &place, shuffled(chance, before)),
        9 | 10 => tree::set(value, &place, doubled(chance, before)),
        11 => tree::set(value, &place, other_type(chance, &before)),
        _ => {
            let mut map = place;
            while !tree::get(value, &map).is_some_and(Value::is_object) {
                map.pop();
            }
            map.push(Step::Member("unheardOf".to_owned()));
            tree::set(value, &map, json!("of"));
        }
    }
}

fn empty(of: &Value) -> Value {
    match of {
        Value::Object(_) => json!({}),
        Value::Array(_) => json!([]),
        Value::String(_) => json!(""),
        Value::Number(_) => json!(0),
        Value::Bool(_) => json!(false),
        Value::Null => Value::Null,
    }
}

/// Shuffles a list.
fn shuffled(chance: &mut Chance, value: Value) -> Value {
    match value {
        Value::Array(mut list) if list.len() > 1 => {
            let at = 1 + chance.below(list.len() - 1);
            list.rotate_left(at);
            Value::Array(list)
        }
        other => other,
    }
}

/// Repeats an element of a list.
fn doubled(chance: &mut Chance, value: Value) -> Value {
    match value {
        Value::Array(mut list) if !list.is_empty() => {
            let twice = chance.one(&list).clone();
            list.push(twice);
            Value::Array(list)
        }
        other => other,
    }
}

/// Returns a value of any other type.
pub(super) fn other_type(chance: &mut Chance, value: &Value) -> Value {
    let mut others = vec![
        json!("text"),
        json!(7),
        json!(true),
        json!(1.5),
        json!({"a": "b"}),
        json!(["a"]),
    ];
    let same = |one: &Value| std::mem::discriminant(one) == std::mem::discriminant(value);
    others.retain(|other| !same(other));
    chance.one(&others).clone()
}

/// Returns a body with a duplicate member.
pub(super) fn with_duplicate(chance: &mut Chance, body: &Value) -> String {
    const MARK: &str = "twice:";
    let mut body = body.clone();
    let mut places = tree::places(&body);
    places.retain(|place| {
        matches!(place.last(), Some(Step::Member(_)))
            && tree::get(&body, place).is_some_and(|value| !value.is_object() && !value.is_array())
    });
    if !places.is_empty() {
        let mut place = chance.one(&places).clone();
        let value = tree::get(&body, &place).cloned().unwrap_or_default();
        if let Some(Step::Member(name)) = place.pop() {
            place.push(Step::Member(format!("{MARK}{name}")));
        }
        tree::set(&mut body, &place, value);
    }
    body.to_string().replace(MARK, "")
}
