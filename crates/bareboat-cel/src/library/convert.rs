//! Conversions between types.

use super::{Decl, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::value::time::{from_unix, parse_duration, parse_timestamp};
use crate::value::{Special, Val, print};

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "type",
        call: type_of,
        overloads: &[("type", "A -> type(A)")],
    },
    Decl {
        name: "dyn",
        call: dyn_of,
        overloads: &[("to_dyn", "A -> dyn")],
    },
    Decl {
        name: "bool",
        call: to_bool,
        overloads: &[
            ("bool_to_bool", "bool -> bool"),
            ("string_to_bool", "string -> bool"),
        ],
    },
    Decl {
        name: "bytes",
        call: to_bytes,
        overloads: &[
            ("bytes_to_bytes", "bytes -> bytes"),
            ("string_to_bytes", "string -> bytes"),
        ],
    },
    Decl {
        name: "double",
        call: to_double,
        overloads: &[
            ("double_to_double", "double -> double"),
            ("int64_to_double", "int -> double"),
            ("string_to_double", "string -> double"),
            ("uint64_to_double", "uint -> double"),
        ],
    },
    Decl {
        name: "duration",
        call: to_duration,
        overloads: &[
            ("duration_to_duration", "duration -> duration"),
            ("int64_to_duration", "int -> duration"),
            ("string_to_duration", "string -> duration"),
        ],
    },
    Decl {
        name: "int",
        call: to_int,
        overloads: &[
            ("int64_to_int64", "int -> int"),
            ("double_to_int64", "double -> int"),
            ("duration_to_int64", "duration -> int"),
            ("string_to_int64", "string -> int"),
            ("timestamp_to_int64", "timestamp -> int"),
            ("uint64_to_int64", "uint -> int"),
        ],
    },
    Decl {
        name: "string",
        call: to_string,
        overloads: &[
            ("string_to_string", "string -> string"),
            ("bool_to_string", "bool -> string"),
            ("bytes_to_string", "bytes -> string"),
            ("double_to_string", "double -> string"),
            ("duration_to_string", "duration -> string"),
            ("int64_to_string", "int -> string"),
            ("timestamp_to_string", "timestamp -> string"),
            ("uint64_to_string", "uint -> string"),
        ],
    },
    Decl {
        name: "timestamp",
        call: to_timestamp,
        overloads: &[
            ("timestamp_to_timestamp", "timestamp -> timestamp"),
            ("int64_to_timestamp", "int -> timestamp"),
            ("string_to_timestamp", "string -> timestamp"),
        ],
    },
    Decl {
        name: "uint",
        call: to_uint,
        overloads: &[
            ("uint64_to_uint64", "uint -> uint"),
            ("double_to_uint64", "double -> uint"),
            ("int64_to_uint64", "int -> uint"),
            ("string_to_uint64", "string -> uint"),
        ],
    },
];

fn type_of<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [value] => Ok(Val::Type(value.type_of())),
        _ => no_such_overload(),
    }
}

fn dyn_of<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [value] => Ok(value.clone()),
        _ => no_such_overload(),
    }
}

fn failed<'a>(from: &str, to: &str) -> Result<Val<'a>, EvalError> {
    Err(EvalError::new(format!(
        "type conversion error from '{from}' to '{to}'"
    )))
}

fn to_bool<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::Bool(value)] => Ok(Val::Bool(*value)),
        [Val::String(text)] => match text.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            _ => failed("string", "bool"),
        },
        _ => no_such_overload(),
    }
}

fn to_bytes<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [value @ Val::Bytes(_)] => Ok(value.clone()),
        [Val::String(text)] => {
            budget.allocate(text.as_str().len())?;
            Ok(Val::bytes(text.as_str().as_bytes()))
        }
        _ => no_such_overload(),
    }
}

fn to_double<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    Ok(Val::Double(match args {
        [Val::Double(value)] => *value,
        [Val::Int(value)] => *value as f64,
        [Val::Uint(value)] => *value as f64,
        [Val::String(text)] => match text.as_str().trim_start_matches('+').parse() {
            Ok(value) => value,
            Err(_) => return failed("string", "double"),
        },
        _ => return no_such_overload(),
    }))
}

fn to_duration<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [value @ Val::Duration(_)] => Ok(value.clone()),
        [Val::Int(nanoseconds)] => Ok(Val::Duration(*nanoseconds)),
        [Val::String(text)] => match parse_duration(text.as_str()) {
            Some(duration) => Ok(Val::Duration(duration)),
            None => failed("string", "google.protobuf.Duration"),
        },
        _ => no_such_overload(),
    }
}

const OVERFLOW: &str = "integer overflow";

fn to_int<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    Ok(Val::Int(match args {
        [Val::Int(value)] => *value,
        [Val::Uint(value)] => i64::try_from(*value).map_err(|_| EvalError::new(OVERFLOW))?,
        // The bounds are excluded: as doubles they do not fit an int.
        [Val::Double(value)] if *value > i64::MIN as f64 && *value < i64::MAX as f64 => {
            *value as i64
        }
        [Val::Double(_)] => return Err(EvalError::new(OVERFLOW)),
        [Val::Duration(nanoseconds)] => *nanoseconds,
        [Val::Timestamp(timestamp)] => timestamp.unix_seconds(),
        [Val::String(text)] => match text.as_str().parse() {
            Ok(value) => value,
            Err(_) => return failed("string", "int"),
        },
        _ => return no_such_overload(),
    }))
}

fn to_uint<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    const OVERFLOW: &str = "unsigned integer overflow";
    Ok(Val::Uint(match args {
        [Val::Uint(value)] => *value,
        [Val::Int(value)] => u64::try_from(*value).map_err(|_| EvalError::new(OVERFLOW))?,
        [Val::Double(value)] if *value >= 0.0 && *value < u64::MAX as f64 => *value as u64,
        [Val::Double(_)] => return Err(EvalError::new(OVERFLOW)),
        [Val::String(text)] => match text.as_str().parse() {
            Ok(value) if !text.as_str().starts_with('+') => value,
            _ => return failed("string", "uint"),
        },
        _ => return no_such_overload(),
    }))
}

pub(super) fn to_string<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [value @ Val::String(_)] => Ok(value.clone()),
        [Val::Bytes(bytes)] => match std::str::from_utf8(bytes) {
            Ok(text) => {
                budget.allocate(text.len())?;
                Ok(Val::text(text))
            }
            Err(_) => Err(EvalError::new(
                "invalid UTF-8 in bytes, cannot convert to string",
            )),
        },
        [
            value @ (Val::Bool(_)
            | Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::Duration(_)
            | Val::Timestamp(_)),
        ] => Ok(Val::text(print(value))),
        [Val::Special(special)] => match &*special.0 {
            Special::Ip(_) | Special::Cidr(_) => {
                Ok(Val::text(special.0.text().unwrap_or_default()))
            }
            _ => no_such_overload(),
        },
        _ => no_such_overload(),
    }
}

fn to_timestamp<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [value @ Val::Timestamp(_)] => Ok(value.clone()),
        [Val::Int(seconds)] => match from_unix(*seconds) {
            Some(timestamp) => Ok(Val::Timestamp(timestamp)),
            None => Err(EvalError::new("timestamp overflow")),
        },
        [Val::String(text)] => match parse_timestamp(text.as_str()) {
            Some(timestamp) => Ok(Val::Timestamp(timestamp)),
            None => failed("string", "google.protobuf.Timestamp"),
        },
        _ => no_such_overload(),
    }
}
