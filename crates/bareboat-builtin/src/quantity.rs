//! Quantities: how Kubernetes writes amounts of resources (`500m`, `1Gi`, `1e3`), exactly.

use bareboat_api::Str;
use std::cmp::Ordering;
use std::fmt::Write as _;

/// How a quantity was written, and so how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `k`, `M`, `m`, …
    Decimal,
    /// `Ki`, `Mi`, …
    Binary,
    /// `e3`.
    Exponent,
}

/// An amount: `mantissa × 10^scale`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    mantissa: i128,
    scale: i32,
    format: Format,
}

/// The smallest amount that is told apart from zero is 10^-9.
const NANO: i32 = -9;

/// The largest amount in binary units.
const MAX_BINARY: i128 = i64::MAX as i128;

/// Amounts with more digits than this are refused; nobody has so much of anything.
const MAX_DIGITS: usize = 36;

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn split(text: &str) -> Option<Parts<'_>> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Some(Parts {
        negative,
        whole: whole.trim_start_matches('0'),
        fraction,
        suffix,
    })
}

impl Quantity {
    /// Reads a quantity; `None` when the text is none.
    pub fn parse(text: &str) -> Option<Quantity> {
        Quantity::from_parts(&split(text)?)
    }

    fn from_parts(parts: &Parts<'_>) -> Option<Quantity> {
        let fraction = parts.fraction.trim_end_matches('0');
        if parts.whole.len() + fraction.len() > MAX_DIGITS {
            return None;
        }
        let mut mantissa: i128 = 0;
        for digit in parts.whole.bytes().chain(fraction.bytes()) {
            mantissa = mantissa * 10 + i128::from(digit - b'0');
        }
        let mut scale = -i32::try_from(fraction.len()).ok()?;
        let format = if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == parts.suffix) {
            mantissa = mantissa.saturating_mul(1 << shift);
            Format::Binary
        } else if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == parts.suffix) {
            scale += exponent;
            Format::Decimal
        } else {
            let exponent = parts.suffix.strip_prefix(['e', 'E'])?;
            let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() <= 1000)?;
            scale += exponent;
            Format::Exponent
        };
        let mut quantity = Quantity {
            mantissa,
            scale,
            format,
        };
        quantity.trim();
        quantity.round_up_to(NANO);
        if format == Format::Binary
            && quantity.compare_magnitude(MAX_BINARY, 0) == Ordering::Greater
        {
            (quantity.mantissa, quantity.scale) = (MAX_BINARY, 0);
        }
        if parts.negative {
            quantity.mantissa = -quantity.mantissa;
        }
        Some(quantity)
    }

    /// Moves factors of ten from the mantissa to the scale.
    fn trim(&mut self) {
        if self.mantissa == 0 {
            self.scale = 0;
        }
        while self.mantissa != 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale += 1;
        }
    }

    fn round_up_to(&mut self, scale: i32) {
        let mut rest = false;
        while self.scale < scale && self.mantissa != 0 {
            rest |= self.mantissa % 10 != 0;
            self.mantissa /= 10;
            self.scale += 1;
        }
        if rest {
            self.mantissa += 1;
            self.scale = self.scale.max(scale);
        } else if self.mantissa == 0 && self.scale < scale {
            self.scale = 0;
        }
        self.trim();
    }

    /// The same amount, rounded up to thousandths.
    pub fn rounded_to_milli(mut self) -> Quantity {
        let negative = self.is_negative();
        self.mantissa = self.mantissa.abs();
        self.round_up_to(-3);
        if negative {
            self.mantissa = -self.mantissa;
        }
        self
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// Whether the amount is below zero.
    pub fn is_negative(self) -> bool {
        self.mantissa < 0
    }

    /// Whether the amount has no fraction.
    pub fn is_whole(self) -> bool {
        self.scale >= 0
    }

    fn compare_magnitude(self, mantissa: i128, scale: i32) -> Ordering {
        Quantity {
            mantissa: self.mantissa.abs(),
            ..self
        }
        .compare(Quantity {
            mantissa,
            scale,
            format: Format::Decimal,
        })
    }

    /// Which amount is larger.
    pub fn compare(self, other: Quantity) -> Ordering {
        let (low, high, flipped) = if self.scale <= other.scale {
            (self, other, false)
        } else {
            (other, self, true)
        };
        // Bring the one with the larger scale down; when it does not fit it is the larger one.
        let difference = (high.scale - low.scale).unsigned_abs();
        let order = match 10_i128
            .checked_pow(difference)
            .and_then(|power| high.mantissa.checked_mul(power))
        {
            Some(high) => low.mantissa.cmp(&high),
            None => 0.cmp(&high.mantissa),
        };
        if flipped { order.reverse() } else { order }
    }

    /// The amount rounded up to a whole number, as far as 64 bits go.
    pub fn whole(self) -> i64 {
        let mut rounded = self;
        let negative = self.is_negative();
        rounded.mantissa = rounded.mantissa.abs();
        rounded.round_up_to(0);
        let value = u32::try_from(rounded.scale)
            .ok()
            .and_then(|scale| 10_i128.checked_pow(scale))
            .and_then(|power| rounded.mantissa.checked_mul(power))
            .and_then(|value| i64::try_from(value).ok())
            .unwrap_or(i64::MAX);
        if negative { -value } else { value }
    }

    /// The canonical text.
    pub fn print(self) -> Str {
        if self.mantissa == 0 {
            return Str::const_new("0");
        }
        let mut out = Str::default();
        if self.format == Format::Binary
            && self.scale >= 0
            && self.compare_magnitude(1024, 0) != Ordering::Less
            && let Some(mut value) = u32::try_from(self.scale)
                .ok()
                .and_then(|scale| 10_i128.checked_pow(scale))
                .and_then(|power| self.mantissa.checked_mul(power))
        {
            let mut suffix = "";
            for (name, _) in BINARY {
                if value % 1024 != 0 {
                    break;
                }
                value /= 1024;
                suffix = name;
            }
            let _ = write!(out, "{value}{suffix}");
            return out;
        }
        let (mut mantissa, mut scale) = (self.mantissa, self.scale);
        while scale.rem_euclid(3) != 0 {
            mantissa = mantissa.saturating_mul(10);
            scale -= 1;
        }
        let suffix = DECIMAL
            .iter()
            .find(|(_, exponent)| *exponent == scale)
            .filter(|_| self.format != Format::Exponent);
        let _ = match suffix {
            Some((name, _)) => write!(out, "{mantissa}{name}"),
            None if scale == 0 => write!(out, "{mantissa}"),
            None => write!(out, "{mantissa}e{scale}"),
        };
        out
    }
}

