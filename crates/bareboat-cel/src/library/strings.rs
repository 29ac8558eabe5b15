//! The string functions of cel-go's extension.
//!
//! Positions count characters, not bytes.

use super::{Decl, interpolate, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::value::{List, Val, characters};

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "charAt",
        call: char_at,
        overloads: &[("string_char_at_int", ".string, int -> string")],
    },
    Decl {
        name: "indexOf",
        call: index_of,
        overloads: &[
            ("string_index_of_string", ".string, string -> int"),
            ("string_index_of_string_int", ".string, string, int -> int"),
        ],
    },
    Decl {
        name: "lastIndexOf",
        call: last_index_of,
        overloads: &[
            ("string_last_index_of_string", ".string, string -> int"),
            (
                "string_last_index_of_string_int",
                ".string, string, int -> int",
            ),
        ],
    },
    Decl {
        name: "lowerAscii",
        call: |budget, args| of_string(budget, args, |text| text.to_ascii_lowercase()),
        overloads: &[("string_lower_ascii", ".string -> string")],
    },
    Decl {
        name: "upperAscii",
        call: |budget, args| of_string(budget, args, |text| text.to_ascii_uppercase()),
        overloads: &[("string_upper_ascii", ".string -> string")],
    },
    Decl {
        name: "trim",
        call: |budget, args| of_string(budget, args, |text| text.trim().to_owned()),
        overloads: &[("string_trim", ".string -> string")],
    },
    Decl {
        name: "replace",
        call: replace,
        overloads: &[
            (
                "string_replace_string_string",
                ".string, string, string -> string",
            ),
            (
                "string_replace_string_string_int",
                ".string, string, string, int -> string",
            ),
        ],
    },
    Decl {
        name: "split",
        call: split,
        overloads: &[
            ("string_split_string", ".string, string -> list(string)"),
            (
                "string_split_string_int",
                ".string, string, int -> list(string)",
            ),
        ],
    },
    Decl {
        name: "substring",
        call: substring,
        overloads: &[
            ("string_substring_int", ".string, int -> string"),
            ("string_substring_int_int", ".string, int, int -> string"),
        ],
    },
    Decl {
        name: "join",
        call: join,
        overloads: &[
            ("list_join", ".list(string) -> string"),
            ("list_join_string", ".list(string), string -> string"),
        ],
    },
    Decl {
        name: "strings.quote",
        call: |budget, args| of_string(budget, args, quote),
        overloads: &[("strings_quote", "string -> string")],
    },
];

/// `format` in Kubernetes' version: numbers with English separators.
pub(super) const FORMAT: &[Decl] = &[Decl {
    name: "format",
    call: |budget, args| interpolate::format(budget, args, interpolate::Dialect::Kubernetes),
    overloads: &[("string_format", ".string, list(dyn) -> string")],
}];

/// Functions of the latest version of the extension.
pub(super) const LATEST: &[Decl] = &[
    Decl {
        name: "format",
        call: |budget, args| interpolate::format(budget, args, interpolate::Dialect::Latest),
        overloads: &[("string_format", ".string, list(dyn) -> string")],
    },
    Decl {
        name: "reverse",
        call: |budget, args| of_string(budget, args, |text| text.chars().rev().collect()),
        overloads: &[("string_reverse", ".string -> string")],
    },
];

pub(super) const JSON_PATCH: &[Decl] = &[Decl {
    name: "jsonpatch.escapeKey",
    call: |budget, args| {
        of_string(budget, args, |key| {
            key.replace('~', "~0").replace('/', "~1")
        })
    },
    overloads: &[("string_jsonpatch_escapeKey_string", "string -> string")],
}];

fn of_string<'a>(
    budget: &mut Budget,
    args: &[Val<'a>],
    of: impl Fn(&str) -> String,
) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text)] => {
            let text = of(text.as_str());
            budget.allocate(text.len())?;
            Ok(Val::text(text))
        }
        _ => no_such_overload(),
    }
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

/// Returns the byte offset of the nth character; the end counts as a character.
fn byte_at(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    let starts = text.char_indices().map(|(at, _)| at);
    starts.chain([text.len()]).nth(index)
}

fn char_at<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::String(text), Val::Int(index)] = args else {
        return no_such_overload();
    };
    let at = byte_at(text.as_str(), *index).ok_or_else(|| out_of_range(*index))?;
    let found = text.as_str()[at..].chars().next();
    Ok(Val::text(found.map(String::from).unwrap_or_default()))
}

