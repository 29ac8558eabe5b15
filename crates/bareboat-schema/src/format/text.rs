//! Formats of identifiers, colours, dates and durations.

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
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !is_card_number(digits.as_bytes()) {
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

/// Returns whether the first digits are those of an issuer, and there are as many as its cards have.
fn is_card_number(digits: &[u8]) -> bool {
    match digits {
        [b'4', ..] => matches!(digits.len(), 13 | 16),
        [b'5', b'1'..=b'5', ..] => digits.len() == 16,
        [b'6', b'0', b'1', b'1', ..] | [b'6', b'5', ..] => digits.len() == 16,
        [b'3', b'4' | b'7', ..] => digits.len() == 15,
        [b'3', b'0', b'0'..=b'5', ..] | [b'3', b'6' | b'8', ..] => digits.len() == 14,
        [b'2', b'1', b'3', b'1', ..] | [b'1', b'8', b'0', b'0', ..] => digits.len() == 15,
        [b'3', b'5', ..] => digits.len() == 16,
        _ => false,
    }
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
    let lower = text.to_lowercase();
    let Some((date, rest)) = lower.split_once('t') else {
        return false;
    };
    let time = rest.split('t').next().unwrap_or("");
    is_date(date) && is_time(time)
}

/// Returns whether a text is `HH:MM:SS`, perhaps with a fraction, and a zone: `z` or an offset. Any one character may stand before
/// the fraction, as upstream.
fn is_time(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let two = |part: Option<&str>| part.is_some_and(|part| part.len() == 2 && digits(part));
    let pair = |part: &str| part.get(2..3) == Some(":") && two(part.get(..2)) && two(part.get(3..));
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let shaped =
        clock.get(2..3) == Some(":") && two(clock.get(..2)) && clock.get(3..).is_some_and(pair);
    if !shaped || &clock[..2] > "23" || &clock[3..5] > "59" || &clock[6..] > "59" {
        return false;
    }
    let before_zone = match rest.strip_suffix('z') {
        Some(before) => Some(before),
        None => rest.len().checked_sub(6).and_then(|at| {
            let (before, zone) = rest.split_at_checked(at)?;
            zone.strip_prefix(['+', '-'])
                .is_some_and(pair)
                .then_some(before)
        }),
    };
    let Some(fraction) = before_zone else {
        return false;
    };
    let mut characters = fraction.chars();
    match characters.next() {
        None => true,
        Some(separator) => separator != '\n' && digits(characters.as_str()),
    }
}

/// Returns whether a text is a duration of Go (`1h30m`), or one in words such as `3 days`.
pub(super) fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (number, after) = split_while(&rest[start..], |c| c.is_ascii_digit());
        let (_, after) = split_while(after, |c| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' '));
        let (unit, after) = split_while(after, |c| c.is_ascii_alphabetic() || c == 'µ');
        rest = after;
        if unit.is_empty() {
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&unit.to_lowercase());
    }
    found
}

/// Splits a text after its first characters of a kind.
fn split_while(text: &str, of_kind: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c: char| !of_kind(c)).unwrap_or(text.len());
    text.split_at(end)
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