/// The canonical text of a quantity: `None` if the text is none, `Some(None)` if it stays as it is.
pub fn canonical(text: &str) -> Option<Option<Str>> {
    let parts = split(text)?;
    let quantity = Quantity::from_parts(&parts)?;
    if kept_as_written(&parts, quantity) {
        return Some(None);
    }
    let printed = quantity.print();
    Some((printed != text).then_some(printed))
}

/// Upstream keeps some texts that are not canonical, such as `1.500`, because its quick test for
/// canonical ones looks at the digits only. Clients see that, so it is kept.
// Upstream: apimachinery/pkg/api/resource/quantity.go, ParseQuantity.
fn kept_as_written(parts: &Parts<'_>, quantity: Quantity) -> bool {
    let digits = parts.whole.len() + parts.fraction.len();
    match quantity.format {
        Format::Binary => {
            let value: u64 = parts.whole.parse().unwrap_or(0);
            parts.fraction.is_empty() && digits <= 5 && value & 7 != 0
        }
        Format::Decimal | Format::Exponent => {
            let scale = match quantity.format {
                Format::Decimal => DECIMAL
                    .iter()
                    .find(|(name, _)| *name == parts.suffix)
                    .map_or(0, |(_, exponent)| *exponent),
                _ => parts.suffix[1..].parse().unwrap_or(0),
            } - i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
            let ends_in_thousand = [parts.whole, parts.fraction].concat().ends_with("000");
            digits <= 18
                && scale >= NANO
                && scale % 3 == 0
                && !ends_in_thousand
                && !parts.whole.is_empty()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_printed_in_canonical_form() {
        let check = |text: &str, expected: Option<&str>| {
            let found = canonical(text).map(|changed| changed.unwrap_or_else(|| text.into()));
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1Gi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("100", "100"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("12e2", "1200"),
            ("0", "0"),
            ("0Mi", "0"),
            ("-1500m", "-1500m"),
            ("0.0000000001", "1n"),
            ("900", "900"),
            ("2048", "2048"),
            ("8Ki", "8Ki"),
            ("512Ki", "512Ki"),
            ("16Ei", "9223372036854775807"),
            ("0.1Ki", "102400m"),
            ("1M", "1M"),
            (".5", "500m"),
            ("5.", "5."),
            ("100E", "100E"),
            ("1.1Ki", "1126400m"),
        ] {
            check(text, Some(expected));
        }
        for text in ["", "-", ".", "a", "1x", "1e", "1Kb", "1 Gi", "e3", "1e99999999999", "0x1"] {
            check(text, None);
        }
    }

    #[test]
    fn amounts_compare_exactly() {
        let order = |a: &str, b: &str| {
            let parse = |text| Quantity::parse(text).expect("a quantity");
            parse(a).compare(parse(b))
        };
        assert_eq!(order("1", "1000m"), Ordering::Equal);
        assert_eq!(order("1Gi", "1G"), Ordering::Greater);
        assert_eq!(order("-1", "1n"), Ordering::Less);
        assert_eq!(order("1e400", "1"), Ordering::Greater);
        assert_eq!(order("1", "-1e400"), Ordering::Greater);
        assert_eq!(Quantity::parse("1500m").map(Quantity::whole), Some(2));
    }
}
