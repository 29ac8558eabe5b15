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
mod tests;
