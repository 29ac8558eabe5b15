//! The members of a JSON object: a vector sorted by key.

use super::{Str, Value};

/// Maps with at most this many members are searched linearly.
const SCANNED: usize = 16;

/// The members of a JSON object, sorted by the bytes of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(Str, Value)>);

impl Map {
    /// Returns an empty map.
    pub const fn new() -> Map {
        Map(Vec::new())
    }

    /// Returns an empty map with room for some members.
    pub fn with_capacity(members: usize) -> Map {
        Map(Vec::with_capacity(members))
    }

    /// Returns a map of members in any order; of two members with the same key the last one stays.
    pub fn from_unsorted(mut members: Vec<(Str, Value)>) -> Map {
        if members.len() > 1 && !members.is_sorted_by(|a, b| a.0 < b.0) {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            // dedup_by keeps the earlier of two; swapping first makes the later one win.
            members.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(later, earlier);
                }
                same
            });
        }
        Map(members)
    }

    /// Returns the position of a member.
    fn position(&self, key: &str) -> Option<usize> {
        // API objects mostly have few members, and keys of different length need no comparison.
        if self.0.len() <= SCANNED {
            return self.0.iter().position(|(name, _)| name.as_str() == key);
        }
        self.bisect(key).ok()
    }

    fn bisect(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| name.as_str().cmp(key))
    }

    /// Returns the member with that key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|index| &self.0[index].1)
    }

    /// Returns the member with that key, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|index| &mut self.0[index].1)
    }

    /// Returns the string member with that key.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns whether there is a member with that key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets a member and returns its previous value.
    pub fn insert(&mut self, key: impl AsRef<str> + Into<Str>, value: Value) -> Option<Value> {
        match self.bisect(key.as_ref()) {
            Ok(index) => Some(std::mem::replace(&mut self.0[index].1, value)),
            Err(index) => {
                self.0.insert(index, (key.into(), value));
                None
            }
        }
    }

    /// Returns the member with that key, and sets it to `default()` first if it is missing.
    pub fn entry_or_insert_with(
        &mut self,
        key: &str,
        default: impl FnOnce() -> Value,
    ) -> &mut Value {
        let index = match self.bisect(key) {
            Ok(index) => index,
            Err(index) => {
                self.0.insert(index, (Str::new(key), default()));
                index
            }
        };
        &mut self.0[index].1
    }

    /// Returns the member with that key as an object; any other value is replaced by an empty
    /// object.
    pub fn object_mut(&mut self, key: &str) -> &mut Map {
        self.entry_or_insert_with(key, Value::object).make_object()
    }

    /// Removes a member and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|index| self.0.remove(index).1)
    }

    /// Keeps the members for which the function returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns keys and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns keys and mutable values in order.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// Returns the values in the order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Into<Str>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Map {
        Map::from_unsorted(
            members
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}
