//! How many seats a request takes, by the number of objects it reads.

/// The number of objects that a list reads for each seat it takes.
const OBJECTS_PER_SEAT: usize = 100;
/// No list takes more seats than this.
const MOST_SEATS: u32 = 10;
/// No list takes more than this part of its level, in percent.
const MOST_PERCENT: u32 = 15;
/// The number of watchers that a write wakes for each seat it takes.
const WATCHERS_PER_SEAT: u64 = 10;
/// The time to wake as many watchers as one seat stands for, in nanoseconds.
const WAKING: u64 = 5_000_000;

/// Returns how many seats a list of `objects` objects takes in a level with so many seats.
pub fn list(objects: usize, nominal: u32) -> u32 {
    let most = (nominal * MOST_PERCENT / 100).clamp(1, MOST_SEATS);
    let seats = objects.div_ceil(OBJECTS_PER_SEAT);
    u32::try_from(seats).unwrap_or(u32::MAX).clamp(1, most)
}

/// Returns the work of waking so many watchers, in seat-nanoseconds. A few watchers cost nothing.
pub fn waking(watchers: usize) -> u64 {
    let seats = watchers as u64 / WATCHERS_PER_SEAT;
    seats.min(u64::from(MOST_SEATS)) * WAKING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_cost_by_the_objects_they_look_at() {
        for (objects, nominal, seats) in [
            (0, 100, 1),
            (100, 100, 1),
            (101, 100, 2),
            (950, 100, 10),
            (1_000_000, 100, 10),
            (1_000_000, 20, 3),
            (1_000_000, 1, 1),
        ] {
            assert_eq!(list(objects, nominal), seats, "{objects} of {nominal}");
        }
    }

    #[test]
    fn few_watchers_cost_nothing_and_many_are_bounded() {
        assert_eq!(waking(9), 0);
        assert_eq!(waking(25), 2 * WAKING);
        assert_eq!(waking(1_000_000), 10 * WAKING);
    }
}
