//! The actual cost of calls.

use super::{AUTHORIZATION, LIST, PER_CHARACTER, PER_PATTERN_CHARACTER};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::syntax::ast::operator;
use crate::value::{Special, Val, characters};

/// How the cost of a call is computed from its arguments and result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// One, for any arguments.
    Unit,
    Authorization,
    Selector,
    /// The whole first argument is read, including nested values.
    Traversal,
    /// The first argument is read this many times.
    Reads(u8),
    /// The result is read twice.
    Result,
    Find,
    ContainsIp {
        text: bool,
    },
    ContainsCidr {
        text: bool,
    },
    Validate,
    Equality,
    /// The number of elements of the second argument.
    Elements,
    /// Both arguments are read.
    Join,
    Contains,
    /// Sets: compares every element of one with every element of the other, this many times.
    Pairs(u8),
    /// Lists: the length of the result.
    ResultList,
    Flatten,
    /// Lists: compares every element of the nth argument with every other.
    SelfCompare(u8),
}

fn read(size: u64, times: u64) -> u64 {
    (size as f64 * times as f64 * PER_CHARACTER).ceil() as u64
}

impl Rule {
    /// Returns the rule for a call; `overload` is empty unless it is certain.
    pub(crate) fn of(function: &str, overload: &str) -> Rule {
        Rule::of_overload(overload)
            .or_else(|| Rule::of_function(function, overload))
            .unwrap_or(match overload {
                "starts_with_string" | "ends_with_string" | "string_to_bytes"
                | "bytes_to_string" | "strings_quote" | "string_format" => Rule::Reads(1),
                "in_list" => Rule::Elements,
                "less_string"
                | "greater_string"
                | "less_equals_string"
                | "greater_equals_string"
                | "less_bytes"
                | "greater_bytes"
                | "less_equals_bytes"
                | "greater_equals_bytes"
                | "equals"
                | "not_equals" => Rule::Equality,
                "add_string" | "add_bytes" => Rule::Join,
                "matches_string" => Rule::Find,
                "contains_string" => Rule::Contains,
                _ => Rule::Unit,
            })
    }

    fn of_overload(overload: &str) -> Option<Rule> {
        Some(match overload {
            "list_sets_contains_list" | "list_sets_intersects_list" => Rule::Pairs(1),
            "list_sets_equivalent_list" => Rule::Pairs(2),
            "list_slice" | "lists_range" | "list_reverse" => Rule::ResultList,
            "list_flatten" | "list_flatten_int" => Rule::Flatten,
            "list_distinct" => Rule::SelfCompare(0),
            _ if overload.starts_with("list_") && overload.ends_with("_sort") => {
                Rule::SelfCompare(0)
            }
            _ if overload.ends_with("_sortByAssociatedKeys") => Rule::SelfCompare(1),
            _ => return None,
        })
    }

    fn of_function(function: &str, overload: &str) -> Option<Rule> {
        Some(match function {
            "check" => Rule::Authorization,
            "fieldSelector" | "labelSelector" => Rule::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Rule::Traversal,
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "jsonpatch.escapeKey"
            | "cidr"
            | "isIP"
            | "isCIDR"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => Rule::Reads(1),
            "ip" if overload == "cidr_ip" => Rule::Unit,
            "ip" => Rule::Reads(1),
            "replace" | "split" | "ip.isCanonical" => Rule::Reads(2),
            "join" => Rule::Result,
            "find" | "findAll" => Rule::Find,
            "containsIP" => Rule::ContainsIp {
                text: overload == "cidr_contains_ip_string",
            },
            "containsCIDR" => Rule::ContainsCidr {
                text: overload == "cidr_contains_cidr_string",
            },
            "validate" => Rule::Validate,
            operator::EQUALS => Rule::Equality,
            _ => return None,
        })
    }

    /// Returns the cost of an operation on two values.
    #[inline]
    pub(crate) fn of_pair(self, a: &Val<'_>, b: &Val<'_>) -> u64 {
        match self {
            Rule::Unit => 1,
            Rule::Equality => match (a, b) {
                (Val::Special(_), _) => 1,
                // A character takes at most four bytes, so only the shorter text needs to be
                // counted.
                (Val::String(a), Val::String(b)) => {
                    let (short, long) = match a.as_str().len() <= b.as_str().len() {
                        true => (a.as_str(), b.as_str()),
                        false => (b.as_str(), a.as_str()),
                    };
                    let size = match short.len() <= long.len() / 4 {
                        true => characters(short),
                        false => characters(short).min(characters(long)),
                    };
                    read(size as u64, 1)
                }
                _ => read(a.cost_size().min(b.cost_size()), 1),
            },
            Rule::Join => read(a.cost_size() + b.cost_size(), 1),
            Rule::Elements => b.cost_size(),
            Rule::Contains => read(a.cost_size(), 1).saturating_mul(read(b.cost_size(), 1)),
            Rule::Find => matching(a.cost_size(), b.cost_size()),
            _ => 1,
        }
    }

