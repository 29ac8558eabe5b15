//! Validation of uniqueness: sets have no duplicate values, map lists no duplicate keys.

use crate::schema::{Flags, Node};
use bareboat_api::typing::ListType;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Map, Value};
use std::collections::HashMap;

/// Reports the first repetition of every element that occurs more than once.
pub(super) fn unique(node: &Node, value: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    if !node.has(Flags::UNIQUE_BELOW) {
        return;
    }
    match value {
        Value::Object(map) => {
            let mut declared = node.in_order();
            for (name, member) in map.iter() {
                if let Some(schema) = node.additional()
                    && schema.has(Flags::UNIQUE_BELOW)
                {
                    unique(schema, member, &path.key(name), errors);
                }
                if let Some(property) = declared.property(name)
                    && property.has(Flags::UNIQUE_BELOW)
                {
                    unique(property, member, &path.child(name), errors);
                }
            }
        }
        Value::Array(list) => {
            match node.list {
                Some(ListType::Set) => {
                    for index in repeated(list.iter().map(|item| item.to_json())) {
                        errors.push(FieldError::duplicate(
                            path.index(index),
                            list[index].clone(),
                        ));
                    }
                }
                Some(ListType::Map) => map_list(node, list, path, errors),
                _ => {}
            }
            if let Some(items) = &node.items
                && items.has(Flags::UNIQUE_BELOW)
            {
                for (index, item) in list.iter().enumerate() {
                    unique(items, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn map_list(node: &Node, list: &[Value], path: &FieldPath, errors: &mut FieldErrors) {
    let odd = list
        .iter()
        .position(|item| !matches!(item, Value::Null | Value::Object(_)));
    if let Some(index) = odd {
        errors.push(FieldError::invalid(
            path.index(index),
            list[index].clone(),
            "must be an object for an array of list-type map",
        ));
        return;
    }
    if list.len() < 2 {
        return;
    }
    let key_of = |item: &Value| -> Value {
        let pairs = node.keys.iter().filter_map(|key| {
            let value = item.get(&key.name)?;
            Some((key.name.clone(), value.clone()))
        });
        Value::Object(pairs.collect::<Map>())
    };
    for index in repeated(list.iter().map(|item| key_of(item).to_json())) {
        errors.push(FieldError::duplicate(
            path.index(index),
            key_of(&list[index]),
        ));
    }
}

/// Returns the positions of second occurrences.
fn repeated(items: impl Iterator<Item = Vec<u8>>) -> Vec<usize> {
    let mut seen: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut places = Vec::new();
    for (index, item) in items.enumerate() {
        let times = seen.entry(item).or_default();
        *times += 1;
        if *times == 2 {
            places.push(index);
        }
    }
    places
}
