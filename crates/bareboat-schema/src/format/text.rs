//! Formats of identifiers, colours, dates and durations.

use regex::Regex;
use std::sync::LazyLock;

pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a text is groups of 8, 4, 4, 4 and 12 digits with optional hyphens.
pub(super) fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut digits = Vec::with_capacity(32);
    let bytes = text.as_bytes();
    let mut at = 0;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 && bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        let Some(group) = bytes.get(at..at + length) else {
            return false;
        };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        digits.extend_from_slice(group);
        at += length;
    }
    at == bytes.len()
        && version.is_none_or(|version| digits[12] == version)
        && (!variant || matches!(digits[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'))
}

fn isbn_characters(text: &str) -> Vec<u8> {
    text.chars()
        .filter(|character| !matches!(character, '-' | ' ' | '\t' | '\n' | '\r' | '\x0c'))
        .map(|character| u8::try_from(character).unwrap_or(b'?'))
        .collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let digits = isbn_characters(text);
    let [head @ .., last] = &digits[..] else {
        return false;
    };
    if head.len() != 9 || !head.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..)
        .zip(head)
        .map(|(weight, digit)| weight * u32::from(digit - b'0'))
        .sum();
    (sum + 10 * last).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits = isbn_characters(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .zip([1, 3].into_iter().cycle())
        .map(|(digit, weight)| u32::from(digit - b'0') * weight)
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn is_credit_card(text: &str) -> bool {
    static CARD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|",
            "3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
        ))
        .expect("a pattern of digits")
    });
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(
            |(index, digit)| match (index % 2, u32::from(digit - b'0')) {
                (0, digit) => digit,
                (_, digit) if digit < 5 => 2 * digit,
                (_, digit) => 2 * digit - 9,
            },
        )
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && is_hex(digits)
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'))
    else {
        return false;
    };
    let parts: Vec<&str> = inner
        .split(',')
        .map(|part| part.trim_matches([' ', '\t', '\n', '\r', '\x0c']))
        .collect();
    parts.len() == 3
        && parts.iter().all(|part| {
            part.bytes().all(|byte| byte.is_ascii_digit())
                && (*part == "0" || !part.starts_with('0'))
                && part.parse::<u8>().is_ok()
        })
}

/// Returns whether a text is padded base64 of at least one byte.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return false;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

pub(super) fn is_date_time(text: &str) -> bool {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
            .expect("a pattern of a time")
    });
    let lower = text.to_lowercase();
    let Some((date, rest)) = lower.split_once('t') else {
        return false;
    };
    let time = rest.split('t').next().unwrap_or("");
    is_date(date)
        && TIME
            .captures(time)
            .is_some_and(|parts| &parts[1] <= "23" && &parts[2] <= "59" && &parts[3] <= "59")
}

/// Returns whether a text is a duration of Go (`1h30m`), or one in words such as `3 days`.
pub(super) fn is_duration(text: &str) -> bool {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("([0-9]+)[\\t\\n\\x0c\\r ]*([A-Za-zµ]+)").expect("a pattern of number and unit")
    });
    if is_go_duration(text) {
        return true;
    }
    let mut found = false;
    for part in WORDS.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&part[2].to_lowercase());
    }
    found
}

fn is_unit(unit: &str) -> bool {
    // The last of each row is a prefix: `hours`, `weeks`.
    let exact = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    let words = [
        "nano", "micro", "milli", "sec", "min", "hour", "day", "week",
    ];
    exact.contains(&unit) || words.iter().any(|word| unit.starts_with(word))
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut total = 0f64;
    while !rest.is_empty() {
        let digits = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let parts: Vec<&str> = number.split('.').collect();
        if parts.len() > 2 || parts.iter().all(|part| part.is_empty()) {
            return false;
        }
        let end = tail
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(tail.len());
        let scale = match &tail[..end] {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 6e10,
            "h" => 3.6e12,
            _ => return false,
        };
        total += number.trim_end_matches('.').parse::<f64>().unwrap_or(0.0) * scale;
        rest = &tail[end..];
    }
    // Go counts nanoseconds in 64 bits and rejects longer durations.
    total < 9.3e18
}
