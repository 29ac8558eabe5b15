//! List functions: Kubernetes' own, cel-go's extension, and helpers of comprehensions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Decl, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::eval::arithmetic::add;
use crate::syntax::ast::operator;
use crate::value::{Entries, List, MapVal, Val, compare, equal};

macro_rules! each_comparable {
    ($name:literal, $call:expr, $before:literal, $after:literal, $sig:tt) => {
        Decl {
            name: $name,
            call: $call,
            overloads: &[
                each_comparable!(@ $sig, $before, $after, "int"),
                each_comparable!(@ $sig, $before, $after, "uint"),
                each_comparable!(@ $sig, $before, $after, "double"),
                each_comparable!(@ $sig, $before, $after, "bool"),
                each_comparable!(@ $sig, $before, $after, "duration"),
                each_comparable!(@ $sig, $before, $after, "timestamp"),
                each_comparable!(@ $sig, $before, $after, "string"),
                each_comparable!(@ $sig, $before, $after, "bytes"),
            ],
        }
    };
    (@ bool, $before:literal, $after:literal, $t:literal) => {
        (concat!($before, $t, $after), concat!(".list(", $t, ") -> bool"))
    };
    (@ item, $before:literal, $after:literal, $t:literal) => {
        (concat!($before, $t, $after, $t), concat!(".list(", $t, ") -> ", $t))
    };
}

pub(super) const KUBERNETES: &[Decl] = &[
    each_comparable!("isSorted", is_sorted, "list_", "_is_sorted_bool", bool),
    each_comparable!(
        "min",
        |_, args| extreme(args, "min", Ordering::Greater),
        "list_",
        "_min_",
        item
    ),
    each_comparable!(
        "max",
        |_, args| extreme(args, "max", Ordering::Less),
        "list_",
        "_max_",
        item
    ),
    Decl {
        name: "sum",
        call: |budget, args| sum(budget, args, Val::Int(0)),
        overloads: &[("list_int_sum_int", ".list(int) -> int")],
    },
    Decl {
        name: "sum",
        call: |budget, args| sum(budget, args, Val::Uint(0)),
        overloads: &[("list_uint_sum_uint", ".list(uint) -> uint")],
    },
    Decl {
        name: "sum",
        call: |budget, args| sum(budget, args, Val::Double(0.0)),
        overloads: &[("list_double_sum_double", ".list(double) -> double")],
    },
    Decl {
        name: "sum",
        call: |budget, args| sum(budget, args, Val::Duration(0)),
        overloads: &[("list_duration_sum_duration", ".list(duration) -> duration")],
    },
    Decl {
        name: "indexOf",
        call: index_of,
        overloads: &[("list_a_index_of_int", ".list(A), A -> int")],
    },
    Decl {
        name: "lastIndexOf",
        call: last_index_of,
        overloads: &[("list_a_last_index_of_int", ".list(A), A -> int")],
    },
];

