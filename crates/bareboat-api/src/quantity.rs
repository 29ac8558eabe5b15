//! Quantities such as `500m`, `1.5Gi` and `12e6`: exact amounts, printed in Kubernetes' canonical
//! form.
//!
//! An amount is a whole number of billionths, the finest step of the API. Finer amounts are rounded
//! away from zero, so that a small positive amount never becomes zero.

mod parse;

use std::cmp::Ordering;
use std::fmt;

/// The number of billionths in one unit.
const NANO: i128 = 1_000_000_000;

/// The largest amount in binary form: the maximum of 64 bits.
const BINARY_MAX: i128 = i64::MAX as i128 * NANO;

/// The family of suffixes that a quantity is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    Decimal,
    /// `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    Binary,
    /// `e3`, `e-6`.
    Exponent,
}

/// An exact amount. Equality and order compare the amount only, not the format.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// The amount zero.
    pub const ZERO: Quantity = Quantity {
        nanos: 0,
        format: Format::Decimal,
    };

    /// Parses a quantity.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        parse::quantity(text)
    }

    /// Returns a whole number of units.
    pub fn from_units(units: i64, format: Format) -> Quantity {
        Quantity {
            nanos: i128::from(units) * NANO,
            format,
        }
    }

    /// Returns a whole number of thousandths.
    pub fn from_millis(millis: i64, format: Format) -> Quantity {
        Quantity {
            nanos: i128::from(millis) * (NANO / 1000),
            format,
        }
    }

    /// Returns the format it is printed with.
    pub fn format(self) -> Format {
        self.format
    }

    /// Returns whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Returns -1, 0 or 1.
    pub fn sign(self) -> i32 {
        self.nanos.signum() as i32
    }

    /// Returns the sum, in the format of the first that is not zero.
    pub fn checked_add(self, other: Quantity) -> Result<Quantity, QuantityError> {
        let nanos = self.nanos.checked_add(other.nanos);
        self.combined(other, nanos)
    }

    /// Returns the difference, in the format of the first that is not zero.
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

    /// Returns the opposite amount.
    #[must_use]
    pub fn negated(self) -> Quantity {
        // The amount is never i128::MIN: the parser and the sums stay far above it.
        Quantity {
            nanos: self.nanos.saturating_neg(),
            format: self.format,
        }
    }

    /// Returns the number of units if it is whole and fits.
    pub fn as_i64(self) -> Option<i64> {
        (self.nanos % NANO == 0)
            .then(|| i64::try_from(self.nanos / NANO).ok())
            .flatten()
    }

    /// Returns the number of units, rounded away from zero and limited to the range of 64 bits.
    pub fn units(self) -> i64 {
        clamp(divide_up(self.nanos, NANO))
    }

    /// Returns the number of thousandths, rounded away from zero and limited to the range of 64
    /// bits.
    pub fn millis(self) -> i64 {
        clamp(divide_up(self.nanos, NANO / 1000))
    }

    /// Returns the nearest float.
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
            // Binary form would have to round fractions and small amounts.
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

/// Prints the canonical text: no fraction, and the largest suffix without loss.
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

/// The error of an invalid quantity or of an overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    /// The number before the suffix has too many digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The amount is too large.
    #[error("the quantity is too large")]
    Overflow,
}

/// Divides as long as there is no remainder; returns the quotient and the number of divisions.
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
