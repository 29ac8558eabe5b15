//! Maps: borrowed JSON objects, or entries created during evaluation.

use std::collections::HashMap;
use std::sync::Arc;

use bareboat_api::{Map, Str};

use super::Val;
use crate::decl::DeclType;
use crate::error::EvalError;

/// A CEL map: a borrowed JSON object, or entries created during evaluation.
#[derive(Clone)]
pub enum MapVal<'a> {
    /// A JSON object.
    Json {
        /// The members of the object.
        map: &'a Map,
        /// The type of the values, if declared.
        values: Option<&'a DeclType>,
    },
    /// Entries created during evaluation.
    Values(Arc<Entries<'a>>),
}

bareboat_api::opaque_debug!(MapVal<'_>);

/// The form in which keys are compared: numbers by value, regardless of their type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    Text(Str),
}

impl Key {
    /// Converts a value to the form in which map keys are compared; `None` if no map key can equal
    /// it.
    pub(crate) fn of(value: &Val<'_>) -> Option<Key> {
        Some(match value {
            Val::Bool(value) => Key::Bool(*value),
            Val::Int(value) => Key::Number((*value).into()),
            Val::Uint(value) => Key::Number((*value).into()),
            Val::Double(value) if value.fract() == 0.0 && value.abs() < 1e20 => {
                Key::Number(*value as i128)
            }
            Val::String(text) => Key::Text(Str::new(text.as_str())),
            _ => return None,
        })
    }
}

/// Entries in the order of insertion, found by key.
#[derive(Clone, Default)]
pub struct Entries<'a> {
    list: Vec<(Val<'a>, Val<'a>)>,
    /// Used only when there are too many entries for a linear search.
    index: HashMap<Key, u32>,
}

bareboat_api::opaque_debug!(Entries<'_>);

const SCAN: usize = 8;

impl<'a> Entries<'a> {
    /// Adds an entry; returns whether the key was new.
    pub(crate) fn insert(&mut self, key: Val<'a>, value: Val<'a>) -> Result<bool, EvalError> {
        if matches!(key, Val::Double(_)) {
            return Err(EvalError::new("unsupported key type: double"));
        }
        let Some(id) = Key::of(&key) else {
            return Err(EvalError::new(format!(
                "unsupported key type: {}",
                key.type_of().name()
            )));
        };
        if self.find(&id).is_some() {
            return Ok(false);
        }
        if self.list.len() == SCAN {
            self.index = (0..)
                .zip(&self.list)
                .filter_map(|(at, (key, _))| Some((Key::of(key)?, at)))
                .collect();
        }
        if self.list.len() >= SCAN {
            self.index.insert(id, self.list.len() as u32);
        }
        self.list.push((key, value));
        Ok(true)
    }

    /// Adds an entry, or replaces the value of an existing one.
    pub(crate) fn set(&mut self, key: Val<'a>, value: Val<'a>) -> Result<(), EvalError> {
        if let Some(id) = Key::of(&key) {
            let known = self
                .list
                .iter_mut()
                .find(|(k, _)| Key::of(k).as_ref() == Some(&id));
            if let Some((_, old)) = known {
                *old = value;
                return Ok(());
            }
        }
        self.insert(key, value).map(|_| ())
    }

    /// Returns the approximate memory of the entries, without the content of the values.
    pub(crate) fn bytes(&self) -> usize {
        let keys = self.index.keys().map(|key| match key {
            Key::Text(text) => text.len(),
            _ => 0,
        });
        let index = 2 * size_of::<Key>() * self.index.len() + keys.sum::<usize>();
        2 * size_of::<Val<'_>>() * self.list.len() + index
    }

    /// Returns the approximate memory of one more entry.
    pub(crate) fn bytes_of(key: &Val<'_>) -> usize {
        2 * size_of::<Val<'_>>() + 2 * size_of::<Key>() + key.as_str().map_or(0, str::len)
    }

    fn find(&self, key: &Key) -> Option<&Val<'a>> {
        if self.list.len() <= SCAN {
            let found = self
                .list
                .iter()
                .find(|(k, _)| Key::of(k).as_ref() == Some(key));
            return found.map(|(_, value)| value);
        }
        let at = *self.index.get(key)?;
        Some(&self.list[at as usize].1)
    }

    /// Returns keys and values in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&Val<'a>, &Val<'a>)> {
        self.list.iter().map(|(key, value)| (key, value))
    }
}

impl<'a> MapVal<'a> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match self {
            MapVal::Json { map, .. } => map.len(),
            MapVal::Values(entries) => entries.list.len(),
        }
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &Val<'_>) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            MapVal::Json { .. } => self.get_str(key.as_str()?),
            MapVal::Values(entries) => entries.find(&Key::of(key)?).cloned().map(Ok),
        }
    }

    /// Returns the value of a string key.
    pub fn get_str(&self, key: &str) -> Option<Result<Val<'a>, EvalError>> {
        match self {
            MapVal::Json { map, values } => {
                let value = map.get(key)?;
                Some(match values {
                    Some(decl) => Val::of(value, decl),
                    None => Ok(Val::of_json(value)),
                })
            }
            MapVal::Values(entries) => {
                if entries.list.len() <= SCAN {
                    let found = entries.list.iter().find(|(k, _)| k.as_str() == Some(key));
                    return found.map(|(_, value)| Ok(value.clone()));
                }
                entries.find(&Key::Text(Str::new(key))).cloned().map(Ok)
            }
        }
    }

    /// Returns the keys in the order of iteration.
    pub(crate) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            MapVal::Json { map, .. } => map.iter().map(|(key, _)| Val::str(key)).collect(),
            MapVal::Values(entries) => entries.list.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}
