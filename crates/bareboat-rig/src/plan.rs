//! How long and how often tests run: little in `make test`, as much as was asked for in `make torture`.

use std::time::Duration;

/// Returns the length of each kind of fault that `make torture` was asked for; `None` in `make test`.
pub fn torture() -> Option<Duration> {
    let seconds = std::env::var("TORTURE_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().unwrap()))
}

/// Returns `few` in `make test`, `many` in `make torture`.
pub fn count(few: u64, many: u64) -> u64 {
    match torture() {
        Some(_) => many,
        None => few,
    }
}

/// Returns `loose` in `make test`, which also runs on busy machines, and `strict` in `make torture`.
pub fn bound(loose: Duration, strict: Duration) -> Duration {
    match torture() {
        Some(_) => strict,
        None => loose,
    }
}

/// Returns the wait of a list that a bound is for: the median in `make torture`, one of the quickest in `make test`, where other work may
/// delay most of them. Waits for the next poll are all long, so one of the quickest tells the two apart.
pub fn typical(waits: &mut [Duration]) -> Duration {
    waits.sort();
    let at = match torture() {
        Some(_) => waits.len() / 2,
        None => waits.len() / 10,
    };
    waits[at]
}

/// Measures a rate up to ten times until it is at most `bound`, because something else may be counted once. Returns the lowest.
pub async fn lowest_rate(bound: f64, mut measure: impl AsyncFnMut() -> f64) -> f64 {
    let mut lowest = f64::INFINITY;
    for _ in 0..10 {
        lowest = lowest.min(measure().await);
        if lowest <= bound {
            break;
        }
    }
    lowest
}

/// Returns how long faults are injected.
pub fn length(short: Duration) -> Duration {
    torture().unwrap_or(short)
}

/// Returns the seed of the faults: that of `make torture`, or a constant.
pub fn seed() -> u64 {
    match std::env::var("TORTURE_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => 20_261_117,
    }
}

/// A sequence of numbers that follows from its seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Starts a sequence. `salt` makes it differ from others of the same seed.
    pub fn new(seed: u64, salt: u64) -> Self {
        let mixed =
            (seed ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self(mixed | 1)
    }

    /// Returns a number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}
