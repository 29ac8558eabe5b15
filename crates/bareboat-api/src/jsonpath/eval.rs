//! Evaluates a path on a value.

use super::{Filter, Node, PathError, Slice, fault};
use crate::{Str, Value};
use std::cmp::Ordering;

/// The maximum number of values that one evaluation may visit, because repeated descents multiply.
const MAX_VISITS: usize = 100_000;

pub(super) fn find<'v>(nodes: &'v [Node], value: &'v Value) -> Result<Vec<&'v Value>, PathError> {
    Walk { visits: 0 }.path(nodes, vec![value])
}

struct Walk {
    visits: usize,
}

impl Walk {
    /// Invariant: recursion follows the nesting of the path, which the parser bounds.
    fn path<'v>(
        &mut self,
        nodes: &'v [Node],
        mut current: Vec<&'v Value>,
    ) -> Result<Vec<&'v Value>, PathError> {
        for node in nodes {
            self.visit(current.len())?;
            current = self.step(node, current)?;
        }
        Ok(current)
    }

    fn visit(&mut self, count: usize) -> Result<(), PathError> {
        self.visits += count;
        if self.visits > MAX_VISITS {
            return fault("the path visits too many values");
        }
        Ok(())
    }

    fn step<'v>(
        &mut self,
        node: &'v Node,
        input: Vec<&'v Value>,
    ) -> Result<Vec<&'v Value>, PathError> {
        match node {
            Node::Field(name) => Ok(input
                .into_iter()
                .filter_map(|value| value.get(name))
                .collect()),
            Node::Wildcard => {
                let mut found = Vec::new();
                for value in input {
                    children(value, &mut found);
                    self.visit(1)?;
                }
                Ok(found)
            }
            Node::Recursive => {
                let mut found = Vec::new();
                for value in input {
                    self.descend(value, &mut found)?;
                }
                Ok(found)
            }
            Node::Slice(slice) => {
                let mut found = Vec::new();
                for value in input {
                    cut(slice, value, &mut found)?;
                }
                Ok(found)
            }
            Node::Filter(filter) => self.filter(filter, input),
            Node::Union(branches) => {
                let mut found = Vec::new();
                for branch in branches {
                    found.extend(self.path(branch, input.clone())?);
                }
                Ok(found)
            }
            // A string yields one result regardless of the input; numbers yield one per input
            // value.
            Node::Literal(text @ Value::String(_)) => Ok(vec![text]),
            Node::Literal(value) => Ok(input.iter().map(|_| value).collect()),
            Node::Identifier(name) => fault(format!("unrecognized identifier {name}")),
        }
    }

    /// Returns the value and all values inside it, outer before inner; numbers and booleans contain
    /// none.
    fn descend<'v>(
        &mut self,
        value: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), PathError> {
        self.visit(1)?;
        let mut inner = Vec::new();
        children(value, &mut inner);
        if !inner.is_empty() || value.as_str().is_some_and(|text| !text.is_empty()) {
            found.push(value);
        }
        // Parsers bound the depth of values, and with it this recursion.
        inner
            .into_iter()
            .try_for_each(|child| self.descend(child, found))
    }

    fn filter<'v>(
        &mut self,
        filter: &'v Filter,
        input: Vec<&'v Value>,
    ) -> Result<Vec<&'v Value>, PathError> {
        let mut found = Vec::new();
        for value in input {
            let Value::Array(items) = value else {
                return fault(format!(
                    "{} is not array or slice and cannot be filtered",
                    value.type_name()
                ));
            };
            for item in items {
                self.visit(1)?;
                if self.passes(filter, item)? {
                    found.push(item);
                }
            }
        }
        Ok(found)
    }

    fn passes<'v>(&mut self, filter: &'v Filter, item: &'v Value) -> Result<bool, PathError> {
        let Some((operator, right)) = &filter.compare else {
            let found = self.path(&filter.left, vec![item]);
            return Ok(found.is_ok_and(|found| !found.is_empty()));
        };
        let left = self.path(&filter.left, vec![item])?;
        let right = self.path(right, vec![item])?;
        match (left.as_slice(), right.as_slice()) {
            ([], _) | (_, []) => Ok(false),
            ([left], [right]) => compare(operator, left, right),
            _ => fault("can only compare one element at a time"),
        }
    }
}

fn children<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Array(items) => found.extend(items),
        Value::Object(map) => found.extend(map.values()),
        _ => {}
    }
}

fn cut<'v>(slice: &Slice, value: &'v Value, found: &mut Vec<&'v Value>) -> Result<(), PathError> {
    let items = match value {
        Value::Null => return Ok(()),
        Value::Array(items) => items,
        other => return fault(format!("{} is not array or slice", other.type_name())),
    };
    let length = items.len() as i64;
    let from_end = |at: i64| {
        if at < 0 {
            at.saturating_add(length)
        } else {
            at
        }
    };
    let start = from_end(slice.start.unwrap_or(0));
    let end = match slice.end {
        _ if slice.single => start.saturating_add(1),
        Some(end) => from_end(end),
        None => length,
    };
    if start == end {
        return Ok(());
    }
    let outside = |at: i64| {
        fault(format!(
            "array index out of bounds: index {at}, length {length}"
        ))
    };
    if !(0..length).contains(&start) {
        return outside(start);
    }
    if !(0..=length).contains(&end) {
        return outside(end - 1);
    }
    if start > end {
        return fault(format!(
            "starting index {start} is greater than ending index {end}"
        ));
    }
    let step = match slice.step {
        None => 1,
        Some(step) if step > 0 => usize::try_from(step).unwrap_or(usize::MAX),
        Some(_) => return fault("step must be > 0"),
    };
    found.extend(items[start as usize..end as usize].iter().step_by(step));
    Ok(())
}

fn compare(operator: &Str, left: &Value, right: &Value) -> Result<bool, PathError> {
    let order = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) if matches!(operator.as_str(), "==" | "!=") => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            let (a, b) = (left.as_f64(), right.as_f64());
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
        _ => return fault("incompatible types for comparison"),
    };
    Ok(match operator.as_str() {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        other => return fault(format!("unrecognized filter operator {other}")),
    })
}
