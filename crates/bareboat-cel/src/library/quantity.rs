//! Quantities: `100m`, `1.5Gi`, `1e3`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::{Special, Val};

/// A quantity, exact to a billionth.
#[derive(Clone, Debug)]
pub(crate) struct Quantity {
    pub(crate) nanos: i128,
    /// Whether it is stored as a whole number of units; `1000m` equals one but is not stored so.
    whole: bool,
    pub(crate) text: Arc<str>,
}

const NANO: i128 = 1_000_000_000;

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "quantity",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::special(Special::Quantity(parse(text.as_str())?))),
            _ => no_such_overload(),
        },
        overloads: &[("string_to_quantity", "string -> quantity")],
    },
    Decl {
        name: "isQuantity",
        call: |_, args| match args {
            [Val::String(text)] => Ok(Val::Bool(parse(text.as_str()).is_ok())),
            _ => no_such_overload(),
        },
        overloads: &[("is_quantity_string", "string -> bool")],
    },
    // Upstream declares this as a function, not as a method.
    Decl {
        name: "sign",
        call: |_, args| match args {
            [value] => Ok(Val::Int(of(value)?.nanos.signum() as i64)),
            _ => no_such_overload(),
        },
        overloads: &[("quantity_sign", "quantity -> int")],
    },
    Decl {
        name: "isGreaterThan",
        call: |_, args| compare(args, |order| Val::Bool(order.is_gt())),
        overloads: &[("quantity_is_greater_than", ".quantity, quantity -> bool")],
    },
    Decl {
        name: "isLessThan",
        call: |_, args| compare(args, |order| Val::Bool(order.is_lt())),
        overloads: &[("quantity_is_less_than", ".quantity, quantity -> bool")],
    },
    Decl {
        name: "compareTo",
        call: |_, args| compare(args, |order| Val::Int(order as i64)),
        overloads: &[("quantity_compare_to", ".quantity, quantity -> int")],
    },
    Decl {
        name: "asApproximateFloat",
        call: |_, args| match args {
            [value] => Ok(Val::Double(of(value)?.nanos as f64 / NANO as f64)),
            _ => no_such_overload(),
        },
        overloads: &[("quantity_get_float", ".quantity -> double")],
    },
    Decl {
        name: "asInteger",
        call: |_, args| match args {
            [value] => match of(value)?.integer() {
                Some(integer) => Ok(Val::Int(integer)),
                None => Err(EvalError::new("cannot convert value to integer")),
            },
            _ => no_such_overload(),
        },
        overloads: &[("quantity_get_int", ".quantity -> int")],
    },
    Decl {
        name: "isInteger",
        call: |_, args| match args {
            [value] => Ok(Val::Bool(of(value)?.integer().is_some())),
            _ => no_such_overload(),
        },
        overloads: &[("quantity_is_integer", ".quantity -> bool")],
    },
    Decl {
        name: "add",
        call: |_, args| combine(args, i128::saturating_add),
        overloads: &[
            ("quantity_add", ".quantity, quantity -> quantity"),
            ("quantity_add_int", ".quantity, int -> quantity"),
        ],
    },
    Decl {
        name: "sub",
        call: |_, args| combine(args, i128::saturating_sub),
        overloads: &[
            ("quantity_sub", ".quantity, quantity -> quantity"),
            ("quantity_sub_int", ".quantity, int -> quantity"),
        ],
    },
];

fn of<'v>(value: &'v Val<'_>) -> Result<&'v Quantity, EvalError> {
    match value.as_special() {
        Some(Special::Quantity(quantity)) => Ok(quantity),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn compare<'a>(args: &[Val<'a>], answer: fn(Ordering) -> Val<'a>) -> Result<Val<'a>, EvalError> {
    match args {
        [a, b] => Ok(answer(of(a)?.nanos.cmp(&of(b)?.nanos))),
        _ => no_such_overload(),
    }
}

fn combine<'a>(args: &[Val<'a>], with: fn(i128, i128) -> i128) -> Result<Val<'a>, EvalError> {
    let [a, b] = args else {
        return no_such_overload();
    };
    let a = of(a)?;
    let (nanos, whole) = match b {
        Val::Int(b) => (i128::from(*b) * NANO, true),
        b => {
            let b = of(b)?;
            (b.nanos, b.whole)
        }
    };
    let nanos = with(a.nanos, nanos);
    Ok(Val::special(Special::Quantity(Quantity {
        nanos,
        whole: a.whole && whole,
        text: print(nanos).into(),
    })))
}

impl Quantity {
    fn integer(&self) -> Option<i64> {
        (self.whole && self.nanos % NANO == 0)
            .then(|| i64::try_from(self.nanos / NANO).ok())
            .flatten()
    }
}

/// Prints a sum as plain decimal text, in the largest unit without a fraction.
fn print(nanos: i128) -> String {
    const SUFFIXES: [(&str, u32); 10] = [
        ("E", 27),
        ("P", 24),
        ("T", 21),
        ("G", 18),
        ("M", 15),
        ("k", 12),
        ("", 9),
        ("m", 6),
        ("u", 3),
        ("n", 0),
    ];
    let (suffix, power) = SUFFIXES
        .into_iter()
        .find(|(_, power)| nanos != 0 && nanos % 10_i128.pow(*power) == 0)
        .unwrap_or(("", 9));
    format!("{}{suffix}", nanos / 10_i128.pow(power))
}

const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Parses a quantity like the API.
pub(crate) fn parse(text: &str) -> Result<Quantity, EvalError> {
    let bad = || EvalError::new(FORM);
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(bad());
    }
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let (base, exponent) =
        scale(suffix).ok_or_else(|| EvalError::new("unable to parse quantity's suffix"))?;
    let mut digits: i128 = 0;
    let mut lost = false;
    for byte in whole.bytes().chain(fraction.bytes()) {
        match digits
            .checked_mul(10)
            .and_then(|d| d.checked_add((byte - b'0').into()))
        {
            Some(next) => digits = next,
            None => {
                lost = true;
                digits = i128::MAX;
                break;
            }
        }
    }
    let mut nanos = digits;
    let mut tens = 9 - fraction.len() as i32;
    match base {
        2 => nanos = nanos.saturating_mul(1 << exponent),
        _ => tens = tens.saturating_add(exponent),
    }
    // Fractions of a billionth are rounded away from zero, so that a small amount never becomes
    // zero.
    while tens < 0 && nanos != 0 {
        nanos = (nanos + 9) / 10;
        tens += 1;
        if nanos <= 1 {
            break;
        }
    }
    for _ in 0..tens.max(0) {
        nanos = nanos.saturating_mul(10);
        if nanos == 0 || nanos == i128::MAX {
            break;
        }
    }
    if base == 2 {
        nanos = nanos.min(i128::from(i64::MAX) * NANO);
    }
    let kept_scale = if base == 2 { 0 } else { exponent } - fraction.len() as i32;
    let precise = whole.len() + fraction.len() <= 18;
    Ok(Quantity {
        nanos: if text.starts_with('-') { -nanos } else { nanos },
        whole: kept_scale >= 0 && precise && !lost,
        text: text.into(),
    })
}

/// Returns the base and exponent of a suffix.
fn scale(suffix: &str) -> Option<(u8, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            (10, digits.parse::<i32>().ok()?.clamp(-1000, 1000))
        }
    })
}
