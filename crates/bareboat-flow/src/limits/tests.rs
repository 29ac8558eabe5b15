//! Seats are divided by shares, lent and borrowed.

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
