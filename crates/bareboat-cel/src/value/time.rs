//! Durations and timestamps: Go's syntax, RFC 3339, and their ranges.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A timestamp between the years 1 and 9999, to the nanosecond.
///
/// Not `jiff::Timestamp`, which ends a day before the year 9999 does.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    seconds: i64,
    nanos: u32,
    /// The offset from UTC in seconds with which it was written and will be printed. It has no
    /// other effect.
    offset: i32,
}

impl PartialEq for Moment {
    fn eq(&self, other: &Moment) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Moment {}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Moment) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Moment) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// The first and the last second a timestamp may have.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;
const NANOS: i128 = 1_000_000_000;
const DAY: i64 = 86_400;

impl Moment {
    /// Returns the timestamp of seconds and nanoseconds since 1970, if it is within the years 1 to
    /// 9999.
    pub fn new(seconds: i64, nanos: u32) -> Option<Moment> {
        let valid = (FIRST_SECOND..=LAST_SECOND).contains(&seconds) && i128::from(nanos) < NANOS;
        valid.then_some(Moment {
            seconds,
            nanos,
            offset: 0,
        })
    }

    /// Returns the seconds since 1970, rounded down.
    pub fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// Returns the nanoseconds of the second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// Returns the nanoseconds from another moment to this one.
    pub(crate) fn since(self, other: Moment) -> Option<i64> {
        i64::try_from(self.total() - other.total()).ok()
    }

    /// Returns the timestamp that many nanoseconds later.
    pub(crate) fn plus(self, nanoseconds: i128) -> Option<Moment> {
        let total = self.total() + nanoseconds;
        let seconds = i64::try_from(total.div_euclid(NANOS)).ok()?;
        let moment = Moment::new(seconds, total.rem_euclid(NANOS) as u32)?;
        Some(Moment {
            offset: self.offset,
            ..moment
        })
    }

    /// Returns the date and time of a time zone at that moment.
    pub(crate) fn in_zone(self, zone: &TimeZone) -> Civil {
        let within = self
            .seconds
            .clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let offset = match Timestamp::from_second(within) {
            Ok(timestamp) => zone.to_offset(timestamp).seconds(),
            Err(_) => 0,
        };
        Civil::of(self.seconds + i64::from(offset), self.nanos)
    }
}

/// A date and time of day.
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// The month, from 1.
    pub(crate) month: i64,
    /// The day of the month, from 1.
    pub(crate) day: i64,
    days: i64,
    pub(crate) second_of_day: i64,
    pub(crate) nanos: u32,
}

impl Civil {
    fn of(seconds: i64, nanos: u32) -> Civil {
        let days = seconds.div_euclid(DAY);
        // The calendar repeats every 400 years; years begin in March, so that leap days come last.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = (shifted_month + 2) % 12 + 1;
        Civil {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            days,
            second_of_day: seconds.rem_euclid(DAY),
            nanos,
        }
    }

    /// Returns the days since the first of January.
    pub(crate) fn day_of_year(&self) -> i64 {
        self.days - days_of(self.year, 1, 1)
    }

    /// Returns the days since Sunday.
    pub(crate) fn weekday(&self) -> i64 {
        (self.days + 4).rem_euclid(7)
    }
}

/// Returns the days from 1970 to a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn is_date(year: i64, month: i64, day: i64) -> bool {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// Returns the timestamp of a Unix time in seconds.
pub(crate) fn from_unix(seconds: i64) -> Option<Moment> {
    Moment::new(seconds, 0)
}

/// Adds nanoseconds to a timestamp, or subtracts them if `back`.
pub(crate) fn moved(moment: Moment, nanoseconds: i64, back: bool) -> Option<Moment> {
    moment.plus(i128::from(nanoseconds) * if back { -1 } else { 1 })
}

fn digits(text: &str, range: std::ops::Range<usize>) -> Option<i64> {
    let part = text.get(range)?;
    let plain = part.bytes().all(|byte| byte.is_ascii_digit());
    if plain { part.parse().ok() } else { None }
}

/// Parses RFC 3339 as strictly as Go.
pub(crate) fn parse_timestamp(text: &str) -> Option<Moment> {
    // Go accepts one digit for the hour, but not for other parts.
    if text.as_bytes().get(12) == Some(&b':') && text.is_char_boundary(11) {
        return parse_timestamp(&format!("{}0{}", &text[..11], &text[11..]));
    }
    let bytes = text.as_bytes();
    let date = parse_date(text.get(..10)?)?;
    let separated = *bytes.get(10)? == b'T' && *bytes.get(13)? == b':' && *bytes.get(16)? == b':';
    let (hour, minute, second) = (
        digits(text, 11..13)?,
        digits(text, 14..16)?,
        digits(text, 17..19)?,
    );
    if !separated || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut nanos = 0;
    if let Some(after) = rest.strip_prefix(['.', ',']) {
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        let mut weight = 100_000_000;
        for digit in after[..count].bytes() {
            nanos += u32::from(digit - b'0') * weight;
            weight /= 10;
        }
        rest = &after[count..];
    }
    let offset = match rest {
        "Z" => 0,
        _ => {
            let sign = match rest.as_bytes().first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = (digits(rest, 1..3)?, digits(rest, 4..6)?);
            if rest.len() != 6 || rest.as_bytes()[3] != b':' || hours > 24 || minutes > 60 {
                return None;
            }
            sign * (hours * 60 + minutes) * 60
        }
    };
    let seconds = date.seconds + (hour * 60 + minute) * 60 + second - offset;
    let moment = Moment::new(seconds, nanos)?;
    Some(Moment {
        offset: offset as i32,
        ..moment
    })
}

