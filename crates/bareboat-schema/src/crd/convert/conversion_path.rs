//! Paths of an annotation: parsing, lookup in a schema, and reading and writing values.

use crate::path::steps;
use crate::schema::{Additional, Flags, Kind, Node};
use bareboat_api::{Map, Str, Value};

/// The maximum number of steps of a path.
const MAX_STEPS: usize = 32;

/// A path such as `spec.workload.name` or `metadata.annotations['example.com/x']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConversionPath {
    pub(super) text: Str,
    steps: Box<[Str]>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'n> {
    /// A declared field.
    Node(&'n Node),
    /// A preserved, undeclared field.
    Anything,
    /// All labels or annotations.
    Texts,
    /// One label or annotation.
    Text,
}

impl ConversionPath {
    pub(super) fn parse(text: &str) -> Result<ConversionPath, String> {
        const FORM: &str = "; write paths like spec.name or metadata.annotations['example.com/x']";
        let dotted = match text.starts_with(['.', '[']) {
            true => text.to_owned(),
            false => format!(".{text}"),
        };
        let mut found: Vec<Str> = Vec::new();
        for step in steps(&dotted, true) {
            let step = step.map_err(|problem| format!("{problem}{FORM}"))?;
            if matches!(step.as_str(), "" | "." | "[" | "]") {
                return Err(format!("a name is missing{FORM}"));
            }
            found.push(step.into());
        }
        if found.is_empty() {
            return Err(format!("a path is missing{FORM}"));
        }
        if found.len() > MAX_STEPS {
            return Err(format!("may have at most {MAX_STEPS} steps"));
        }
        Ok(ConversionPath {
            text: Str::new(text.strip_prefix('.').unwrap_or(text)),
            steps: found.into(),
        })
    }

    /// Returns the steps.
    pub(super) fn steps(&self) -> &[Str] {
        &self.steps
    }

    /// Returns the steps of this place and of all places around it.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = &[Str]> {
        (1..=self.steps.len()).map(|end| &self.steps[..end])
    }

    pub(super) fn is_in_metadata(&self) -> bool {
        self.steps[0] == "metadata"
    }

    /// Looks the path up in a schema; the error explains a path without a target.
    pub(super) fn find<'n>(&self, root: &'n Node) -> Result<Found<'n>, String> {
        match (self.steps[0].as_str(), &self.steps[1..]) {
            ("apiVersion" | "kind", _) => {
                return Err("the conversion sets apiVersion and kind itself".to_owned());
            }
            ("metadata", [member, key @ ..]) if matches!(&**member, "labels" | "annotations") => {
                return match key {
                    [] => Ok(Found::Texts),
                    [_] => Ok(Found::Text),
                    _ => Err(format!("{member} are strings and have no fields")),
                };
            }
            ("metadata", _) => {
                return Err(
                    "only labels and annotations of the metadata can be converted".to_owned(),
                );
            }
            _ => {}
        }
        let mut node = root;
        for (at, step) in self.steps.iter().enumerate() {
            let here = || match at {
                0 => "the object".to_owned(),
                _ => self.steps[..at].join("."),
            };
            if let Some(next) = node.member(step) {
                node = next;
            } else if is_open(node) {
                return Ok(Found::Anything);
            } else if node.kind == Kind::Array {
                let list = here();
                return Err(format!(
                    "{list} is a list, and paths do not lead into lists: set {list} as a whole, \
                     with map() for its elements"
                ));
            } else {
                return Err(format!(
                    "{} has no field {step}{}",
                    here(),
                    known_fields(node)
                ));
            }
        }
        Ok(Found::Node(node))
    }

    /// Removes the value from an object and returns it.
    pub(super) fn take(&self, object: &mut Value) -> Option<Value> {
        let (last, parents) = self.steps.split_last()?;
        let mut map = object.as_object_mut()?;
        for step in parents {
            map = map.get_mut(step)?.as_object_mut()?;
        }
        map.remove(last)
    }

    /// Sets the value in an object; replaces parents that are not objects.
    pub(super) fn put(&self, object: &mut Value, value: Value) {
        let Some((last, parents)) = self.steps.split_last() else {
            return;
        };
        let mut map: &mut Map = object.make_object();
        for step in parents {
            map = map.entry_or_insert_with(step, Value::object).make_object();
        }
        map.insert(last.clone(), value);
    }
}

fn is_open(node: &Node) -> bool {
    node.has(Flags::PRESERVE) || matches!(node.additional, Additional::Allowed(true))
}

fn known_fields(node: &Node) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = node
        .properties
        .iter()
        .take(SHOWN)
        .map(|(name, _)| &**name)
        .collect();
    match (names.len(), node.properties.len() > SHOWN) {
        (0, _) => String::new(),
        (_, false) => format!("; it has {}", names.join(", ")),
        (_, true) => format!("; it has {} and others", names.join(", ")),
    }
}
