//! Times as the API writes them: RFC 3339 in UTC, with whole seconds or with microseconds.

use bareboat_api::Str;

/// The canonical text with whole seconds: `None` if the text is no time, `Some(None)` if it stays.
pub fn canonical_seconds(text: &str) -> Option<Option<Str>> {
    if is_plain(text, 0) {
        return Some(None);
    }
    let (seconds, _) = parse(text)?;
    Some(Some(print_seconds(seconds)?))
}

/// The canonical text with six digits after the second, which must be written too.
pub fn canonical_micros(text: &str) -> Option<Option<Str>> {
    if is_plain(text, 6) {
        return Some(None);
    }
    let fraction = text.get(19..)?.strip_prefix('.')?;
    if fraction.bytes().take_while(u8::is_ascii_digit).count() != 6 {
        return None;
    }
    let (seconds, nanos) = parse(text)?;
    let base = print_seconds(seconds)?;
    Some(Some(Str::new(format!(
        "{}.{:06}Z",
        base.trim_end_matches('Z'),
        nanos / 1000
    ))))
}

/// Seconds since 1970 and nanoseconds of an RFC 3339 time.
pub fn parse(text: &str) -> Option<(i64, i32)> {
    let bytes = text.as_bytes();
    let separators = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':';
    // The reader below takes more than RFC 3339 allows; the shape is checked first.
    let zone = text.ends_with('Z') || matches!(bytes.get(bytes.len().checked_sub(6)?), Some(b'+' | b'-'));
    if !separators || !zone || bytes[17] == b'6' {
        return None;
    }
    let parsed: jiff::Timestamp = text.parse().ok()?;
    Some((parsed.as_second(), parsed.subsec_nanosecond()))
}

/// Prints seconds since 1970.
pub fn print_seconds(seconds: i64) -> Option<Str> {
    let stamp = jiff::Timestamp::from_second(seconds).ok()?;
    Some(Str::new(stamp.to_string()))
}

/// Whether the text is exactly `YYYY-MM-DDTHH:MM:SS[.ffffff]Z` with a day that exists.
fn is_plain(text: &str, fraction: usize) -> bool {
    let bytes = text.as_bytes();
    let length = if fraction == 0 { 20 } else { 21 + fraction };
    if bytes.len() != length || bytes[length - 1] != b'Z' {
        return false;
    }
    let shape = bytes[..length - 1].iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        10 => *byte == b'T',
        13 | 16 => *byte == b':',
        19 => *byte == b'.',
        _ => byte.is_ascii_digit(),
    });
    if !shape {
        return false;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .fold(0u32, |sum, byte| sum * 10 + u32::from(byte - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day) && number(11, 13) < 24 && number(14, 16) < 60 && number(17, 19) < 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_utc() {
        let seconds = |text: &str| {
            canonical_seconds(text).map(|changed| changed.unwrap_or_else(|| text.into()))
        };
        assert_eq!(seconds("2024-02-29T23:59:59Z").as_deref(), Some("2024-02-29T23:59:59Z"));
        assert_eq!(seconds("2024-01-01T02:00:00.5+02:00").as_deref(), Some("2024-01-01T00:00:00Z"));
        for text in ["", "2023-02-29T00:00:00Z", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:60Z", "éééééééééééééééé"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        let micros = |text: &str| {
            canonical_micros(text).map(|changed| changed.unwrap_or_else(|| text.into()))
        };
        assert_eq!(micros("2024-01-01T00:00:00.000001Z").as_deref(), Some("2024-01-01T00:00:00.000001Z"));
        assert_eq!(micros("2024-01-01T01:00:00.000001+01:00").as_deref(), Some("2024-01-01T00:00:00.000001Z"));
        assert_eq!(micros("2024-01-01T00:00:00Z"), None);
    }
}