/// Parses a date as the first instant of its day.
pub(crate) fn parse_date(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (
        digits(text, 0..4)?,
        digits(text, 5..7)?,
        digits(text, 8..10)?,
    );
    if !is_date(year, month, day) {
        return None;
    }
    Moment::new(days_of(year, month, day) * DAY, 0)
}

/// Prints RFC 3339 with the original offset and as many digits of the fraction as necessary.
pub(crate) fn print_timestamp(moment: Moment) -> String {
    let civil = Civil::of(moment.seconds + i64::from(moment.offset), moment.nanos);
    let (minutes, second) = (civil.second_of_day / 60, civil.second_of_day % 60);
    let (hour, minute) = (minutes / 60, minutes % 60);
    let mut text = format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}",
        civil.year, civil.month, civil.day
    );
    if moment.nanos > 0 {
        let fraction = format!(".{:09}", moment.nanos);
        text.push_str(fraction.trim_end_matches('0'));
    }
    match moment.offset {
        0 => text.push('Z'),
        offset => {
            let sign = if offset < 0 { '-' } else { '+' };
            let minutes = offset.abs() / 60;
            text.push_str(&format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60));
        }
    }
    text
}

/// Returns a time zone by IANA name, `UTC`, or an offset such as `-08:00`.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let negative = hours.starts_with('-');
        let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let seconds = hours
            .checked_mul(60)?
            .checked_add(minutes)?
            .checked_mul(60)?;
        let seconds = if negative { -seconds } else { seconds };
        return Some(TimeZone::fixed(
            jiff::tz::Offset::from_seconds(seconds).ok()?,
        ));
    }
    match name {
        "UTC" | "" => Some(TimeZone::UTC),
        _ => TimeZone::get(name).ok(),
    }
}

const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration like Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `0`.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (number, tail) = split_number(rest)?;
        let unit_length = tail
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (_, unit) = UNITS
            .iter()
            .find(|(name, _)| *name == &tail[..unit_length])?;
        total += scaled(number, *unit)?;
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = &tail[unit_length..];
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit())?;
    let number = &text[..end];
    let valid = number.matches('.').count() <= 1 && number.bytes().any(|b| b.is_ascii_digit());
    valid.then_some((number, &text[end..]))
}

/// Multiplies a decimal number by a unit and drops fractions of a nanosecond.
fn scaled(number: &str, unit: i64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?.into()
    };
    let mut total = whole * i128::from(unit);
    let mut weight = i128::from(unit);
    for digit in fraction.bytes() {
        // This is precise enough: no unit has more than fourteen digits.
        total += weight * i128::from(digit - b'0') / 10;
        weight /= 10;
    }
    Some(total)
}

/// Parses OpenAPI's `duration` format: Go's syntax, or numbers with words such as `2 days`.
pub(crate) fn parse_format_duration(text: &str) -> Option<i64> {
    if let Some(duration) = parse_duration(text) {
        return Some(duration);
    }
    const WORDS: [(&[&str], i64); 8] = [
        (&["ns", "nano", "nanosecond"], 1),
        (&["us", "µs", "micro", "microsecond"], 1_000),
        (&["ms", "milli", "millisecond"], 1_000_000),
        (&["s", "sec", "second"], 1_000_000_000),
        (&["m", "min", "minute"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];
    let mut total: i64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = rest[..digits].parse().ok()?;
        let tail = rest[digits..].trim_start();
        let length = tail
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(tail.len());
        let word = tail[..length].to_lowercase();
        let singular = word.strip_suffix('s').unwrap_or(&word);
        let (_, unit) = WORDS
            .iter()
            .find(|(names, _)| names.contains(&word.as_str()) || names.contains(&singular))?;
        total = total.checked_add(number.checked_mul(*unit)?)?;
        rest = tail[length..].trim_start();
    }
    Some(total)
}

/// Prints a duration like CEL: seconds with as many digits as necessary, `90s`, `1.5s`.
pub(crate) fn print_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let magnitude = nanoseconds.unsigned_abs();
    let (seconds, fraction) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
    if fraction == 0 {
        return format!("{sign}{seconds}s");
    }
    let digits = format!("{fraction:09}");
    format!("{sign}{seconds}.{}s", digits.trim_end_matches('0'))
}
