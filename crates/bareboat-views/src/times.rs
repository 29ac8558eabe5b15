//! Times in searches: `since`, `before`, `maxStaleness`, and how ages are printed.

use bareboat_api::Status;
use bareboat_api::time::Timestamp;
use std::time::Duration;

/// Reads a time: Unix seconds (10 digits) or milliseconds (13), RFC 3339, `2006-01-02`, or `2006-01-02 15:04:05` in UTC. Returns
/// milliseconds since 1970.
pub(crate) fn parse(name: &str, text: &str) -> Result<i64, Status> {
    let wrong = || {
        Status::bad_request(format!(
            "{name}: {text:?} is not a time; use Unix seconds or milliseconds, RFC 3339, 2006-01-02 or 2006-01-02 15:04:05"
        ))
    };
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().map_err(|_| wrong())?;
        return match text.len() {
            10 => Ok(number * 1000),
            13 => Ok(number),
            _ => Err(wrong()),
        };
    }
    let full = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        19 if text.as_bytes()[10] == b' ' => text.replace(' ', "T") + "Z",
        _ => text.to_owned(),
    };
    let time = Timestamp::parse(&full).map_err(|_| wrong())?;
    Ok(time.seconds * 1000 + i64::from(time.nanos / 1_000_000))
}

/// Prints milliseconds since 1970 as RFC 3339.
pub(crate) fn print(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    let nanos = milliseconds.rem_euclid(1000) * 1_000_000;
    let nanos = u32::try_from(nanos).unwrap_or(0);
    let time = Timestamp { seconds, nanos };
    match nanos {
        0 => time.print_seconds(),
        _ => time.print_micros(),
    }
}

/// Reads a duration: seconds, or numbers with the units `ms`, `s`, `m` and `h`, such as `1m30s`.
pub(crate) fn duration(name: &str, text: &str) -> Result<Duration, Status> {
    let wrong = || Status::bad_request(format!("{name}: {text:?} is not a duration, such as 30s"));
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds.min(1 << 32)));
    }
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let units = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic);
        let end = digits + units.count();
        let unit = match &rest[digits..end] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return Err(wrong()),
        };
        let number = u32::try_from(number).map_err(|_| wrong())?;
        total += unit * number;
        rest = &rest[end..];
    }
    match text.is_empty() {
        true => Err(wrong()),
        false => Ok(total),
    }
}

/// Prints how long ago something was, such as `3m12s`.
pub(crate) fn ago(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ago, duration, parse};
    use std::time::Duration;

    #[test]
    fn all_spellings_of_a_time_are_read() {
        let expected = 1_648_080_000_000;
        for text in [
            "2022-03-24",
            "2022-03-24 00:00:00",
            "2022-03-24T00:00:00Z",
            "1648080000",
            "1648080000000",
        ] {
            assert_eq!(parse("since", text).ok(), Some(expected), "{text}");
        }
        for text in ["", "yesterday", "12", "2022-13-01", "2022-03-24T00:00:00"] {
            assert!(parse("since", text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read_and_printed() {
        let read = |text| duration("maxStaleness", text).ok();
        assert_eq!(read("30s"), Some(Duration::from_secs(30)));
        assert_eq!(read("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(read("45"), Some(Duration::from_secs(45)));
        assert_eq!(read("soon"), None);
        assert_eq!(read(""), None);
        assert_eq!(ago(192_000), "3m12s");
        assert_eq!(ago(7_325_000), "2h2m5s");
    }
}
