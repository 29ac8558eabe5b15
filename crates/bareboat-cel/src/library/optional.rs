//! Optional values.

use super::{Decl, no_such_overload};
use crate::budget::Budget;
use crate::error::EvalError;
use crate::syntax::ast::operator;
use crate::value::{Val, time};

fn in_place<'a>(_: &mut Budget, _: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    no_such_overload()
}

pub(super) const FUNCTIONS: &[Decl] = &[
    Decl {
        name: "optional.of",
        call: |_, args| match args {
            [value] => Ok(Val::some(value.clone())),
            _ => no_such_overload(),
        },
        overloads: &[("optional_of", "V -> optional(V)")],
    },
    Decl {
        name: "optional.ofNonZeroValue",
        call: |_, args| match args {
            [value] if is_zero(value) => Ok(Val::Optional(None)),
            [value] => Ok(Val::some(value.clone())),
            _ => no_such_overload(),
        },
        overloads: &[("optional_ofNonZeroValue", "V -> optional(V)")],
    },
    Decl {
        name: "optional.none",
        call: |_, _| Ok(Val::Optional(None)),
        overloads: &[("optional_none", "-> optional(V)")],
    },
    Decl {
        name: "value",
        call: |_, args| match args {
            [Val::Optional(Some(inner))] => Ok((**inner).clone()),
            [Val::Optional(None)] => Err(EvalError::new("optional.none() dereference")),
            _ => no_such_overload(),
        },
        overloads: &[("optional_value", ".optional(V) -> V")],
    },
    Decl {
        name: "hasValue",
        call: |_, args| match args {
            [Val::Optional(inner)] => Ok(Val::Bool(inner.is_some())),
            _ => no_such_overload(),
        },
        overloads: &[("optional_hasValue", ".optional(V) -> bool")],
    },
    // Both evaluate their argument only when the optional is empty: see `eval`.
    Decl {
        name: "or",
        call: in_place,
        overloads: &[(
            "optional_or_optional",
            ".optional(V), optional(V) -> optional(V)",
        )],
    },
    Decl {
        name: "orValue",
        call: in_place,
        overloads: &[("optional_orValue_value", ".optional(V), V -> V")],
    },
    Decl {
        name: operator::OPT_SELECT,
        call: in_place,
        overloads: &[("select_optional_field", "dyn, string -> optional(V)")],
    },
    Decl {
        name: operator::OPT_INDEX,
        call: in_place,
        overloads: &[
            ("list_optindex_optional_int", "list(V), int -> optional(V)"),
            (
                "optional_list_optindex_optional_int",
                "optional(list(V)), int -> optional(V)",
            ),
            ("map_optindex_optional_value", "map(K, V), K -> optional(V)"),
            (
                "optional_map_optindex_optional_value",
                "optional(map(K, V)), K -> optional(V)",
            ),
        ],
    },
    Decl {
        name: operator::INDEX,
        call: in_place,
        overloads: &[
            (
                "optional_list_index_int",
                "optional(list(V)), int -> optional(V)",
            ),
            (
                "optional_map_index_value",
                "optional(map(K, V)), K -> optional(V)",
            ),
        ],
    },
    Decl {
        name: "first",
        call: |_, args| match args {
            [Val::List(list)] => Ok(Val::Optional(list.get(0).transpose()?.map(Into::into))),
            _ => no_such_overload(),
        },
        overloads: &[("list_first", ".list(V) -> optional(V)")],
    },
    Decl {
        name: "last",
        call: |_, args| match args {
            [Val::List(list)] => {
                let last = list.len().checked_sub(1).and_then(|index| list.get(index));
                Ok(Val::Optional(last.transpose()?.map(Into::into)))
            }
            _ => no_such_overload(),
        },
        overloads: &[("list_last", ".list(V) -> optional(V)")],
    },
    Decl {
        name: "optional.unwrap",
        call: unwrap,
        overloads: &[("optional_unwrap", "list(optional(V)) -> list(V)")],
    },
    Decl {
        name: "unwrapOpt",
        call: unwrap,
        overloads: &[("optional_unwrapOpt", ".list(optional(V)) -> list(V)")],
    },
];

fn unwrap<'a>(budget: &mut Budget, args: &[Val<'a>]) -> Result<Val<'a>, EvalError> {
    let [Val::List(list)] = args else {
        return no_such_overload();
    };
    budget.allocate_list(list.len())?;
    let mut present = Vec::new();
    for item in list.iter() {
        match item? {
            Val::Optional(Some(inner)) => present.push((*inner).clone()),
            Val::Optional(None) => {}
            other => {
                return Err(EvalError::new(format!("value {other} is not optional")));
            }
        }
    }
    Ok(Val::list(present))
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(value) => !value,
        Val::Int(value) => *value == 0,
        Val::Uint(value) => *value == 0,
        Val::Double(value) => *value == 0.0,
        Val::Duration(value) => *value == 0,
        Val::Timestamp(value) => Some(*value) == time::from_unix(-62_135_596_800),
        Val::Optional(inner) => inner.is_none(),
        Val::Type(_) | Val::Special(_) => false,
        other => other.size() == Some(0),
    }
}
