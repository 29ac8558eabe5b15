//! JSONPath as printer columns and selectable fields use it: client-go's dialect.
//!
//! A path is compiled once and walks any number of values. Templates with text around paths,
//! and `range`, belong to kubectl and are not here.

mod eval;
mod parse;

use crate::value::write_float;
use crate::{Str, Value};
use std::fmt;

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
    /// A word that means nothing in a path.
    Identifier(Str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    /// `[n]`: the end was not written but follows from the start.
    single: bool,
    step: Option<i64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Node>,
    /// The comparison and its other side; without one, it is enough that `left` finds something.
    compare: Option<(Str, Vec<Node>)>,
}

impl JsonPath {
    /// Compiles a path; braces around it may be there or not.
    pub fn compile(text: &str) -> Result<JsonPath, PathError> {
        let inner = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        parse::action(inner.unwrap_or(text)).map(|nodes| JsonPath { nodes })
    }

    /// Everything the path leads to, or why it cannot be walked in this value.
    pub fn find<'v>(&'v self, value: &'v Value) -> Result<Vec<&'v Value>, PathError> {
        eval::find(&self.nodes, value)
    }

    /// Everything the path leads to; nothing where it cannot be walked.
    pub fn all<'v>(&'v self, value: &'v Value) -> Vec<&'v Value> {
        self.find(value).unwrap_or_default()
    }

    /// The first thing the path leads to.
    pub fn first<'v>(&'v self, value: &'v Value) -> Option<&'v Value> {
        self.all(value).first().copied()
    }

    /// The members a simple path such as `.spec.replicas` walks; nothing if it is not simple.
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

/// The text of a result as templates print it: strings bare, collections as JSON.
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

/// Why a path was not understood, or cannot be walked in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError(String);

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PathError {}

fn fault<T>(message: impl Into<String>) -> Result<T, PathError> {
    Err(PathError(message.into()))
}

#[cfg(test)]
mod tests;
