//! What a program is made of: operations that refer to each other by number.

use std::sync::Arc;

use bareboat_api::Str;

use crate::cost::Rule;
use crate::decl::ObjectType;
use crate::library::Func;
use crate::types::Type;
use crate::value::Val;

/// The number of an operation.
pub(crate) type OpId = u32;

/// A program.
pub(crate) struct Code {
    pub(crate) ops: Box<[Op]>,
    pub(crate) root: OpId,
    /// Operands of operations with any number of them.
    pub(crate) operands: Box<[OpId]>,
    pub(crate) constants: Box<[Val<'static>]>,
    /// The names of variables.
    pub(crate) variables: Box<[Str]>,
    /// The names of fields.
    pub(crate) fields: Box<[Str]>,
    pub(crate) calls: Box<[CallSite]>,
    /// How many local variables are alive at once at most.
    pub(crate) slots: u16,
    pub(crate) unique_keys: bool,
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

/// An operation.
pub(crate) enum Op {
    Constant(u32),
    Variable(u16),
    Local(u16),
    /// A name nothing is known about; only expressions nobody checked have one.
    Unknown(u32),
    /// A function nobody has; likewise.
    Unbound(u32),
    Select {
        operand: OpId,
        field: u32,
        /// Whether the operand is computed rather than a variable or a part of one.
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
        /// Whether the index is a variable or a part of one, which then costs one less.
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
        /// Whether the branches are variables or parts of them, which then cost one less.
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
        /// `orValue` rather than `or`.
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
    /// A variable bound to a value that is computed when first read.
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
    /// Keys and values in turn.
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
    /// Nothing when it is always true.
    pub(crate) condition: Option<OpId>,
    pub(crate) step: OpId,
    pub(crate) result: OpId,
    pub(crate) accu: u16,
    pub(crate) var: u16,
    pub(crate) var2: Option<u16>,
}

/// A call: what to run, and what that costs.
pub(crate) struct CallSite {
    pub(crate) targets: Targets,
    pub(crate) rule: Rule,
    /// The name, where messages mention it: when it was not certain which overload is meant.
    pub(crate) name: Option<Str>,
}

/// The code of a call: one, or several to choose from by the types of the arguments.
pub(crate) enum Targets {
    One(Func),
    Several(Box<[(Box<[Type]>, Func)]>),
}