pub(super) const EXTENSION: &[Decl] = &[
    Decl {
        name: "slice",
        call: slice,
        overloads: &[("list_slice", ".list(T), int, int -> list(T)")],
    },
    Decl {
        name: "flatten",
        call: flatten,
        overloads: &[
            ("list_flatten", ".list(list(T)) -> list(T)"),
            ("list_flatten_int", ".list(dyn), int -> list(dyn)"),
        ],
    },
    Decl {
        name: "sort",
        call: |budget, args| match args {
            [Val::List(list)] => sort(list, list, budget),
            _ => no_such_overload(),
        },
        overloads: &[
            ("list_int_sort", ".list(int) -> list(int)"),
            ("list_uint_sort", ".list(uint) -> list(uint)"),
            ("list_double_sort", ".list(double) -> list(double)"),
            ("list_bool_sort", ".list(bool) -> list(bool)"),
            (
                "list_google.protobuf.Duration_sort",
                ".list(duration) -> list(duration)",
            ),
            (
                "list_google.protobuf.Timestamp_sort",
                ".list(timestamp) -> list(timestamp)",
            ),
            ("list_string_sort", ".list(string) -> list(string)"),
            ("list_bytes_sort", ".list(bytes) -> list(bytes)"),
        ],
    },
    Decl {
        name: operator::SORT_BY_KEYS,
        call: |budget, args| match args {
            [Val::List(list), Val::List(keys)] => sort(list, keys, budget),
            _ => no_such_overload(),
        },
        overloads: &[
            (
                "list_int_sortByAssociatedKeys",
                ".list(T), list(int) -> list(T)",
            ),
            (
                "list_uint_sortByAssociatedKeys",
                ".list(T), list(uint) -> list(T)",
            ),
            (
                "list_double_sortByAssociatedKeys",
                ".list(T), list(double) -> list(T)",
            ),
            (
                "list_bool_sortByAssociatedKeys",
                ".list(T), list(bool) -> list(T)",
            ),
            (
                "list_google.protobuf.Duration_sortByAssociatedKeys",
                ".list(T), list(duration) -> list(T)",
            ),
            (
                "list_google.protobuf.Timestamp_sortByAssociatedKeys",
                ".list(T), list(timestamp) -> list(T)",
            ),
            (
                "list_string_sortByAssociatedKeys",
                ".list(T), list(string) -> list(T)",
            ),
            (
                "list_bytes_sortByAssociatedKeys",
                ".list(T), list(bytes) -> list(T)",
            ),
        ],
    },
    Decl {
        name: "lists.range",
        call: range,
        overloads: &[("lists_range", "int -> list(int)")],
    },
    Decl {
        name: "reverse",
        call: |budget, args| match args {
            [Val::List(list)] => {
                budget.allocate_list(list.len())?;
                let mut items = list.to_vec()?;
                items.reverse();
                Ok(Val::list(items))
            }
            _ => no_such_overload(),
        },
        overloads: &[("list_reverse", ".list(T) -> list(T)")],
    },
    Decl {
        name: "distinct",
        call: distinct,
        overloads: &[("list_distinct", ".list(T) -> list(T)")],
    },
];

pub(super) const COMPREHENSIONS: &[Decl] = &[Decl {
    name: operator::MAP_INSERT,
    call: map_insert,
    overloads: &[
        ("@mapInsert_map_key_value", "map(K, V), K, V -> map(K, V)"),
        ("@mapInsert_map_map", "map(K, V), map(K, V) -> map(K, V)"),
    ],
}];

fn is_sorted<'a>(_: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::List(list)] = args else {
        return no_such_overload();
    };
    let mut previous: Option<Val<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(previous) = &previous
            && compare(previous, &item)? == Some(Ordering::Greater)
        {
            return Ok(Val::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Val::Bool(true))
}

fn extreme<'a>(args: &[Val<'a>], name: &str, worse: Ordering) -> Result<Val<'a>, EvalError> {
    let [Val::List(list)] = args else {
        return no_such_overload();
    };
    let mut best: Option<Val<'a>> = None;
    for item in list.iter() {
        let item = item?;
        best = match best {
            Some(best) if compare(&best, &item)? != Some(worse) => Some(best),
            _ => Some(item),
        };
    }
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn sum<'a>(budget: &mut Budget, args: &[Val<'a>], zero: Val<'a>) -> Result<Val<'a>, EvalError> {
    let [Val::List(list)] = args else {
        return no_such_overload();
    };
    let mut total: Option<Val<'a>> = None;
    for item in list.iter() {
        total = Some(match total {
            Some(total) => add(total, item?, budget)?,
            None => item?,
        });
    }
    Ok(total.unwrap_or(zero))
}

fn index_of<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::List(list), sought] = args else {
        return no_such_overload();
    };
    for (index, item) in list.iter().enumerate() {
        if equal(&item?, sought, budget)? {
            return Ok(Val::Int(index as i64));
        }
    }
    Ok(Val::Int(-1))
}

fn last_index_of<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::List(list), sought] = args else {
        return no_such_overload();
    };
    for index in (0..list.len()).rev() {
        if let Some(item) = list.get(index)
            && equal(&item?, sought, budget)?
        {
            return Ok(Val::Int(index as i64));
        }
    }
    Ok(Val::Int(-1))
}

fn slice<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else {
        return no_such_overload();
    };
    let refuse = |why: &str| {
        Err(EvalError::new(format!(
            "cannot slice({start}, {end}), {why}"
        )))
    };
    if *start < 0 || *end < 0 {
        return refuse("negative indexes not supported");
    }
    if start > end {
        return refuse("start index must be less than or equal to end index");
    }
    if *end > list.len() as i64 {
        return refuse(&format!("list is length {}", list.len()));
    }
    budget.allocate_list((*end - *start) as usize)?;
    let items = (*start as usize..*end as usize).map_while(|index| list.get(index));
    Ok(Val::list(items.collect::<Result<_, _>>()?))
}

