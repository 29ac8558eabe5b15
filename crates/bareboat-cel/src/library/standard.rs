//! The operators and functions of the core.

use super::{Decl, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::syntax::ast::operator;
use crate::value::Val;

/// Placeholder for operators, which are evaluated in place.
fn in_place<'a>(_: &mut Budget, _: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    no_such_overload()
}

macro_rules! operator {
    ($name:expr, $($overload:expr),+ $(,)?) => {
        Decl { name: $name, call: in_place, overloads: &[$($overload),+] }
    };
}

macro_rules! ordering {
    ($name:expr, $prefix:literal) => {
        Decl {
            name: $name,
            call: in_place,
            overloads: &[
                (concat!($prefix, "_bool"), "bool, bool -> bool"),
                (concat!($prefix, "_int64"), "int, int -> bool"),
                (concat!($prefix, "_int64_double"), "int, double -> bool"),
                (concat!($prefix, "_int64_uint64"), "int, uint -> bool"),
                (concat!($prefix, "_uint64"), "uint, uint -> bool"),
                (concat!($prefix, "_uint64_double"), "uint, double -> bool"),
                (concat!($prefix, "_uint64_int64"), "uint, int -> bool"),
                (concat!($prefix, "_double"), "double, double -> bool"),
                (concat!($prefix, "_double_int64"), "double, int -> bool"),
                (concat!($prefix, "_double_uint64"), "double, uint -> bool"),
                (concat!($prefix, "_string"), "string, string -> bool"),
                (concat!($prefix, "_bytes"), "bytes, bytes -> bool"),
                (
                    concat!($prefix, "_timestamp"),
                    "timestamp, timestamp -> bool",
                ),
                (concat!($prefix, "_duration"), "duration, duration -> bool"),
            ],
        }
    };
}

pub(super) const OPERATORS: &[Decl] = &[
    operator!(operator::CONDITIONAL, ("conditional", "bool, A, A -> A")),
    operator!(operator::AND, ("logical_and", "bool, bool -> bool")),
    operator!(operator::OR, ("logical_or", "bool, bool -> bool")),
    operator!(operator::NOT, ("logical_not", "bool -> bool")),
    operator!(
        operator::NOT_STRICTLY_FALSE,
        ("not_strictly_false", "bool -> bool")
    ),
    operator!(operator::EQUALS, ("equals", "A, A -> bool")),
    operator!(operator::NOT_EQUALS, ("not_equals", "A, A -> bool")),
    operator!(
        operator::ADD,
        ("add_bytes", "bytes, bytes -> bytes"),
        ("add_double", "double, double -> double"),
        ("add_duration_duration", "duration, duration -> duration"),
        ("add_duration_timestamp", "duration, timestamp -> timestamp"),
        ("add_timestamp_duration", "timestamp, duration -> timestamp"),
        ("add_int64", "int, int -> int"),
        ("add_list", "list(A), list(A) -> list(A)"),
        ("add_string", "string, string -> string"),
        ("add_uint64", "uint, uint -> uint"),
    ),
    operator!(
        operator::DIVIDE,
        ("divide_double", "double, double -> double"),
        ("divide_int64", "int, int -> int"),
        ("divide_uint64", "uint, uint -> uint"),
    ),
    operator!(
        operator::MODULO,
        ("modulo_int64", "int, int -> int"),
        ("modulo_uint64", "uint, uint -> uint"),
    ),
    operator!(
        operator::MULTIPLY,
        ("multiply_double", "double, double -> double"),
        ("multiply_int64", "int, int -> int"),
        ("multiply_uint64", "uint, uint -> uint"),
    ),
    operator!(
        operator::NEGATE,
        ("negate_double", "double -> double"),
        ("negate_int64", "int -> int"),
    ),
    operator!(
        operator::SUBTRACT,
        ("subtract_double", "double, double -> double"),
        (
            "subtract_duration_duration",
            "duration, duration -> duration"
        ),
        ("subtract_int64", "int, int -> int"),
        (
            "subtract_timestamp_duration",
            "timestamp, duration -> timestamp"
        ),
        (
            "subtract_timestamp_timestamp",
            "timestamp, timestamp -> duration"
        ),
        ("subtract_uint64", "uint, uint -> uint"),
    ),
    ordering!(operator::LESS, "less"),
    ordering!(operator::LESS_EQUALS, "less_equals"),
    ordering!(operator::GREATER, "greater"),
    ordering!(operator::GREATER_EQUALS, "greater_equals"),
    operator!(
        operator::INDEX,
        ("index_list", "list(A), int -> A"),
        ("index_map", "map(A, B), A -> B"),
    ),
    operator!(
        operator::IN,
        ("in_list", "A, list(A) -> bool"),
        ("in_map", "A, map(A, B) -> bool"),
    ),
];

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "size",
        call: size,
        overloads: &[
            ("size_bytes", "bytes -> int"),
            ("bytes_size", ".bytes -> int"),
            ("size_list", "list(A) -> int"),
            ("list_size", ".list(A) -> int"),
            ("size_map", "map(A, B) -> int"),
            ("map_size", ".map(A, B) -> int"),
            ("size_string", "string -> int"),
            ("string_size", ".string -> int"),
        ],
    },
    Decl {
        name: "contains",
        call: contains,
        overloads: &[("contains_string", ".string, string -> bool")],
    },
    Decl {
        name: "startsWith",
        call: starts_with,
        overloads: &[("starts_with_string", ".string, string -> bool")],
    },
    Decl {
        name: "endsWith",
        call: ends_with,
        overloads: &[("ends_with_string", ".string, string -> bool")],
    },
    Decl {
        name: "matches",
        call: super::regex::matches,
        overloads: &[
            ("matches", "string, string -> bool"),
            ("matches_string", ".string, string -> bool"),
        ],
    },
];

fn size<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::Special(_)] => no_such_overload(),
        [value] => match value.size() {
            Some(size) => Ok(Val::Int(size as i64)),
            None => no_such_overload(),
        },
        _ => no_such_overload(),
    }
}

fn contains<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(part)] => {
            Ok(Val::Bool(text.as_str().contains(part.as_str())))
        }
        _ => no_such_overload(),
    }
}

fn starts_with<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(part)] => {
            Ok(Val::Bool(text.as_str().starts_with(part.as_str())))
        }
        _ => no_such_overload(),
    }
}

fn ends_with<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(part)] => {
            Ok(Val::Bool(text.as_str().ends_with(part.as_str())))
        }
        _ => no_such_overload(),
    }
}
