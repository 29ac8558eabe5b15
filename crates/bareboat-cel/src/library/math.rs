//! cel-go's mathematics extension, which Kubernetes does not enable.

use std::cmp::Ordering;

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::{List, Val, compare};

macro_rules! extreme {
    ($name:literal, $id:literal, $worse:expr) => {
        Decl {
            name: $name,
            call: |_, args| extreme(args, $worse),
            overloads: &[
                (concat!($id, "_double"), "double -> double"),
                (concat!($id, "_int"), "int -> int"),
                (concat!($id, "_uint"), "uint -> uint"),
                (concat!($id, "_double_double"), "double, double -> double"),
                (concat!($id, "_int_int"), "int, int -> int"),
                (concat!($id, "_uint_uint"), "uint, uint -> uint"),
                (concat!($id, "_int_uint"), "int, uint -> dyn"),
                (concat!($id, "_int_double"), "int, double -> dyn"),
                (concat!($id, "_double_int"), "double, int -> dyn"),
                (concat!($id, "_double_uint"), "double, uint -> dyn"),
                (concat!($id, "_uint_int"), "uint, int -> dyn"),
                (concat!($id, "_uint_double"), "uint, double -> dyn"),
                (concat!($id, "_list_double"), "list(double) -> double"),
                (concat!($id, "_list_int"), "list(int) -> int"),
                (concat!($id, "_list_uint"), "list(uint) -> uint"),
            ],
        }
    };
}

macro_rules! of_double {
    ($name:literal, $id:literal, $result:literal, $of:expr) => {
        Decl {
            name: $name,
            call: |_, args| match args {
                [Val::Double(value)] => Ok($of(*value)),
                _ => no_such_overload(),
            },
            overloads: &[($id, concat!("double -> ", $result))],
        }
    };
}

macro_rules! bits {
    ($name:literal, $id:literal, $of:tt) => {
        Decl {
            name: $name,
            call: |_, args| match args {
                [Val::Int(a), Val::Int(b)] => Ok(Val::Int(a $of b)),
                [Val::Uint(a), Val::Uint(b)] => Ok(Val::Uint(a $of b)),
                _ => no_such_overload(),
            },
            overloads: &[
                (concat!($id, "_int_int"), "int, int -> int"),
                (concat!($id, "_uint_uint"), "uint, uint -> uint"),
            ],
        }
    };
}

