//! A hasher for keys that are hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashes, which are not hashed again. The keys must not be numbers that clients choose.
pub type HashedMap<V> = HashMap<u64, V, BuildHasherDefault<Hashed>>;

/// Passes on keys that are hashes already.
#[derive(Debug, Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_passed_on_and_other_keys_are_told_apart() {
        let mut hasher = Hashed::default();
        hasher.write_u64(0xdead_beef);
        assert_eq!(hasher.finish(), 0xdead_beef);
        let of = |bytes: &[u8]| {
            let mut hasher = Hashed::default();
            hasher.write(bytes);
            hasher.finish()
        };
        assert_ne!(of(b"ab"), of(b"ba"));
    }
}
