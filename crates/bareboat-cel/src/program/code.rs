//! The code of a program: operations that refer to each other by number.

use std::sync::Arc;

use bareboat_api::Str;

use crate::cost::Rule;
use crate::decl::ObjectType;
use crate::library::Func;
use crate::types::Type;
use crate::value::Val;

/// The index of an operation in [`Code::ops`].
pub(crate) type OpId = u32;

/// A compiled expression: a tree of operations in flat tables.
pub(crate) struct Code {
    pub(crate) ops: Box<[Op]>,
    pub(crate) root: OpId,
    /// Operands of operations with a variable number of operands.
    pub(crate) operands: Box<[OpId]>,
    pub(crate) constants: Box<[Val<'static>]>,
    /// The names of variables.
    pub(crate) variables: Box<[Str]>,
    /// The names of fields.
    pub(crate) fields: Box<[Str]>,
    pub(crate) calls: Box<[CallSite]>,
    /// The maximum number of local variables that are alive at once.
    pub(crate) slots: u16,
    pub(crate) unique_keys: bool,
    /// The depth of the expression, which bounds the recursion of its evaluation.
    pub(crate) depth: u16,
}

/// A span of [`Code::operands`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Code {
    pub(crate) fn span(&self, span: Span) -> &[OpId] {
        &self.operands[span.start as usize..(span.start + span.len) as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Comparison {
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arith {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// An operation of a compiled expression.
pub(crate) enum Op {
    Constant(u32),
    Variable(u16),
    Local(u16),
    /// An unknown name; only in unchecked expressions.
    Unknown(u32),
    /// An unknown function; only in unchecked expressions.
    Unbound(u32),
    Select {
        operand: OpId,
        field: u32,
        /// Whether the operand is computed, and not a variable or a part of one.
        computed: bool,
    },
    Has {
        operand: OpId,
        field: u32,
        computed: bool,
    },
    OptSelect {
        operand: OpId,
        field: u32,
        computed: bool,
    },
    Index {
        operand: OpId,
        index: OpId,
        computed: bool,
        /// Whether the index is a variable or a part of one, which costs one less.
        plain: bool,
    },
    OptIndex {
        operand: OpId,
        index: OpId,
        computed: bool,
        plain: bool,
    },
    And(Span),
    Or(Span),
    Conditional {
        args: Span,
        /// Whether the branches are variables or parts of them, which cost one less.
        plain: [bool; 2],
    },
    Not(OpId),
    Negate(OpId),
    NotStrictlyFalse(OpId),
    Equals {
        a: OpId,
        b: OpId,
        negated: bool,
    },
    Compare {
        a: OpId,
        b: OpId,
        how: Comparison,
        rule: Rule,
    },
    Arithmetic {
        a: OpId,
        b: OpId,
        how: Arith,
        rule: Rule,
    },
    In {
        a: OpId,
        b: OpId,
        rule: Rule,
    },
    /// `in` a list of constants, which costs nothing.
    InConstants {
        a: OpId,
        list: u32,
    },
    List(Box<ListOp>),
    Map(Box<MapOp>),
    Struct(Box<StructOp>),
    Call {
        site: u32,
        args: Span,
    },
    OptOr {
        a: OpId,
        b: OpId,
        /// Whether this is `orValue`, not `or`.
        value: bool,
    },
    Fold(Box<FoldOp>),
    /// `accumulator + [item]`, in place.
    Append {
        slot: u16,
        item: OpId,
        /// Whether the item is a constant; a list of constants costs nothing.
        constant: bool,
    },
    /// `cel.@mapInsert(accumulator, …)`, in place.
    Insert {
        slot: u16,
        args: Span,
    },
    /// Binds a variable to a value that is computed at its first read.
    Bind {
        slot: u16,
        value: OpId,
        result: OpId,
    },
}

pub(crate) struct ListOp {
    pub(crate) items: Span,
    pub(crate) optional: Box<[u32]>,
}

pub(crate) struct MapOp {
    /// Keys and values, alternating.
    pub(crate) entries: Span,
    pub(crate) optional: Box<[u32]>,
}

pub(crate) struct StructOp {
    pub(crate) ty: Arc<ObjectType>,
    pub(crate) names: Box<[Str]>,
    pub(crate) values: Span,
    pub(crate) optional: Box<[u32]>,
}

pub(crate) struct FoldOp {
    pub(crate) range: OpId,
    pub(crate) init: OpId,
    /// `None` when it is always true.
    pub(crate) condition: Option<OpId>,
    pub(crate) step: OpId,
    pub(crate) result: OpId,
    pub(crate) accu: u16,
    pub(crate) var: u16,
    pub(crate) var2: Option<u16>,
}

/// A call: its target and its cost rule.
pub(crate) struct CallSite {
    pub(crate) targets: Targets,
    pub(crate) rule: Rule,
    /// The name for error messages, when the overload was not certain.
    pub(crate) name: Option<Str>,
}

/// The code of a call: one target, or several to choose from by the types of the arguments.
pub(crate) enum Targets {
    One(Func),
    Several(Box<[(Box<[Type]>, Func)]>),
}
