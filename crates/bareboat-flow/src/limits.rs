//! How many seats each level has, and how levels lend seats they do not need.

use crate::LevelSpec;

/// The bounds of a level's seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The seats of the level by its share, without lending and borrowing.
    pub nominal: u32,
    /// The seats left when the level lends as many as it may.
    pub lower: u32,
    /// The seats when the level borrows as many as it may.
    pub upper: u32,
}

/// Divides the seats of a server among levels by their shares.
pub fn divide<'a>(total: u32, levels: impl IntoIterator<Item = &'a LevelSpec>) -> Vec<Limits> {
    let levels: Vec<&LevelSpec> = levels.into_iter().collect();
    let sum: u64 = levels.iter().map(|level| u64::from(level.shares)).sum();
    let percent = |of: u32, percent: u32| {
        let exact = u64::from(of) * u64::from(percent);
        u32::try_from((exact + 50) / 100).unwrap_or(u32::MAX)
    };
    levels
        .iter()
        .map(|level| {
            let seats = u64::from(total) * u64::from(level.shares);
            let nominal = u32::try_from(seats.div_ceil(sum.max(1))).unwrap_or(u32::MAX);
            let lent = percent(nominal, level.lendable_percent);
            let upper = match level.borrowing_percent {
                Some(most) => nominal.saturating_add(percent(nominal, most)),
                None => nominal.max(total),
            };
            Limits {
                nominal,
                lower: nominal - lent.min(nominal),
                upper,
            }
        })
        .collect()
}

/// The bounds and the recent demand of a level, from which its seats are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Need {
    /// The bounds of its seats.
    pub limits: Limits,
    /// The most seats that were wanted at once in the last period.
    pub high: u32,
    /// The seats wanted over a longer time.
    pub smoothed: f64,
}

impl Need {
    /// Returns the seats that the level keeps even if other levels need more.
    fn least(&self) -> f64 {
        f64::from(self.limits.lower.max(self.limits.nominal.min(self.high)))
    }

    /// Returns the seats that meet the demand of the level.
    pub fn target(&self) -> f64 {
        self.least().max(self.smoothed)
    }

    fn at(&self, fraction: f64) -> f64 {
        let wanted = self.least().max(fraction * self.target());
        wanted.min(f64::from(self.limits.upper.max(self.limits.lower)))
    }
}

/// Gives every level seats in proportion to what it needs, within its bounds. Also returns the proportion.
pub fn allocate(total: u32, needs: &[Need]) -> (Vec<u32>, f64) {
    let sum = |fraction: f64| needs.iter().map(|need| need.at(fraction)).sum::<f64>();
    let total = f64::from(total);
    let (mut low, mut high) = (0.0, 1.0);
    while sum(high) < total && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if sum(middle) <= total {
            low = middle;
        } else {
            high = middle;
        }
    }
    let seats = needs.iter().map(|need| need.at(low).round() as u32);
    (seats.collect(), low)
}

/// Returns the next value of the long-term demand of a level: it rises at once and falls slowly.
pub fn smooth(before: f64, now: f64) -> f64 {
    const KEPT: f64 = 0.9;
    now.max(KEPT * before + (1.0 - KEPT) * now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;
    use proptest::prelude::*;

    fn level(shares: u32, lendable_percent: u32, borrowing_percent: Option<u32>) -> LevelSpec {
        LevelSpec {
            shares,
            lendable_percent,
            borrowing_percent,
            ..LevelSpec::from_value(&bareboat_api::Value::Null)
        }
    }

    #[test]
    fn seats_are_divided_by_shares() {
        let levels: Vec<LevelSpec> = defaults::levels()
            .iter()
            .map(LevelSpec::from_value)
            .collect();
        let limits = divide(600, &levels);
        let of = |name: &str| {
            let position = levels.iter().position(|level| level.name == name);
            limits[position.expect("the level exists")]
        };
        assert_eq!(of("workload-low").nominal, 245);
        assert_eq!(of("workload-low").lower, 24);
        assert_eq!(of("workload-low").upper, 600);
        assert_eq!(of("catch-all").nominal, 13);
        assert_eq!(of("leader-election").lower, of("leader-election").nominal);
        assert_eq!(of("exempt").nominal, 0);
    }

    #[test]
    fn borrowing_is_limited_if_the_level_says_so() {
        let limits = divide(100, &[level(50, 0, Some(20)), level(50, 50, None)]);
        assert_eq!((limits[0].nominal, limits[0].upper), (50, 60));
        assert_eq!((limits[1].lower, limits[1].upper), (25, 100));
    }

    #[test]
    fn idle_seats_go_to_the_level_that_needs_them() {
        let limits = divide(100, &[level(50, 50, None), level(50, 50, None)]);
        let need = |limits: Limits, seats: u32| Need {
            limits,
            high: seats,
            smoothed: f64::from(seats),
        };
        let (seats, _) = allocate(100, &[need(limits[0], 200), need(limits[1], 0)]);
        assert_eq!(seats, [75, 25]);
        let (seats, _) = allocate(100, &[need(limits[0], 200), need(limits[1], 40)]);
        assert_eq!(seats, [60, 40]);
        let (seats, _) = allocate(100, &[need(limits[0], 200), need(limits[1], 200)]);
        assert_eq!(seats, [50, 50]);
    }

    proptest! {
        #[test]
        fn every_level_keeps_its_own_and_nobody_exceeds_a_bound(
            levels in proptest::collection::vec((0u32..100, 0u32..=100, proptest::option::of(0u32..200), 0u32..500), 1..8),
            total in 1u32..1000,
        ) {
            let specs: Vec<LevelSpec> = levels.iter().map(|(a, b, c, _)| level(*a, *b, *c)).collect();
            let limits = divide(total, &specs);
            let needs: Vec<Need> = limits.iter().zip(&levels).map(|(limits, (.., high))| Need {
                limits: *limits, high: *high, smoothed: f64::from(*high),
            }).collect();
            let (seats, _) = allocate(total, &needs);
            let sum: u32 = seats.iter().sum();
            let least: f64 = needs.iter().map(Need::least).sum();
            // Each nominal limit is rounded up, so all of them together may exceed the total a little.
            prop_assert!(f64::from(sum) <= f64::from(total).max(least) + levels.len() as f64);
            for (seats, need) in seats.iter().zip(&needs) {
                prop_assert!(*seats >= need.limits.lower && *seats <= need.limits.upper);
                prop_assert!(*seats >= need.limits.nominal.min(need.high));
            }
        }
    }
}