    /// Returns the cost of a call.
    pub(crate) fn of_call(
        self,
        args: &[Val<'_>],
        result: Option<&Val<'_>>,
        budget: &mut Budget,
    ) -> Result<u64, EvalError> {
        let size = |index: usize| args.get(index).map_or(1, Val::cost_size);
        Ok(match self {
            Rule::Unit => 1,
            Rule::Authorization => AUTHORIZATION,
            Rule::Selector => {
                // A requirement takes at least two characters, and a list and an object.
                let length = size(1);
                let requirements = (length as f64 * 0.5).ceil();
                LIST + read(length, 1) + (requirements * 50.0).ceil() as u64
            }
            Rule::Traversal => match args.first() {
                Some(first) => traversal(first, budget)?,
                None => 0,
            },
            Rule::Reads(times) => read(size(0), times.into()),
            Rule::Result => read(result.map_or(1, Val::cost_size), 2),
            Rule::Find => matching(size(0), size(1)),
            Rule::ContainsIp { text } => {
                read(size(0) * 2, 1) + if text { read(size(1), 1) } else { 0 }
            }
            Rule::ContainsCidr { text } => {
                let compared = read(size(0) * 2, 1) + read(size(0), 1) + 1;
                compared + if text { read(size(1), 1) } else { 0 }
            }
            Rule::Validate => match args.first().and_then(Val::as_special) {
                Some(Special::Format(format)) => matching(size(1), format.pattern_size),
                _ => 1,
            },
            Rule::Equality | Rule::Elements | Rule::Join | Rule::Contains => match args {
                [a, b] => self.of_pair(a, b),
                _ => 1,
            },
            Rule::Pairs(factor) => {
                1 + size(0)
                    .saturating_mul(size(1))
                    .saturating_mul(factor.into())
            }
            Rule::ResultList => result.map_or(1, Val::cost_size) + 1 + LIST,
            Rule::Flatten => {
                let depth = match args.get(1) {
                    Some(Val::Int(depth)) => (*depth).max(0) as u64,
                    _ => 1,
                };
                size(0).saturating_mul(depth).saturating_add(1 + LIST)
            }
            Rule::SelfCompare(index) => {
                let list = args.get(usize::from(index)).and_then(Val::as_list);
                let length = list.map_or(0, |list| list.len()) as f64;
                let first = list.and_then(|list| list.get(0));
                let factor = match first {
                    Some(Ok(Val::String(_) | Val::Bytes(_))) => 2.0 + PER_CHARACTER,
                    _ => 2.0,
                };
                (length * length * factor) as u64 + 1 + LIST
            }
        })
    }
}

/// Returns the cost of matching a text with a pattern of that many characters.
fn matching(text: u64, pattern: u64) -> u64 {
    let text = ((1.0 + text as f64) * PER_CHARACTER).ceil() as u64;
    let pattern = (pattern as f64 * PER_PATTERN_CHARACTER).ceil() as u64;
    text.saturating_mul(pattern)
}

/// Returns the cost of reading a value and all nested values. A value may contain another many
/// times, so this counts as work.
fn traversal(value: &Val<'_>, budget: &mut Budget) -> Result<u64, EvalError> {
    budget.work(1)?;
    Ok(match value {
        Val::String(text) => (text.as_str().len() as f64 * PER_CHARACTER) as u64,
        Val::Bytes(bytes) => (bytes.len() as f64 * PER_CHARACTER) as u64,
        Val::List(list) => {
            let mut sum: u64 = 0;
            for item in list.iter() {
                sum = sum.saturating_add(match item {
                    Ok(item) => traversal(&item, budget)?,
                    Err(_) => 1,
                });
            }
            sum
        }
        Val::Map(map) => {
            let mut sum: u64 = 0;
            for key in map.keys() {
                sum = sum.saturating_add(traversal(&key, budget)?);
                if let Some(Ok(value)) = map.get(&key) {
                    sum = sum.saturating_add(traversal(&value, budget)?);
                }
            }
            sum
        }
        _ => 1,
    })
}
