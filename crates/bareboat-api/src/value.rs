//! The JSON value that the whole server works on.
//!
//! Integers and floats are separate, because `1` must never come back as `1.0`. Maps are sorted
//! vectors, because most have few members, and equality, printing and merging all need an order.
//! `bareboat-wire` parses bytes.

mod map;
mod number;
mod print;
mod seen;
mod serde_impl;
mod typed;

pub use map::Map;
pub use number::write_float;
pub use print::{print_string, write_string};
pub use seen::Seen;
pub use typed::{FromValueError, from_value, to_value};

use std::fmt;

/// The string type of values: short strings are stored inline.
pub type Str = compact_str::CompactString;

/// The deepest nesting that any parser of this project accepts and that every recursive function
/// must handle.
pub const MAX_DEPTH: usize = 200;

/// A JSON value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction or exponent that fits 64 bits.
    Int(i64),
    /// Any other number; never NaN or infinite.
    Float(f64),
    /// A string.
    String(Str),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

impl Value {
    /// Returns a string value.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Str::new(text))
    }

    /// Returns an empty object.
    pub fn object() -> Value {
        Value::Object(Map::new())
    }

    /// Returns the member of an object; `None` if this is not an object or has no such member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns the value at a path of members.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Like [`Value::at`], but mutable.
    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Value> {
        path.iter()
            .try_fold(self, |value, key| value.as_object_mut()?.get_mut(key))
    }

    /// Returns the string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the integer, if this is one; a float without fraction counts.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Float(value) => number::whole(*value),
            _ => None,
        }
    }

    /// Returns the number as a float, if this is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the elements, mutable, if this is an array.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the members, if this is an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the members, mutable, if this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Returns whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Turns this into an object unless it is one, and returns its members.
    pub fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Value::Object(_)) {
            *self = Value::object();
        }
        match self {
            Value::Object(map) => map,
            _ => unreachable!("made an object above"),
        }
    }

    /// Takes the value out and leaves `null`.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// Returns the JSON name of the type: `null`, `boolean`, `integer`, `number`, `string`,
    /// `array`, `object`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "integer",
            Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// Appends the canonical, compact JSON text of this value.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        print::write(self, out);
    }

    /// Returns the canonical, compact JSON text of this value.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        self.write_json(&mut out);
        out
    }

    /// Returns the JSON text indented by two spaces, with a final newline, as for `?pretty=true`.
    pub fn to_json_pretty(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        print::write_pretty(self, 0, &mut out);
        out.push(b'\n');
        out
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_json()))
    }
}

/// Numbers are equal when they are the same number; everything else is compared by structure.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => {
                number::whole(*b) == Some(*a)
            }
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}
impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text.into())
    }
}
impl From<Str> for Value {
    fn from(text: Str) -> Value {
        Value::String(text)
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}
impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}
impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int(value.into())
    }
}
impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Int(value.into())
    }
}
impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}
impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::Array(items)
    }
}
impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Object(map)
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

/// Builds a [`Value`] from JSON syntax: `value!({"kind": "Foo", "items": [1, (some_expression)]})`.
///
/// Anything that is not a literal, array or object must be in parentheses or a single token.
#[macro_export]
macro_rules! value {
    (null) => { $crate::Value::Null };
    ([ $($item:tt),* $(,)? ]) => {
        $crate::Value::Array(vec![ $( $crate::value!($item) ),* ])
    };
    ({ $($key:tt : $item:tt),* $(,)? }) => {{
        #[allow(unused_mut)]
        let mut map = $crate::Map::new();
        $( map.insert($key, $crate::value!($item)); )*
        $crate::Value::Object(map)
    }};
    ($other:expr) => { $crate::Value::from($other) };
}

#[cfg(test)]
mod tests;
