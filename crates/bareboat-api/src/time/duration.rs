//! Durations: Go's text form, and the short form for people.

use super::TimeError;
use crate::field::go_quote;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a Go duration such as `1h30m` or `-1.5s` into nanoseconds.
pub fn parse_duration(text: &str) -> Result<i64, TimeError> {
    let quoted = || go_quote(text);
    let invalid = || TimeError(format!("time: invalid duration {}", quoted()));
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let end = after
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(TimeError(format!(
                "time: missing unit in duration {}",
                quoted()
            )));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(TimeError(format!(
                "time: unknown unit {} in duration {}",
                go_quote(unit),
                quoted()
            )));
        };
        // Twenty digits do not fit; leading zeros do not count.
        let digits = whole.trim_start_matches('0');
        if digits.len() > 20 {
            return Err(invalid());
        }
        let whole = digits
            .bytes()
            .fold(0, |n, digit| n * 10 + i128::from(digit - b'0'));
        let mut nanos = whole * scale;
        let mut place = *scale;
        for digit in fraction.bytes() {
            place /= 10;
            nanos += place * i128::from(digit - b'0');
        }
        total += nanos;
        if total > i128::from(i64::MAX) + i128::from(negative) {
            return Err(invalid());
        }
        rest = after;
    }
    let signed = if negative { -total } else { total };
    i64::try_from(signed).map_err(|_| invalid())
}

/// Prints nanoseconds like Go, such as `1h0m0s` or `1.5ms`.
pub fn print_duration(nanos: i64) -> String {
    let magnitude = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let text = match magnitude {
        0 => return "0s".to_owned(),
        1..1_000 => format!("{magnitude}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(magnitude, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(magnitude, 1_000_000)),
        _ => {
            const SECOND: u64 = 1_000_000_000;
            let seconds = decimal(magnitude % (60 * SECOND), SECOND);
            let minutes = magnitude / (60 * SECOND);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// Prints a number of units with as many decimals as necessary.
fn decimal(amount: u64, unit: u64) -> String {
    let (whole, part) = (amount / unit, amount % unit);
    if part == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{part:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// Prints an age in seconds in the short form of tables.
pub fn human_duration(seconds: i64) -> String {
    let with = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => with(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => with(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => with(days, 'd', hours % 24, 'h'),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => with(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}