fn flatten<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let (list, depth) = match args {
        [Val::List(list)] => (list, 1),
        [Val::List(list), Val::Int(depth)] => (list, *depth),
        _ => return no_such_overload(),
    };
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, &mut flat, budget)?;
    Ok(Val::list(flat))
}

fn flatten_into<'a>(
    list: &List<'a>,
    depth: i64,
    flat: &mut Vec<Val<'a>>,
    budget: &mut Budget,
) -> Result<(), EvalError> {
    // Lists, even empty ones, may contain each other many times.
    budget.allocate_list(1 + list.len())?;
    for item in list.iter() {
        match item? {
            Val::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat, budget)?,
            other => flat.push(other),
        }
    }
    Ok(())
}

/// Sorts the items of a list by their keys.
fn sort<'a>(list: &List<'a>, keys: &List<'a>, budget: &mut Budget) -> Result<Val<'a>, EvalError> {
    budget.allocate_list(2 * (list.len() + keys.len()))?;
    let (items, keys) = (list.to_vec()?, keys.to_vec()?);
    if items.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
            items.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else {
        return Ok(Val::list(items));
    };
    if compare(first, first).is_err() {
        return Err(EvalError::new("list elements must be comparable"));
    }
    let kind = std::mem::discriminant(first);
    if keys.iter().any(|key| std::mem::discriminant(key) != kind) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    let mut pairs: Vec<(Val<'a>, Val<'a>)> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(a, _), (b, _)| {
        // Invariant: all keys have one comparable type; only NaN has no order.
        compare(a, b).ok().flatten().unwrap_or(Ordering::Equal)
    });
    Ok(Val::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn range<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::Int(count)] = args else {
        return no_such_overload();
    };
    budget.foresee((*count).max(0) as u64)?;
    budget.allocate_list((*count).max(0) as usize)?;
    Ok(Val::list((0..*count).map(Val::Int).collect()))
}

fn distinct<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::List(list)] = args else {
        return no_such_overload();
    };
    budget.allocate_list(list.len())?;
    let mut unique: Vec<Val<'a>> = Vec::new();
    'next: for item in list.iter() {
        let item = item?;
        for known in &unique {
            if equal(known, &item, budget)? {
                continue 'next;
            }
        }
        unique.push(item);
    }
    Ok(Val::list(unique))
}

fn map_insert<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [target, rest @ ..] = args else {
        return no_such_overload();
    };
    insert(target.clone(), rest, budget)
}

/// Adds an entry, or all entries of another map, to a map.
pub(crate) fn insert<'a>(
    target: Val<'a>,
    added: &[Val<'a>],
    budget: &mut Budget,
) -> Result<Val<'a>, EvalError> {
    let mut entries = match target {
        Val::Map(MapVal::Values(entries)) => entries,
        Val::Map(map) => {
            let mut copy = Entries::default();
            for key in map.keys() {
                if let Some(value) = map.get(&key) {
                    budget.allocate(Entries::bytes_of(&key))?;
                    copy.insert(key, value?)?;
                }
            }
            Arc::new(copy)
        }
        _ => return no_such_overload(),
    };
    // In place unless the map is shared.
    if Arc::strong_count(&entries) > 1 {
        budget.allocate(entries.bytes())?;
    }
    let unshared = Arc::make_mut(&mut entries);
    match added {
        [key, value] => insert_one(unshared, key.clone(), value.clone(), budget)?,
        [Val::Map(map)] => {
            for key in map.keys() {
                if let Some(value) = map.get(&key) {
                    insert_one(unshared, key, value?, budget)?;
                }
            }
        }
        _ => return no_such_overload(),
    }
    Ok(Val::Map(MapVal::Values(entries)))
}

fn insert_one<'a>(
    entries: &mut Entries<'a>,
    key: Val<'a>,
    value: Val<'a>,
    budget: &mut Budget,
) -> Result<(), EvalError> {
    budget.allocate(Entries::bytes_of(&key))?;
    let shown = key.clone();
    if entries.insert(key, value)? {
        Ok(())
    } else {
        Err(EvalError::new(format!(
            "insert failed: key {shown} already exists"
        )))
    }
}
