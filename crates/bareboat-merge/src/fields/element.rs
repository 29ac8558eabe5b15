//! One step of a field path and its key in `fieldsV1`.

use bareboat_api::{Str, Value, field::go_quote, value::write_string};
use std::{cmp::Ordering, fmt};

/// The error of invalid `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsError {
    /// A node of the trie is not an object.
    #[error("a set of fields must be an object, not {0}")]
    NotAnObject(&'static str),
    /// A key is invalid.
    #[error("parsing key as path element: {0}")]
    BadKey(String),
}

/// One step of a field path.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A member of an object.
    Field(Str),
    /// The element of a list with these values of its keys, sorted by name.
    Key(Vec<(Str, Value)>),
    /// The element of a set with this value.
    Value(Value),
    /// The element of a list at this index.
    Index(i64),
}

impl Element {
    /// Parses a key of `fieldsV1`; `None` for a key of unknown type.
    pub fn parse(key: &str) -> Result<Option<Element>, FieldsError> {
        let bad = || FieldsError::BadKey(key.to_owned());
        let (Some(kind), Some(":")) = (key.as_bytes().first(), key.get(1..2)) else {
            return Err(bad());
        };
        let rest = &key[2..];
        match kind {
            b'f' => Ok(Some(Element::Field(Str::new(rest)))),
            b'v' => {
                let value = serde_json::from_str(rest).map_err(|_| bad())?;
                Ok(Some(Element::Value(value)))
            }
            b'k' => match serde_json::from_str(rest).map_err(|_| bad())? {
                Value::Object(members) => Ok(Some(Element::Key(members.into_iter().collect()))),
                _ => Err(bad()),
            },
            b'i' => Ok(Some(Element::Index(rest.parse().map_err(|_| bad())?))),
            _ => Ok(None),
        }
    }

    /// Returns the key of this step in `fieldsV1`.
    pub fn key(&self) -> Str {
        match self {
            Element::Field(name) => field_key(name),
            Element::Key(fields) => keyed_key(fields.iter().map(|(name, value)| (&**name, value))),
            Element::Value(value) => value_key(value),
            Element::Index(index) => format!("i:{index}").into(),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }

    /// Compares elements in the order in which Kubernetes prints them.
    pub(super) fn order(&self, other: &Element) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => {
                let pairs = a.iter().zip(b).map(|((name_a, a), (name_b, b))| {
                    name_a.cmp(name_b).then_with(|| compare_values(a, b))
                });
                pairs
                    .into_iter()
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Element::Value(a), Element::Value(b)) => compare_values(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Prints the step as in paths: `.name`, `[name="x"]`, `[="x"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", shown(value))?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={}]", shown(value)),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        other => other.to_string(),
    }
}

/// Returns the key of a named member.
pub(crate) fn field_key(name: &str) -> Str {
    let mut key = Str::with_capacity(name.len() + 2);
    key.push_str("f:");
    key.push_str(name);
    key
}

/// Returns the key of an element of a set.
pub(crate) fn value_key(value: &Value) -> Str {
    let mut key = b"v:".to_vec();
    value.write_json(&mut key);
    text(key)
}

/// Returns the key of an element of a map list, from key fields sorted by name.
pub(crate) fn keyed_key<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>) -> Str {
    let mut key = b"k:{".to_vec();
    for (index, (name, value)) in fields.enumerate() {
        if index > 0 {
            key.push(b',');
        }
        write_string(name, &mut key);
        key.push(b':');
        value.write_json(&mut key);
    }
    key.push(b'}');
    text(key)
}

fn text(key: Vec<u8>) -> Str {
    Str::from_utf8(key).expect("JSON text is UTF-8")
}

/// Returns the canonical form of a key; `None` when its type is unknown.
pub(super) fn canonical(key: &str) -> Result<Option<Str>, FieldsError> {
    // Members are by far the most common keys and have one form only.
    if key.starts_with("f:") {
        return Ok(Some(Str::new(key)));
    }
    Ok(Element::parse(key)?.map(|element| element.key()))
}

/// Compares values in Kubernetes' order: numbers, strings, booleans, lists, maps, null.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Int(_) | Value::Float(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            // Lists and maps never identify elements; any fixed order is correct.
            _ => rank(a)
                .cmp(&rank(b))
                .then_with(|| a.to_json().cmp(&b.to_json())),
        },
    }
}
