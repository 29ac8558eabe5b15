//! Timestamps and durations as text: RFC 3339, Go's durations, and human-readable ages.
//!
//! There is no clock here; callers pass the time in.

mod duration;

pub use duration::{human_duration, parse_duration, print_duration};
use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970 began, UTC.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

/// Seconds from year 1 to 1970, negated: the second of Go's zero time.
const ZERO_SECONDS: i64 = -62_135_596_800;
/// The last second of year 9999.
const LAST_SECOND: i64 = 253_402_300_799;
const DAY: i64 = 86_400;

impl Timestamp {
    /// The first moment of year 1, which means "not set" in Go.
    pub const ZERO: Timestamp = Timestamp {
        seconds: ZERO_SECONDS,
        nanos: 0,
    };

    /// Parses RFC 3339 text such as `2020-01-02T03:04:05Z` or `2020-01-02T03:04:05.678+01:00`.
    pub fn parse(text: &str) -> Result<Timestamp, TimeError> {
        parse(text).ok_or_else(|| TimeError(format!("cannot parse {text:?} as an RFC 3339 time")))
    }

    /// Returns the time that is some seconds later, or earlier; `None` outside of the years 1 to 9999, which texts can have.
    pub fn plus_seconds(self, seconds: i64) -> Option<Timestamp> {
        let seconds = self.seconds.checked_add(seconds)?;
        (ZERO_SECONDS..=LAST_SECOND)
            .contains(&seconds)
            .then_some(Timestamp { seconds, ..self })
    }

    /// Prints the time with whole seconds in UTC, as in `Time` fields.
    pub fn print_seconds(self) -> String {
        format!("{}Z", self.date_and_time())
    }

    /// Prints the time with six digits after the seconds in UTC, as in `MicroTime` fields.
    pub fn print_micros(self) -> String {
        format!("{}.{:06}Z", self.date_and_time(), self.nanos / 1000)
    }

    fn date_and_time(self) -> String {
        let (year, month, day) = date_of(self.seconds.div_euclid(DAY));
        let second = self.seconds.rem_euclid(DAY);
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Timestamp {
        let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => (since.as_secs() as i64, since.subsec_nanos()),
            // Before 1970: nanoseconds count forward, from the second before.
            Err(before) => match (
                before.duration().as_secs() as i64,
                before.duration().subsec_nanos(),
            ) {
                (seconds, 0) => (-seconds, 0),
                (seconds, nanos) => (-seconds - 1, 1_000_000_000 - nanos),
            },
        };
        Timestamp { seconds, nanos }
    }
}

/// The error of a text that is not a time or duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TimeError(String);

fn parse(text: &str) -> Option<Timestamp> {
    let mut rest = text.as_bytes();
    let year = number(&mut rest, 4)?;
    mark(&mut rest, b'-')?;
    let month = number(&mut rest, 2)?;
    mark(&mut rest, b'-')?;
    let day = number(&mut rest, 2)?;
    mark(&mut rest, b'T')?;
    let hour = number(&mut rest, 2)?;
    mark(&mut rest, b':')?;
    let minute = number(&mut rest, 2)?;
    mark(&mut rest, b':')?;
    let second = number(&mut rest, 2)?;
    let nanos = fraction(&mut rest)?;
    let offset = offset(&mut rest)?;
    let plausible = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !rest.is_empty() || !plausible {
        return None;
    }
    let of_day = hour * 3600 + minute * 60 + second;
    Some(Timestamp {
        seconds: days_to(year, month, day) * DAY + of_day - offset,
        nanos,
    })
}

fn number(rest: &mut &[u8], digits: usize) -> Option<i64> {
    let (text, after) = rest.split_at_checked(digits)?;
    *rest = after;
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i64::from(byte - b'0'))
    })
}

fn mark(rest: &mut &[u8], wanted: u8) -> Option<()> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    (*first == wanted).then_some(())
}

/// Parses the digits after the seconds; those beyond nanoseconds are dropped.
fn fraction(rest: &mut &[u8]) -> Option<u32> {
    if !matches!(rest.first(), Some(b'.' | b',')) {
        return Some(0);
    }
    *rest = &rest[1..];
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let (digits, after) = rest.split_at(count);
    *rest = after;
    let padded = digits
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(9);
    Some(padded.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
}

fn offset(rest: &mut &[u8]) -> Option<i64> {
    let (sign, after) = rest.split_first()?;
    *rest = after;
    let sign = match sign {
        b'Z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(rest, 2)?;
    mark(rest, b':')?;
    let minutes = number(rest, 2)?;
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a date. Years are counted from March, so that the leap day
/// is the last.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns year, month and day of a number of days after 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests;
