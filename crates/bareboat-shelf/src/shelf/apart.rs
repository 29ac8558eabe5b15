//! Shelves of several servers count apart, so that no version means something on two of them.
//!
//! The servers have a common counter, such as that of their store. A server that begins to sync goes on at a number made from
//! it, far above all numbers of the others. Their numbers are a gap here, and a watch or a list that continues from one of them is
//! expired.

use super::{Shelf, ShelfError};

/// How many versions a shelf may give between two numbers of the common counter.
const SPAN: i64 = 1 << 20;

impl Shelf {
    /// Goes on counting above all versions that other shelves gave before. `term` is a number that only this shelf gets, greater than
    /// the terms before it; the common counter grows by one at least as often as a shelf gives 2^20 versions.
    pub fn count_apart(&self, term: u64) -> Result<(), ShelfError> {
        let first = i64::try_from(term).ok().and_then(|it| it.checked_mul(SPAN));
        // The last numbers are left for a block that is reserved.
        let first = first.filter(|first| *first < i64::MAX - 2 * SPAN);
        let first = first.ok_or(ShelfError::Term(term))?;
        if self.engine.jump(first)? {
            self.publish(None, first, first);
        }
        Ok(())
    }

    /// Returns whether a version may be of this shelf. Others are of the shelf of another server, or were lost in a power cut.
    pub fn gave(&self, rev: i64) -> bool {
        (rev <= self.visible() || self.is_known(rev)) && self.engine.is_own(rev)
    }
}
