//! The parser of quantities.

use super::{BINARY_MAX, Format, NANO, Quantity, QuantityError};

/// More digits than any amount in range can have.
const MAX_DIGITS: usize = 36;

enum Scale {
    /// A power of ten.
    Ten(i64),
    /// A power of two.
    Two(u32),
}

pub(super) fn quantity(text: &str) -> Result<Quantity, QuantityError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError::Form);
    }
    let (scale, format) = suffix_meaning(suffix)?;
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() && fraction.is_empty() {
        return Ok(Quantity { nanos: 0, format });
    }
    if whole.len() + fraction.len() > MAX_DIGITS {
        return Err(QuantityError::Number);
    }
    let digits = whole.bytes().chain(fraction.bytes());
    let digits = digits.fold(0i128, |number, digit| {
        number * 10 + i128::from(digit - b'0')
    });
    let places = fraction.len() as i64;
    let nanos = match scale {
        Scale::Ten(exponent) => scale_ten(digits, exponent.saturating_add(9) - places),
        Scale::Two(exponent) => scale_two(digits, exponent, places),
    }?;
    // Amounts that binary form would have to round are printed in decimal form.
    let format = match format {
        Format::Binary if nanos < NANO => Format::Decimal,
        other => other,
    };
    let nanos = if negative { -nanos } else { nanos };
    Ok(Quantity { nanos, format })
}

/// Returns `digits × 10^exponent`, rounded up.
fn scale_ten(digits: i128, exponent: i64) -> Result<i128, QuantityError> {
    if exponent < 0 {
        let Some(divisor) = power_of_ten(-exponent) else {
            return Ok(1);
        };
        return Ok(round_up(digits, divisor));
    }
    power_of_ten(exponent)
        .and_then(|factor| digits.checked_mul(factor))
        .ok_or(QuantityError::Overflow)
}

/// Returns `digits × 2^exponent × 10^(9 - places)`, rounded up and limited to the maximum of binary
/// form.
fn scale_two(digits: i128, exponent: u32, places: i64) -> Result<i128, QuantityError> {
    let scaled = digits.checked_mul(1 << exponent);
    let Some(scaled) = scaled.filter(|scaled| *scaled < i128::MAX / NANO) else {
        // Only a long fraction can make so large a product of a small amount.
        let divisor = power_of_ten(places).ok_or(QuantityError::Number)?;
        let units = round_up(digits, divisor);
        let units = units.checked_mul(1 << exponent).unwrap_or(i128::MAX);
        return Ok(units.saturating_mul(NANO).min(BINARY_MAX));
    };
    let divisor = power_of_ten(places).ok_or(QuantityError::Number)?;
    Ok(round_up(scaled * NANO, divisor).min(BINARY_MAX))
}

fn power_of_ten(exponent: i64) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

fn round_up(amount: i128, divisor: i128) -> i128 {
    amount / divisor + i128::from(amount % divisor != 0)
}

fn suffix_meaning(suffix: &str) -> Result<(Scale, Format), QuantityError> {
    let decimal = |exponent| Ok((Scale::Ten(exponent), Format::Decimal));
    let binary = |exponent| Ok((Scale::Two(exponent), Format::Binary));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        other => exponent(other),
    }
}

fn exponent(suffix: &str) -> Result<(Scale, Format), QuantityError> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E'])
        && let Ok(exponent) = exponent.parse::<i32>()
    {
        return Ok((Scale::Ten(exponent.into()), Format::Exponent));
    }
    let letters =
        suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let digits = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Suffix);
    }
    Err(QuantityError::Form)
}
