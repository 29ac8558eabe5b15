//! Changes many members of a map at once.
//!
//! Maps are sorted vectors: one insertion or removal moves all later members, so a large patch on a
//! large object would take quadratic time if it changed them one by one.

use bareboat_api::{Map, Str, Value};

/// Up to this many members are changed one by one, which is cheaper than a pass over the map.
pub(crate) const FEW: usize = 4;

/// Inserts members that are not present yet.
pub(crate) fn insert_all(map: &mut Map, fresh: Vec<(Str, Value)>) {
    if fresh.len() <= FEW {
        for (key, value) in fresh {
            map.insert(key, value);
        }
        return;
    }
    // Two sorted runs, which the sort detects.
    let members = std::mem::take(map).into_iter().chain(fresh);
    *map = Map::from_unsorted(members.collect());
}

/// Removes members, given by their sorted names.
pub(crate) fn remove_all(map: &mut Map, names: &[Str]) {
    if names.len() <= FEW {
        for name in names {
            map.remove(name);
        }
        return;
    }
    map.retain(|key, _| {
        names
            .binary_search_by(|name| name.as_str().cmp(key))
            .is_err()
    });
}
