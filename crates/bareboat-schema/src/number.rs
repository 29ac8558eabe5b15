//! Numbers: which floats count as integers, and settling `1.0` to `1`.

use crate::schema::{Flags, Kind, Node, Schema};
use bareboat_api::Value;

/// The largest integer a float tells from its neighbours.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a float is an integer as JSON means it.
pub(crate) fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= EXACT
}

impl Schema {
    /// Turns floats without a fraction into integers wherever the schema asks for an integer.
    pub fn settle_numbers(&self, object: &mut Value) {
        settle(&self.root, object);
    }
}

fn settle(node: &Node, value: &mut Value) {
    if !node.has(Flags::INTEGERS_BELOW) {
        return;
    }
    match value {
        Value::Float(number) => {
            let wanted = node.kind == Kind::Integer || node.has(Flags::INT_OR_STRING);
            if wanted && is_integer(*number) {
                *value = Value::Int(*number as i64);
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                list.iter_mut().for_each(|item| settle(items, item));
            }
        }
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                if let Some(schema) = node.member(name) {
                    settle(schema, member);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::Schema;
    use bareboat_api::value;

    #[test]
    fn whole_floats_settle_to_integers_only_where_integers_are_asked_for() {
        let schema = Schema::parse(&value!({"type": "object", "properties": {
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "port": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "items": {"type": "integer"}}
        }}))
        .unwrap();
        let mut object = value!({"count": 2.0, "share": 2.0, "port": 80.0, "list": [1.0, 1.5]});
        schema.settle_numbers(&mut object);
        let shown = format!("{object:?}");
        assert!(shown.contains("\"count\", Int(2)"), "{shown}");
        assert!(shown.contains("\"share\", Float(2.0)"), "{shown}");
        assert!(shown.contains("\"port\", Int(80)"), "{shown}");
        assert!(shown.contains("Int(1), Float(1.5)"), "{shown}");
    }
}