pub(super) const FUNCTIONS: &[Decl] = &[
    extreme!("math.@max", "math_@max", Ordering::Less),
    extreme!("math.@min", "math_@min", Ordering::Greater),
    of_double!("math.ceil", "math_ceil_double", "double", |v: f64| {
        Val::Double(v.ceil())
    }),
    of_double!("math.floor", "math_floor_double", "double", |v: f64| {
        Val::Double(v.floor())
    }),
    of_double!("math.round", "math_round_double", "double", |v: f64| {
        Val::Double(v.round())
    }),
    of_double!("math.trunc", "math_trunc_double", "double", |v: f64| {
        Val::Double(v.trunc())
    }),
    of_double!("math.isInf", "math_isInf_double", "bool", |v: f64| {
        Val::Bool(v.is_infinite())
    }),
    of_double!("math.isNaN", "math_isNaN_double", "bool", |v: f64| {
        Val::Bool(v.is_nan())
    }),
    of_double!("math.isFinite", "math_isFinite_double", "bool", |v: f64| {
        Val::Bool(v.is_finite())
    }),
    Decl {
        name: "math.abs",
        call: |_, args| match args {
            [Val::Double(value)] => Ok(Val::Double(value.abs())),
            [Val::Int(value)] => match value.checked_abs() {
                Some(value) => Ok(Val::Int(value)),
                None => Err(EvalError::new("integer overflow")),
            },
            [Val::Uint(value)] => Ok(Val::Uint(*value)),
            _ => no_such_overload(),
        },
        overloads: &[
            ("math_abs_double", "double -> double"),
            ("math_abs_int", "int -> int"),
            ("math_abs_uint", "uint -> uint"),
        ],
    },
    Decl {
        name: "math.sign",
        call: |_, args| match args {
            [Val::Double(value)] if value.is_nan() || *value == 0.0 => Ok(Val::Double(*value)),
            [Val::Double(value)] => Ok(Val::Double(value.signum())),
            [Val::Int(value)] => Ok(Val::Int(value.signum())),
            [Val::Uint(value)] => Ok(Val::Uint((*value).min(1))),
            _ => no_such_overload(),
        },
        overloads: &[
            ("math_sign_double", "double -> double"),
            ("math_sign_int", "int -> int"),
            ("math_sign_uint", "uint -> uint"),
        ],
    },
    Decl {
        name: "math.sqrt",
        call: |_, args| match args {
            [Val::Double(value)] => Ok(Val::Double(value.sqrt())),
            [Val::Int(value)] => Ok(Val::Double((*value as f64).sqrt())),
            [Val::Uint(value)] => Ok(Val::Double((*value as f64).sqrt())),
            _ => no_such_overload(),
        },
        overloads: &[
            ("math_sqrt_double", "double -> double"),
            ("math_sqrt_int", "int -> double"),
            ("math_sqrt_uint", "uint -> double"),
        ],
    },
    bits!("math.bitAnd", "math_bitAnd", &),
    bits!("math.bitOr", "math_bitOr", |),
    bits!("math.bitXor", "math_bitXor", ^),
    Decl {
        name: "math.bitNot",
        call: |_, args| match args {
            [Val::Int(value)] => Ok(Val::Int(!value)),
            [Val::Uint(value)] => Ok(Val::Uint(!value)),
            _ => no_such_overload(),
        },
        overloads: &[
            ("math_bitNot_int_int", "int -> int"),
            ("math_bitNot_uint_uint", "uint -> uint"),
        ],
    },
    Decl {
        name: "math.bitShiftLeft",
        call: |_, args| shift(args, |value, by| value.checked_shl(by).unwrap_or(0)),
        overloads: &[
            ("math_bitShiftLeft_int_int", "int, int -> int"),
            ("math_bitShiftLeft_uint_int", "uint, int -> uint"),
        ],
    },
    Decl {
        name: "math.bitShiftRight",
        call: |_, args| shift(args, |value, by| value.checked_shr(by).unwrap_or(0)),
        overloads: &[
            ("math_bitShiftRight_int_int", "int, int -> int"),
            ("math_bitShiftRight_uint_int", "uint, int -> uint"),
        ],
    },
];

/// Shifts logically, also signed integers.
fn shift<'a>(args: &[Val<'a>], with: fn(u64, u32) -> u64) -> Result<Val<'a>, EvalError> {
    let by = |by: &i64| {
        u32::try_from((*by).min(64))
            .map_err(|_| EvalError::new(format!("math.bitShift() negative offset: {by}")))
    };
    match args {
        [Val::Int(value), Val::Int(offset)] => {
            Ok(Val::Int(with(*value as u64, by(offset)?) as i64))
        }
        [Val::Uint(value), Val::Int(offset)] => Ok(Val::Uint(with(*value, by(offset)?))),
        _ => no_such_overload(),
    }
}

fn is_number(value: &Val<'_>) -> bool {
    matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_))
}

fn extreme<'a>(args: &[Val<'a>], worse: Ordering) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::List(list)] => of_list(list, worse),
        [value] if is_number(value) => Ok(value.clone()),
        [a, b] if is_number(a) && is_number(b) => Ok(if compare(a, b)? == Some(worse) {
            b.clone()
        } else {
            a.clone()
        }),
        _ => no_such_overload(),
    }
}

fn of_list<'a>(list: &List<'a>, worse: Ordering) -> Result<Val<'a>, EvalError> {
    let mut best: Option<Val<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !is_number(&item) {
            return no_such_overload();
        }
        best = match best {
            Some(best) if compare(&best, &item)? != Some(worse) => Some(best),
            _ => Some(item),
        };
    }
    best.ok_or_else(|| EvalError::new("argument must not be empty"))
}
