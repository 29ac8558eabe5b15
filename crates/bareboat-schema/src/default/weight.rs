//! The size of defaults, computed from the schema alone.
//!
//! Each node is weighed once, after the nodes below it, so the work grows with the size of the
//! schema, while the defaults themselves may grow exponentially.

use crate::schema::{Additional, Flags, Node};
use bareboat_api::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the bytes of defaults that one value can cause in any place of the schema, at most.
pub(super) fn most(root: &Node) -> usize {
    let mut scale = Scale::default();
    scale.weigh(root);
    scale.most
}

#[derive(Default)]
struct Scale {
    /// What an empty object is filled with, by node.
    filled: HashMap<*const Node, usize>,
    most: usize,
}

impl Scale {
    fn weigh(&mut self, node: &Node) {
        let place = std::ptr::from_ref(node);
        if !node.has(Flags::DEFAULTS_BELOW) || self.filled.contains_key(&place) {
            return;
        }
        below(node).for_each(|child| self.weigh(child));
        let mut filled = 0_usize;
        for (name, property) in &node.properties {
            if let Some(default) = &property.default {
                let whole = default
                    .bytes
                    .saturating_add(self.added(&default.value, property));
                filled = filled.saturating_add(name.len()).saturating_add(whole);
            }
        }
        self.filled.insert(place, filled);
        let replaced = node.default.as_ref().map_or(0, |default| {
            default
                .bytes
                .saturating_add(self.added(&default.value, node))
        });
        self.most = self.most.max(filled).max(replaced);
    }

    /// Returns what is filled into a default, at most; all nodes below it are weighed.
    fn added(&self, value: &Value, node: &Node) -> usize {
        let own = self.filled.get(&std::ptr::from_ref(node));
        match value {
            Value::Object(map) => {
                map.iter()
                    .fold(own.copied().unwrap_or(0), |sum, (name, member)| match node
                        .property(name)
                        .or(node.additional())
                    {
                        Some(schema) => sum.saturating_add(self.added(member, schema)),
                        None => sum,
                    })
            }
            Value::Array(list) => match &node.items {
                Some(items) => list.iter().fold(0_usize, |sum, item| {
                    sum.saturating_add(self.added(item, items))
                }),
                None => 0,
            },
            // A null is replaced by the default of its place.
            Value::Null => node.default.as_ref().map_or(0, |default| default.bytes),
            _ => 0,
        }
    }
}

fn below(node: &Node) -> impl Iterator<Item = &Node> {
    let additional = match &node.additional {
        Additional::Node(schema) => Some(schema),
        _ => None,
    };
    let properties = node.properties.iter().map(|(_, property)| property);
    properties
        .chain(additional)
        .chain(&node.items)
        .map(Arc::as_ref)
}

#[cfg(test)]
mod tests {
    use crate::testing::{schema, yaml};

    #[test]
    fn defaults_within_defaults_are_counted() {
        let plain = schema("{type: object, properties: {a: {type: string}}}");
        assert_eq!(plain.defaults_per_value(), 0);
        let one = schema("{type: object, properties: {a: {type: string, default: x}}}");
        let mut nested =
            "{type: object, properties: {leaf: {type: string, default: x}}}".to_owned();
        for _ in 0..6 {
            nested = format!(
                "{{type: object, properties: {{a: {{type: array, default: [{{}}, {{}}, {{}}, {{}}], items: {nested}}}}}}}"
            );
        }
        let nested = schema(&nested);
        assert!(
            one.defaults_per_value() < 200,
            "{}",
            one.defaults_per_value()
        );
        let most = nested.defaults_per_value();
        let mut object = yaml("{}");
        let mut room = usize::MAX;
        super::super::fill(&mut object, &nested.root, &mut room).unwrap();
        let really = usize::MAX - room;
        assert!(most >= really && most < 2 * really, "{most} {really}");
    }

    #[test]
    fn defaults_that_grow_exponentially_are_weighed_quickly() {
        let mut nested =
            "{type: object, properties: {leaf: {type: string, default: x}}}".to_owned();
        for _ in 0..40 {
            nested = format!(
                "{{type: object, properties: {{a: {{type: array, default: [{{}}, {{}}, {{}}, {{}}], items: {nested}}}}}}}"
            );
        }
        assert!(schema(&nested).defaults_per_value() > 1 << 40);
    }
}
