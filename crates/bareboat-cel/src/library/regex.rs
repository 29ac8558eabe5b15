//! Regular expressions: `matches` of the core, `find` and `findAll` of Kubernetes.

use std::sync::Arc;

use super::{Decl, go_regex, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::value::Val;

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "find",
        call: find,
        overloads: &[("string_find_string", ".string, string -> string")],
    },
    Decl {
        name: "findAll",
        call: find_all,
        overloads: &[
            ("string_find_all_string", ".string, string -> list(string)"),
            (
                "string_find_all_string_int",
                ".string, string, int -> list(string)",
            ),
        ],
    },
];

pub(super) fn matches<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            let regex = go_regex::shared(pattern.as_str()).map_err(EvalError::new)?;
            Ok(Val::Bool(regex.is_match(text.as_str())))
        }
        _ => no_such_overload(),
    }
}

fn compile(pattern: &str) -> Result<Arc<regex::Regex>, EvalError> {
    go_regex::shared(pattern).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

fn find<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            let found = compile(pattern.as_str())?
                .find(text.as_str())
                .map(|m| m.as_str());
            Ok(Val::text(found.unwrap_or_default()))
        }
        _ => no_such_overload(),
    }
}

fn find_all<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (text, pattern, limit) = match args {
        [Val::String(text), Val::String(pattern)] => (text, pattern, -1),
        [Val::String(text), Val::String(pattern), Val::Int(limit)] => (text, pattern, *limit),
        _ => return no_such_overload(),
    };
    let regex = compile(pattern.as_str())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = regex.find_iter(text.as_str()).take(limit);
    Ok(Val::strings(found.map(|m| m.as_str())))
}
