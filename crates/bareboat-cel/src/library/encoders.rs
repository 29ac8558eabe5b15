//! base64 functions.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::{Decl, no_such_overload};
use crate::error::EvalError;
use crate::value::Val;

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "base64.decode",
        call: |budget, args| match args {
            [Val::String(text)] => {
                budget.allocate(text.as_str().len())?;
                let decoded = STANDARD
                    .decode(text.as_str())
                    .or_else(|_| STANDARD_NO_PAD.decode(text.as_str()));
                match decoded {
                    Ok(bytes) => Ok(Val::bytes(bytes)),
                    Err(_) => Err(EvalError::new("illegal base64 data")),
                }
            }
            _ => no_such_overload(),
        },
        overloads: &[("base64_decode_string", "string -> bytes")],
    },
    Decl {
        name: "base64.encode",
        call: |budget, args| match args {
            [Val::Bytes(bytes)] => {
                budget.allocate(2 * bytes.len())?;
                Ok(Val::text(STANDARD.encode(bytes)))
            }
            _ => no_such_overload(),
        },
        overloads: &[("base64_encode_bytes", "bytes -> string")],
    },
];
