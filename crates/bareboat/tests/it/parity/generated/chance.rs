//! Chance that is the same every time: numbers from a seed.

/// A source of numbers.
pub(super) struct Chance(u64);

impl Chance {
    /// Begins where a seed says.
    pub(super) fn new(seed: u64) -> Chance {
        let mut chance = Chance(seed ^ 0x9e37_79b9_7f4a_7c15);
        // Small seeds are much alike at first.
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

    /// A number below a limit, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Whether something happens that does so many times in a hundred.
    pub(super) fn percent(&mut self, odds: usize) -> bool {
        self.below(100) < odds
    }

    /// One of some things, of which there is at least one.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of some words.
    pub(super) fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }
}
