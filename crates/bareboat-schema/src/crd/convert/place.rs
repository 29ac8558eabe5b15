//! Paths of an annotation: how they are written, where they lead in a schema, and putting and taking values there.

use crate::path::steps;
use crate::schema::{Additional, Flags, Kind, Node};
use bareboat_api::{Map, Str, Value};

/// The longest way a path may go.
const MAX_STEPS: usize = 32;

/// A path such as `spec.workload.name` or `metadata.annotations['example.com/x']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) text: Str,
    steps: Box<[Str]>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'n> {
    /// A declared field.
    Node(&'n Node),
    /// Something that is preserved without being declared.
    Anything,
    /// All labels or annotations.
    Texts,
    /// One label or annotation.
    Text,
}

impl Place {
    pub(super) fn parse(text: &str) -> Result<Place, String> {
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
        Ok(Place {
            text: Str::new(text.strip_prefix('.').unwrap_or(text)),
            steps: found.into(),
        })
    }

    /// Whether one of two places is the other or inside it.
    pub(super) fn overlaps(&self, other: &Place) -> bool {
        self.steps.iter().zip(&other.steps).all(|(a, b)| a == b)
    }

    pub(super) fn is_in_metadata(&self) -> bool {
        self.steps[0] == "metadata"
    }

    /// What the path leads to in a schema; the error says why it leads nowhere.
    pub(super) fn find<'n>(&self, root: &'n Node) -> Result<Found<'n>, String> {
        match (self.steps[0].as_str(), &self.steps[1..]) {
            ("apiVersion" | "kind", _) => {
                return Err("apiVersion and kind are seen to by the conversion itself".to_owned());
            }
            ("metadata", [member, key @ ..]) if matches!(&**member, "labels" | "annotations") => {
                return match key {
                    [] => Ok(Found::Texts),
                    [_] => Ok(Found::Text),
                    _ => Err(format!("{member} are texts, nothing is inside them")),
                };
            }
            ("metadata", _) => {
                return Err(
                    "of the metadata only labels and annotations can be converted".to_owned(),
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

    /// Takes the value out of an object.
    pub(super) fn take(&self, object: &mut Value) -> Option<Value> {
        let (last, parents) = self.steps.split_last()?;
        let mut map = object.as_object_mut()?;
        for step in parents {
            map = map.get_mut(step)?.as_object_mut()?;
        }
        map.remove(last)
    }

    /// Puts a value into an object; whatever is in the way and no object makes room.
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
