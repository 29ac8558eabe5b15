//! The types of plain scalars: YAML 1.1 in go-yaml's dialect.

#[cfg(feature = "yaml")]
use bareboat_api::{Str, Value};

/// A resolved plain scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// `.inf` and `.nan`, which JSON cannot represent.
    NotFinite,
    /// `<<`.
    Merge,
    Text,
}

/// Resolves a plain scalar.
pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Plain::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Plain::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return Plain::NotFinite,
        "<<" => return Plain::Merge,
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => float(text).unwrap_or(Plain::Text),
        b'+' | b'-' | b'0'..=b'9' => {
            let plain = text.replace('_', "");
            integer(&plain)
                .or_else(|| float(&plain))
                .unwrap_or(Plain::Text)
        }
        _ => Plain::Text,
    }
}

#[cfg(feature = "yaml")]
impl Plain {
    /// Returns the value, which for plain text is the text itself; `None` for numbers that JSON
    /// cannot represent.
    pub(super) fn into_value(self, text: &str) -> Option<Value> {
        Some(match self {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            Plain::Int(value) => Value::Int(value),
            // Upstream converts through JSON, so 1.0 becomes the integer 1.
            Plain::Float(value) => match Value::Float(value).as_i64() {
                Some(whole) => Value::Int(whole),
                None => Value::Float(value),
            },
            Plain::NotFinite => return None,
            Plain::Merge | Plain::Text => Value::String(Str::new(text)),
        })
    }
}

/// Parses decimal, `0x`, `0o`, `0b` and octal integers with a leading 0, with an optional sign; 64
/// bits wide.
fn integer(text: &str) -> Option<Plain> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let prefixed = |lower: &str, upper: &str| {
        digits
            .strip_prefix(lower)
            .or_else(|| digits.strip_prefix(upper))
    };
    let (digits, base) = if let Some(digits) = prefixed("0x", "0X") {
        (digits, 16)
    } else if let Some(digits) = prefixed("0o", "0O") {
        (digits, 8)
    } else if let Some(digits) = prefixed("0b", "0B") {
        (digits, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (&digits[1..], 8)
    } else {
        (digits, 10)
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, base).ok()?;
    let number = if negative { -magnitude } else { magnitude };
    if let Ok(number) = i64::try_from(number) {
        return Some(Plain::Int(number));
    }
    u64::try_from(number)
        .ok()
        .map(|number| Plain::Float(number as f64))
}

/// Parses digits with at most one point and an exponent; infinite numbers stay text.
fn float(text: &str) -> Option<Plain> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    if let Some(exponent) = exponent {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.is_empty() || !digits(exponent) {
            return None;
        }
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(Plain::Float(number))
}

/// Returns whether a plain scalar of this text is parsed as the same string.
pub(super) fn stays_text(text: &str) -> bool {
    matches!(resolve(text), Plain::Text) && !looks_like_time(text)
}

/// Returns whether this is a date or a base 60 number, which other YAML 1.1 parsers do not take for
/// a string.
fn looks_like_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let date = bytes.len() > 4 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-';
    let base_60 = text.contains(':')
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'_' | b'.' | b'+' | b'-'));
    date || base_60
}
