//! A set of row ids: bits in blocks, so that a million neighbouring ids take 128 KiB.

use std::collections::BTreeMap;

const BLOCK: i64 = 65_536;
const WORDS: usize = BLOCK as usize / 64;

/// Rows: those that a list of a member contained, or that a client was shown.
#[derive(Clone, Debug, Default)]
pub struct Seen(BTreeMap<i64, Box<[u64]>>);

impl Seen {
    /// Adds a row.
    pub fn insert(&mut self, id: i64) {
        let block = self.0.entry(id.div_euclid(BLOCK));
        let words = block.or_insert_with(|| vec![0; WORDS].into_boxed_slice());
        let bit = id.rem_euclid(BLOCK) as usize;
        words[bit / 64] |= 1 << (bit % 64);
    }

    /// Takes a row out again.
    pub fn remove(&mut self, id: i64) {
        let bit = id.rem_euclid(BLOCK) as usize;
        if let Some(words) = self.0.get_mut(&id.div_euclid(BLOCK)) {
            words[bit / 64] &= !(1 << (bit % 64));
        }
    }

    /// Returns whether a row was added.
    pub fn contains(&self, id: i64) -> bool {
        let bit = id.rem_euclid(BLOCK) as usize;
        let block = self.0.get(&id.div_euclid(BLOCK));
        block.is_some_and(|words| words[bit / 64] & (1 << (bit % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn only_what_was_added_is_contained() {
        let mut seen = Seen::default();
        for id in [0, 1, 63, 64, 65_535, 65_536, 1 << 40] {
            seen.insert(id);
        }
        for id in [0, 1, 63, 64, 65_535, 65_536, 1 << 40] {
            assert!(seen.contains(id));
        }
        for id in [2, 62, 65, 65_537, (1 << 40) + 1] {
            assert!(!seen.contains(id));
            seen.remove(id);
        }
        seen.remove(64);
        assert!(!seen.contains(64) && seen.contains(63) && seen.contains(65_535));
    }
}
