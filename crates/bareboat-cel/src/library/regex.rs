//! Regular expressions: `matches` of the core, `find` and `findAll` of Kubernetes.

use std::sync::Arc;

use super::go_regex::{self, Compiled};
use super::{Decl, no_such_overload};
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

/// The work of compiling one part of a pattern, in search steps.
const COMPILING: u64 = 16;

/// Returns the compiled form of a pattern. Patterns may come from data, so compiling them is
/// charged.
fn compile(budget: &mut Budget, pattern: &str, prefix: &str) -> Result<Arc<Compiled>, EvalError> {
    if let Some(known) = go_regex::known(pattern) {
        return Ok(known);
    }
    budget.work(COMPILING * pattern.len() as u64)?;
    let compiled =
        go_regex::shared(pattern).map_err(|error| EvalError::new(format!("{prefix}{error}")))?;
    let size = compiled.size();
    budget.work(COMPILING * (size.instructions + size.ranges))?;
    Ok(compiled)
}

pub(super) fn matches<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            let regex = compile(budget, pattern.as_str(), "")?;
            let found = budget.search(|steps| regex.is_match(text.as_str(), steps))?;
            Ok(Val::Bool(found))
        }
        _ => no_such_overload(),
    }
}

fn find<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(pattern)] => {
            let text = text.as_str();
            let regex = compile(budget, pattern.as_str(), "Illegal regex: ")?;
            let found = budget.search(|steps| regex.find_at(text, 0, steps))?;
            let (start, end) = found.unwrap_or_default();
            Ok(Val::text(&text[start..end]))
        }
        _ => no_such_overload(),
    }
}

fn find_all<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (text, pattern, limit) = match args {
        [Val::String(text), Val::String(pattern)] => (text.as_str(), pattern, -1),
        [Val::String(text), Val::String(pattern), Val::Int(limit)] => {
            (text.as_str(), pattern, *limit)
        }
        _ => return no_such_overload(),
    };
    let regex = compile(budget, pattern.as_str(), "Illegal regex: ")?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut all = Vec::new();
    let mut from = 0;
    // The end of the last match: an empty match may not follow it immediately.
    let mut last = None;
    while all.len() < limit && from <= text.len() {
        let found = budget.search(|steps| regex.find_at(text, from, steps))?;
        let Some((start, end)) = found else {
            break;
        };
        if start != end || last != Some(end) {
            budget.allocate_list(1)?;
            budget.allocate(end - start + 16)?;
            all.push(Val::text(&text[start..end]));
            last = Some(end);
        }
        from = match start == end {
            true => end + text[end..].chars().next().map_or(1, char::len_utf8),
            false => end,
        };
    }
    Ok(Val::list(all))
}
