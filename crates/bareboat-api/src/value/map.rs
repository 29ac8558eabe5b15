//! The members of a JSON object: a vector sorted by key.

use super::{Str, Value};

/// How many members are looked through from the first to the last.
const SCANNED: usize = 16;

/// The members of a JSON object, sorted by the bytes of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Vec<(Str, Value)>);

impl Map {
    /// No members.
    pub const fn new() -> Map {
        Map(Vec::new())
    }

    /// No members, with room for some.
    pub fn with_capacity(members: usize) -> Map {
        Map(Vec::with_capacity(members))
    }

    /// Members in any order; of two with the same key the last one stays.
    pub fn from_unsorted(mut members: Vec<(Str, Value)>) -> Map {
        if !members.is_sorted_by(|a, b| a.0 < b.0) {
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

    /// Where a member is.
    fn position(&self, key: &str) -> Option<usize> {
        // Objects of the API mostly have a handful of members, and keys of different length need no comparing.
        if self.0.len() <= SCANNED {
            return self.0.iter().position(|(name, _)| name.as_str() == key);
        }
        self.bisect(key).ok()
    }

    fn bisect(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| name.as_str().cmp(key))
    }

    /// The member of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).map(|index| &self.0[index].1)
    }

    /// The member of that name, for changing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.position(key).map(|index| &mut self.0[index].1)
    }

    /// The string member of that name.
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Whether there is a member of that name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Sets a member and gives back what was there.
    pub fn insert(&mut self, key: impl AsRef<str> + Into<Str>, value: Value) -> Option<Value> {
        match self.bisect(key.as_ref()) {
            Ok(index) => Some(std::mem::replace(&mut self.0[index].1, value)),
            Err(index) => {
                self.0.insert(index, (key.into(), value));
                None
            }
        }
    }

    /// The member of that name, set to `default()` first if it is missing.
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

    /// The member of that name as an object, made one if it is anything else.
    pub fn object_mut(&mut self, key: &str) -> &mut Map {
        self.entry_or_insert_with(key, Value::object).make_object()
    }

    /// Removes a member and gives it back.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|index| self.0.remove(index).1)
    }

    /// Keeps the members the function approves of.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + DoubleEndedIterator {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Keys and values in order, the values for changing.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    /// The values in the order of their keys.
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
