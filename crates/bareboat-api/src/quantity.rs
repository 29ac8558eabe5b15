//! Quantities such as `500m`, `1.5Gi` and `12e6`: exact, with the canonical text Kubernetes prints.
//!
//! An amount is a whole number of billionths, which is the finest step the API knows; finer
//! amounts are rounded away from zero, so that who asks for something gets something.

mod parse;

use std::cmp::Ordering;
use std::fmt;

/// How many parts of a unit are counted.
const NANO: i128 = 1_000_000_000;

/// The largest amount in binary form: what 64 bits hold.
const BINARY_MAX: i128 = i64::MAX as i128 * NANO;

/// The family of suffixes a quantity is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    Decimal,
    /// `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    Binary,
    /// `e3`, `e-6`.
    Exponent,
}

/// An exact amount. Equality and order look at the amount only, not at how it is printed.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing at all.
    pub const ZERO: Quantity = Quantity {
        nanos: 0,
        format: Format::Decimal,
    };

    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        parse::quantity(text)
    }

    /// So many units.
    pub fn from_units(units: i64, format: Format) -> Quantity {
        Quantity {
            nanos: i128::from(units) * NANO,
            format,
        }
    }

    /// So many thousandths.
    pub fn from_millis(millis: i64, format: Format) -> Quantity {
        Quantity {
            nanos: i128::from(millis) * (NANO / 1000),
            format,
        }
    }

    /// How it is printed.
    pub fn format(self) -> Format {
        self.format
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> i32 {
        self.nanos.signum() as i32
    }

    /// The sum, in the format of the first that is not zero.
    pub fn checked_add(self, other: Quantity) -> Result<Quantity, QuantityError> {
        let nanos = self.nanos.checked_add(other.nanos);
        self.combined(other, nanos)
    }

    /// The difference, in the format of the first that is not zero.
    pub fn checked_sub(self, other: Quantity) -> Result<Quantity, QuantityError> {
        let nanos = self.nanos.checked_sub(other.nanos);
        self.combined(other, nanos)
    }

    fn combined(self, other: Quantity, nanos: Option<i128>) -> Result<Quantity, QuantityError> {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        nanos
            .map(|nanos| Quantity { nanos, format })
            .ok_or(QuantityError::Overflow)
    }

    /// The opposite amount.
    #[must_use]
    pub fn negated(self) -> Quantity {
        // No amount is as small as the smallest i128: the parser and the sums stay far above.
        Quantity {
            nanos: self.nanos.saturating_neg(),
            format: self.format,
        }
    }

    /// The number of units if it is whole and fits.
    pub fn as_i64(self) -> Option<i64> {
        (self.nanos % NANO == 0)
            .then(|| i64::try_from(self.nanos / NANO).ok())
            .flatten()
    }

    /// The number of units, rounded away from zero and cut to what 64 bits hold.
    pub fn units(self) -> i64 {
        clamp(divide_up(self.nanos, NANO))
    }

    /// The number of thousandths, rounded away from zero and cut to what 64 bits hold.
    pub fn millis(self) -> i64 {
        clamp(divide_up(self.nanos, NANO / 1000))
    }

    /// The nearest float.
    pub fn as_f64(self) -> f64 {
        let (units, rest) = (self.nanos / NANO, self.nanos % NANO);
        units as f64 + rest as f64 / NANO as f64
    }

    fn parts(self) -> (i128, String) {
        if self.nanos == 0 {
            return (0, String::new());
        }
        let whole = self.nanos % NANO == 0;
        let small = self.nanos.abs() < 1024 * NANO;
        match self.format {
            Format::Binary if whole && !small => {
                const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
                let (mantissa, steps) = strip(self.nanos / NANO, 1024, SUFFIXES.len() - 1);
                (mantissa, SUFFIXES[steps].to_owned())
            }
            // In binary form fractions and small amounts would have to be rounded.
            Format::Binary | Format::Decimal => {
                const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                let (mantissa, steps) = strip(self.nanos, 1000, SUFFIXES.len() - 1);
                (mantissa, SUFFIXES[steps].to_owned())
            }
            Format::Exponent => {
                let (mantissa, steps) = strip(self.nanos, 1000, usize::MAX);
                let exponent = steps as i64 * 3 - 9;
                let suffix = if exponent == 0 {
                    String::new()
                } else {
                    format!("e{exponent}")
                };
                (mantissa, suffix)
            }
        }
    }
}

/// The canonical text: no fraction, and the largest suffix that loses nothing.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mantissa, suffix) = self.parts();
        write!(f, "{mantissa}{suffix}")
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        Quantity::parse(text)
    }
}

/// Why text is no quantity, or why two cannot be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text has not the form of a quantity.
    Form,
    /// The number before the suffix has too many digits.
    Number,
    /// There is no such suffix.
    Suffix,
    /// The amount is beyond anything that can be counted.
    Overflow,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuantityError::Form => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            QuantityError::Number => "unable to parse numeric part of quantity",
            QuantityError::Suffix => "unable to parse quantity's suffix",
            QuantityError::Overflow => "the quantity is too large",
        })
    }
}

impl std::error::Error for QuantityError {}

/// Divides as long as nothing remains: what is left, and how often.
fn strip(mut amount: i128, by: i128, most: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < most && amount % by == 0 {
        amount /= by;
        steps += 1;
    }
    (amount, steps)
}

fn divide_up(amount: i128, by: i128) -> i128 {
    amount / by + if amount % by == 0 { 0 } else { amount.signum() }
}

fn clamp(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests;
