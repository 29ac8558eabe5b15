//! JSONPath for printer columns and selectable fields, in client-go's dialect.
//!
//! A path is compiled once and evaluated on any number of values. Templates with text around paths,
//! and `range`, belong to kubectl and are not implemented here.

mod eval;
mod parse;

use crate::value::write_float;
use crate::{Str, Value};

/// A compiled path, such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// `.name`.
    Field(Str),
    /// `.*`.
    Wildcard,
    /// `..`.
    Recursive,
    /// `[0]`, `[-1:]`, `[*]`, `[0:4:2]`.
    Slice(Slice),
    /// `[?(@.a=="b")]`.
    Filter(Filter),
    /// `[0,2]`, `['a','b']`.
    Union(Vec<Vec<Node>>),
    /// `"text"`, `3`, `true`.
    Literal(Value),
    /// A word without a meaning in a path.
    Identifier(Str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// Whether this is `[n]`: the end was not written but follows from the start.
    single: bool,
    step: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Node>,
    /// The operator and the right side; without one, the filter holds if `left` finds a value.
    compare: Option<(Str, Vec<Node>)>,
}

impl JsonPath {
    /// Compiles a path; the braces around it are optional.
    pub fn compile(text: &str) -> Result<JsonPath, PathError> {
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        parse::action(inner.unwrap_or(text)).map(|nodes| JsonPath { nodes })
    }

    /// Returns all values that the path selects, or an error if the path cannot be evaluated on
    /// this value.
    pub fn find<'v>(&'v self, value: &'v Value) -> Result<Vec<&'v Value>, PathError> {
        eval::find(&self.nodes, value)
    }

    /// Returns all values that the path selects; none if the path cannot be evaluated.
    pub fn all<'v>(&'v self, value: &'v Value) -> Vec<&'v Value> {
        self.find(value).unwrap_or_default()
    }

    /// Returns the first value that the path selects.
    pub fn first<'v>(&'v self, value: &'v Value) -> Option<&'v Value> {
        self.all(value).first().copied()
    }

    /// Returns the members of a simple path such as `.spec.replicas`; `None` if the path is not
    /// simple.
    pub fn simple(&self) -> Option<Vec<&str>> {
        let name = |node: &'_ Node| matches!(node, Node::Field(_));
        if !self.nodes.iter().all(name) {
            return None;
        }
        let names = self.nodes.iter().filter_map(|node| match node {
            Node::Field(name) => Some(name.as_str()),
            _ => None,
        });
        Some(names.collect())
    }
}

/// Prints a result like a template does: strings without quotes, collections as JSON.
pub fn print(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Float(number) => {
            let mut out = Vec::new();
            write_float(*number, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
        other => other.to_string(),
    }
}

/// The error of a path that cannot be parsed or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(String);

fn fault<T>(message: impl Into<String>) -> Result<T, PathError> {
    Err(PathError(message.into()))
}

#[cfg(test)]
mod tests;
