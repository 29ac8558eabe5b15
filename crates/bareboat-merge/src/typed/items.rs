//! The identities of list elements, as keys of `fieldsV1`.

use super::MergeRule;
use crate::fields::{keyed_key, value_key};
use bareboat_api::{
    Str, Value,
    typing::{ListKey, TypeNode},
};
use std::collections::HashMap;

/// The key of a list's element, or why it has none.
pub(super) fn item_key(node: &dyn TypeNode, rule: MergeRule, item: &Value) -> Result<Str, String> {
    if rule == MergeRule::Keyed {
        return keyed(node.list_keys(), item);
    }
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type"),
        Value::Array(_) => Err("not supported: associative list with lists as elements"),
        Value::Null => Err("associative list without keys has an element that's an explicit null"),
        scalar => return Ok(value_key(scalar)),
    }
    .map_err(str::to_owned)
}

fn keyed(keys: &[ListKey], item: &Value) -> Result<Str, String> {
    let Value::Object(members) = item else {
        let found = if item.is_null() {
            "a null element"
        } else {
            "non-map elements"
        };
        return Err(format!("associative list with keys may not have {found}"));
    };
    let value = |key: &'_ ListKey| -> Option<&Value> { members.get(&key.name) };
    let mut found: Vec<(&str, &Value)> = Vec::with_capacity(keys.len());
    for key in keys {
        if let Some(value) = value(key).or(key.default.as_ref()) {
            found.push((&key.name, value));
        }
    }
    if found.is_empty() && !keys.is_empty() {
        let names: Vec<String> = keys
            .iter()
            .map(|key| bareboat_api::field::go_quote(&key.name))
            .collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    bareboat_api::sort_by(&mut found, |(a, _), (b, _)| a.cmp(b));
    Ok(keyed_key(found.into_iter()))
}

/// The elements of a list by their keys, in the order in which the keys first occur.
///
/// Elements without a key are left out: they cannot be identified, and the object is invalid
/// anyway.
pub(super) struct Items<'v> {
    order: Vec<(Str, Vec<&'v Value>)>,
    places: HashMap<Str, usize>,
}

impl<'v> Items<'v> {
    pub(super) fn of(node: &dyn TypeNode, rule: MergeRule, list: &'v [Value]) -> Items<'v> {
        let mut items = Items {
            order: Vec::with_capacity(list.len()),
            places: HashMap::with_capacity(list.len()),
        };
        for item in list {
            let Ok(key) = item_key(node, rule, item) else {
                continue;
            };
            match items.places.get(&key) {
                Some(place) => items.order[*place].1.push(item),
                None => {
                    items.places.insert(key.clone(), items.order.len());
                    items.order.push((key, vec![item]));
                }
            }
        }
        items
    }

    /// Returns all elements with that key.
    pub(super) fn get(&self, key: &Str) -> &[&'v Value] {
        self.places
            .get(key)
            .map_or(&[], |place| self.order[*place].1.as_slice())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Str, &[&'v Value])> {
        self.order
            .iter()
            .map(|(key, items)| (key, items.as_slice()))
    }
}
