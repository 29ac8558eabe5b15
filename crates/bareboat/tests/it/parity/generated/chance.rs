//! A deterministic random number generator.

/// Pseudo-random numbers from a seed.
pub(super) struct Chance(u64);

impl Chance {
    /// Starts with a seed.
    pub(super) fn new(seed: u64) -> Chance {
        let mut chance = Chance(seed ^ 0x9e37_79b9_7f4a_7c15);
        // The first numbers of small seeds are similar.
        chance.next();
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a limit, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Returns true in `odds` of a hundred cases.
    pub(super) fn percent(&mut self, odds: usize) -> bool {
        self.below(100) < odds
    }

    /// Returns an element of a list that is not empty.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Returns one of some words.
    pub(super) fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}
