//! Durations and points in time: Go's spelling, RFC 3339, and the ranges both must keep.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The first and the last second a timestamp may have: the years 1 to 9999.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

/// A timestamp within the years 1 to 9999.
pub(crate) fn in_range(timestamp: Timestamp) -> Option<Timestamp> {
    let second = timestamp.as_second();
    // jiff truncates towards zero; only the very first instants could tell the difference.
    let early = second == FIRST_SECOND && timestamp.subsec_nanosecond() < 0;
    ((FIRST_SECOND..=LAST_SECOND).contains(&second) && !early).then_some(timestamp)
}

/// The timestamp of a Unix time in seconds.
pub(crate) fn from_unix(seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(seconds).ok().and_then(in_range)
}

/// A timestamp moved by nanoseconds.
pub(crate) fn moved(timestamp: Timestamp, nanoseconds: i64, back: bool) -> Option<Timestamp> {
    let by = i128::from(nanoseconds) * if back { -1 } else { 1 };
    Timestamp::from_nanosecond(timestamp.as_nanosecond() + by)
        .ok()
        .and_then(in_range)
}

/// RFC 3339, with Go's strictness about its form.
pub(crate) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let form = bytes.len() >= 20
        && digits(0..4)
        && bytes[4] == b'-'
        && digits(5..7)
        && bytes[7] == b'-'
        && digits(8..10)
        && matches!(bytes[10], b'T' | b't')
        && digits(11..13)
        && bytes[13] == b':'
        && digits(14..16)
        && bytes[16] == b':'
        && digits(17..19)
        && (bytes[bytes.len() - 1].eq_ignore_ascii_case(&b'z')
            || matches!(bytes[bytes.len() - 6], b'+' | b'-'));
    // A sixtieth second is jiff's courtesy to leap seconds; Go has none.
    if !form || &bytes[17..19] == b"60" {
        return None;
    }
    text.parse::<Timestamp>().ok().and_then(in_range)
}

/// A date, as the first instant of its day.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    if text.len() != 10 {
        return None;
    }
    let date: Date = text.parse().ok()?;
    let zoned = date.to_zoned(TimeZone::UTC).ok()?;
    in_range(zoned.timestamp())
}

/// RFC 3339 in UTC with as many digits of the fraction as there are.
pub(crate) fn print_timestamp(timestamp: Timestamp) -> String {
    // jiff prints exactly this form for a timestamp.
    timestamp.to_string()
}

/// A time zone by IANA name, `UTC`, or an offset such as `-08:00`.
pub(crate) fn zone(name: &str) -> Option<TimeZone> {
    if let Some((hours, minutes)) = name.split_once(':') {
        let negative = hours.starts_with('-');
        let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let seconds = (hours * 60 + minutes) * 60 * if negative { -1 } else { 1 };
        let offset = jiff::tz::Offset::from_seconds(seconds).ok()?;
        return Some(TimeZone::fixed(offset));
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

/// Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `0`.
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

/// A decimal number times a unit, fractions below a nanosecond dropped.
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
        // Precise enough: no unit has more than fourteen digits.
        total += weight * i128::from(digit - b'0') / 10;
        weight /= 10;
    }
    Some(total)
}

/// The `duration` format of OpenAPI: Go's spelling, or numbers with words such as `2 days`.
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

/// How CEL prints durations: seconds with as many digits as there are, `90s`, `1.5s`.
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
