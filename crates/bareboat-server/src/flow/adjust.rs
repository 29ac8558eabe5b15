//! Lends unused seats of levels to other levels. Runs only while requests wait.

use super::fair::Shared;
use bareboat_flow::limits::{Need, allocate, smooth};
use std::collections::HashMap;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often seats are distributed again.
const PERIOD: Duration = Duration::from_millis(100);
/// After so many periods without waiting requests, every level has its own seats again.
const CALM: u32 = 20;

/// Distributes seats by demand until no request waits.
pub(super) async fn run(shared: Weak<Shared>) {
    let mut smoothed: HashMap<String, f64> = HashMap::new();
    let mut calm = 0;
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        calm = match adjust(&shared, &mut smoothed) {
            true => 0,
            false => calm + 1,
        };
        if calm >= CALM {
            restore(&shared);
            shared.adjusting.store(false, Ordering::Release);
            // A request that arrived just before saw that this task was running.
            if !anybody_waits(&shared) || shared.adjusting.swap(true, Ordering::AcqRel) {
                return;
            }
            calm = 0;
        }
        drop(shared);
        tokio::time::sleep(PERIOD).await;
    }
}

/// Runs one round; returns whether any request waits.
fn adjust(shared: &Shared, smoothed: &mut HashMap<String, f64>) -> bool {
    let table = shared.table.load();
    let limited: Vec<_> = table
        .levels
        .iter()
        .filter(|level| !level.spec.exempt)
        .collect();
    let mut waits = false;
    let mut needs = Vec::with_capacity(limited.len());
    for slot in &limited {
        let (high, now, waiting) = slot.level.look(|queues| {
            let (high, now) = queues.take_demand();
            (high, now, queues.counts().1)
        });
        waits |= waiting > 0;
        let before = smoothed
            .get(slot.spec.name.as_str())
            .copied()
            .unwrap_or(0.0);
        let after = smooth(before, f64::midpoint(f64::from(high), f64::from(now)));
        smoothed.insert(slot.spec.name.to_string(), after);
        slot.demand.set(high, now, after);
        needs.push(Need {
            limits: slot.limits,
            high,
            smoothed: after,
        });
    }
    let (seats, fraction) = allocate(shared.total.load(Ordering::Relaxed), &needs);
    shared.fraction.store(fraction.to_bits(), Ordering::Relaxed);
    for ((slot, seats), need) in limited.iter().zip(seats).zip(&needs) {
        slot.demand.set_target(need.target());
        slot.level.set_limit(seats);
    }
    waits
}

fn restore(shared: &Shared) {
    let table = shared.table.load();
    for slot in table.levels.iter().filter(|slot| !slot.spec.exempt) {
        slot.level.set_limit(slot.limits.nominal);
    }
}

fn anybody_waits(shared: &Shared) -> bool {
    let table = shared.table.load();
    let mut levels = table.levels.iter();
    levels.any(|slot| slot.level.look(|queues| queues.counts().1 > 0))
}
