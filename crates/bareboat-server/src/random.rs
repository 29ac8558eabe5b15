//! Identifiers of requests and objects, from random bytes of the system.
//!
//! The bytes are read in blocks, so that most identifiers need no call to the system. Each byte is used once.

use ring::rand::{SecureRandom as _, SystemRandom};
use std::cell::RefCell;
use uuid::Uuid;

const BLOCK: usize = 512;
const ID: usize = 16;

struct Block {
    bytes: [u8; BLOCK],
    used: usize,
}

thread_local! {
    static UNUSED: RefCell<Block> = const { RefCell::new(Block { bytes: [0; BLOCK], used: BLOCK }) };
}

/// Returns sixteen random bytes.
pub(crate) fn bytes() -> [u8; ID] {
    UNUSED.with_borrow_mut(|block| {
        if block.used + ID > BLOCK {
            (SystemRandom::new().fill(&mut block.bytes)).expect("the system has random bytes");
            block.used = 0;
        }
        let mut taken = [0; ID];
        let from = &mut block.bytes[block.used..block.used + ID];
        // What was handed out does not stay in memory.
        taken.swap_with_slice(from);
        block.used += ID;
        taken
    })
}

/// Returns a random UUID, of version 4.
pub(crate) fn uuid() -> Uuid {
    uuid::Builder::from_random_bytes(bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn identifiers_differ_across_blocks_and_threads() {
        let some = || (0..200).map(|_| uuid()).collect::<Vec<_>>();
        let other = std::thread::spawn(some).join().expect("no panic");
        let all: BTreeSet<Uuid> = some().into_iter().chain(other).collect();
        assert_eq!(all.len(), 400);
        assert!(all.iter().all(|id| id.get_version_num() == 4));
    }

    #[test]
    fn used_bytes_are_forgotten() {
        bytes();
        UNUSED
            .with_borrow(|block| assert!(block.bytes[..block.used].iter().all(|byte| *byte == 0)));
    }
}
