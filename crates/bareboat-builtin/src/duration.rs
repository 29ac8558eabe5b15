//! Durations as Go writes them (`1m30s`), and as tables show them to people (`5d`).

use bareboat_api::Str;
use std::fmt::Write as _;

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

/// Reads a Go duration as nanoseconds; `None` when the text is none or does not fit 64 bits.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .count();
        let (digits, after) = rest.split_at(number);
        let unit_length = after
            .bytes()
            .take_while(|byte| !byte.is_ascii_digit() && *byte != b'.')
            .count();
        let (unit, after) = after.split_at(unit_length);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 20 {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        total += whole * size;
        let mut place = *size;
        for digit in fraction.bytes().take(18) {
            place /= 10;
            total += i128::from(digit - b'0') * place;
        }
        if total > i128::from(i64::MAX) + 1 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// Prints nanoseconds as Go does.
pub fn print(nanoseconds: i64) -> Str {
    let mut out = Str::default();
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return Str::const_new("0s");
    }
    if nanoseconds < 0 {
        out.push('-');
    }
    if total < 1_000_000_000 {
        let (size, unit) = match total {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        push_fraction(&mut out, total, size);
        out.push_str(unit);
        return out;
    }
    let seconds = total / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        let _ = write!(out, "{hours}h");
    }
    if seconds >= 60 {
        let _ = write!(out, "{minutes}m");
    }
    push_fraction(&mut out, total % 60_000_000_000, 1_000_000_000);
    out.push('s');
    out
}

fn push_fraction(out: &mut Str, total: u64, size: u64) {
    let _ = write!(out, "{}", total / size);
    let rest = total % size;
    if rest != 0 {
        let width = size.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

/// Prints seconds as tables do: two units at most, the smaller one only while it matters.
// Upstream: apimachinery/pkg/util/duration, HumanDuration.
pub fn human(seconds: i64) -> Str {
    // A clock that is a little behind is no reason to show nonsense.
    if seconds < -1 {
        return Str::const_new("<invalid>");
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{unit}")
        } else {
            format!("{large}{unit}{small}{small_unit}")
        }
    };
    Str::new(match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_as_in_go() {
        for (text, printed) in [
            ("90s", "1m30s"),
            ("1h", "1h0m0s"),
            ("1.5h", "1h30m0s"),
            ("0", "0s"),
            ("100ms", "100ms"),
            ("1us", "1µs"),
            ("-1m", "-1m0s"),
            ("1.000000001s", "1.000000001s"),
            ("36h15m30.918273645s", "36h15m30.918273645s"),
        ] {
            assert_eq!(parse(text).map(print).as_deref(), Some(printed), "{text}");
        }
        for text in ["", "1", "s", "1x", ".s", "1.2.3s", "9999999h", "-", "1é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn ages_read_as_people_say_them() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (130, "2m10s"),
            (180, "3m"),
            (3599, "59m"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (49 * 3600, "2d1h"),
            (8 * 86400, "8d"),
            (2 * 365 * 86400, "2y"),
            (3 * 365 * 86400 + 86400, "3y1d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }
}