fn index_of<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (text, part, offset) = match args {
        [Val::String(text), Val::String(part)] => (text.as_str(), part.as_str(), 0),
        [Val::String(text), Val::String(part), Val::Int(offset)] => {
            (text.as_str(), part.as_str(), *offset)
        }
        _ => return no_such_overload(),
    };
    if part.is_empty() {
        return Ok(Val::Int(offset));
    }
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    let found = byte_at(text, offset)
        .and_then(|start| text[start..].find(part).map(|at| start + at))
        .map_or(-1, |at| characters(&text[..at]) as i64);
    Ok(Val::Int(found))
}

fn last_index_of<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (text, part, offset) = match args {
        [Val::String(text), Val::String(part)] => (text.as_str(), part.as_str(), None),
        [Val::String(text), Val::String(part), Val::Int(offset)] => {
            (text.as_str(), part.as_str(), Some(*offset))
        }
        _ => return no_such_overload(),
    };
    let length = characters(text) as i64;
    if part.is_empty() {
        return Ok(Val::Int(offset.unwrap_or(length)));
    }
    let end = match offset {
        Some(offset) if offset < 0 => return Err(out_of_range(offset)),
        Some(offset) if offset >= length => return Ok(Val::Int(-1)),
        // A match may begin at the offset at the latest, and extends beyond it.
        Some(offset) => offset + characters(part) as i64,
        None => length,
    };
    let end = byte_at(text, end).unwrap_or(text.len());
    let found = text[..end].rfind(part);
    Ok(Val::Int(
        found.map_or(-1, |at| characters(&text[..at]) as i64),
    ))
}

fn replace<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    match args {
        [Val::String(text), Val::String(from), Val::String(to)] => replaced(
            budget,
            (text.as_str(), from.as_str(), to.as_str()),
            usize::MAX,
        ),
        [
            Val::String(text),
            Val::String(from),
            Val::String(to),
            Val::Int(count),
        ] => replaced(
            budget,
            (text.as_str(), from.as_str(), to.as_str()),
            usize::try_from(*count).unwrap_or(usize::MAX),
        ),
        _ => no_such_overload(),
    }
}

/// Replaces up to `limit` occurrences of a part. The result can be as long as the product of its
/// parts, so its memory is counted first.
fn replaced<'a>(
    budget: &mut Budget,
    (text, from, to): (&str, &str, &str),
    count: usize,
) -> Result<Val<'a>, EvalError> {
    let found = text.matches(from).take(count).count();
    let length = text.len() - found * from.len() + found.saturating_mul(to.len());
    budget.allocate(length)?;
    Ok(Val::text(text.replacen(from, to, count)))
}

fn split<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (text, separator, limit) = match args {
        [Val::String(text), Val::String(separator)] => (text.as_str(), separator.as_str(), -1),
        [Val::String(text), Val::String(separator), Val::Int(limit)] => {
            (text.as_str(), separator.as_str(), *limit)
        }
        _ => return no_such_overload(),
    };
    let pieces = match separator {
        "" => text.len(),
        separator => text.matches(separator).count(),
    };
    let limit_or_all = usize::try_from(limit).unwrap_or(usize::MAX);
    budget.allocate(text.len())?;
    budget.allocate_list(2 * (1 + pieces.min(limit_or_all)))?;
    Ok(match (usize::try_from(limit), separator) {
        (Ok(0), _) => Val::list(Vec::new()),
        (limit, "") => {
            // Splits into characters; the last piece takes the rest.
            let limit = limit.unwrap_or(usize::MAX);
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).take(limit).collect();
            let ends = starts.iter().skip(1).copied().chain([text.len()]);
            Val::strings(
                starts
                    .iter()
                    .zip(ends)
                    .map(|(start, end)| &text[*start..end]),
            )
        }
        (Ok(limit), separator) => Val::strings(text.splitn(limit, separator)),
        (Err(_), separator) => Val::strings(text.split(separator)),
    })
}

fn substring<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (text, start, end) = match args {
        [Val::String(text), Val::Int(start)] => (text.as_str(), *start, None),
        [Val::String(text), Val::Int(start), Val::Int(end)] => (text.as_str(), *start, Some(*end)),
        _ => return no_such_overload(),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(EvalError::new(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let first = byte_at(text, start).ok_or_else(|| out_of_range(start))?;
    let last = match end {
        Some(end) => byte_at(text, end).ok_or_else(|| out_of_range(end))?,
        None => text.len(),
    };
    budget.allocate(last - first)?;
    Ok(Val::text(&text[first..last]))
}

fn join<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (list, separator): (&List<'a>, &str) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::String(separator)] => (list, separator.as_str()),
        _ => return no_such_overload(),
    };
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            budget.allocate(separator.len())?;
            out.push_str(separator);
        }
        match item? {
            Val::String(text) => {
                // One extra for the work of an empty text.
                budget.allocate(1 + text.as_str().len())?;
                out.push_str(text.as_str());
            }
            other => return Err(EvalError::new(format!("join: invalid input: {other}"))),
        }
    }
    Ok(Val::text(out))
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
