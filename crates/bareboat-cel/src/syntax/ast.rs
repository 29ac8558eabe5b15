//! The syntax tree: an arena of nodes that refer to each other by number.
//!
//! A macro may refer to the same node twice (`optMap` uses its target twice). Code that walks the
//! tree must remember results per node, or the work doubles with every such macro.

use bareboat_api::Str;

/// The number of a node.
pub(crate) type Id = u32;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct Ast {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: Id,
    /// The depth of the tree with macros expanded.
    pub(crate) depth: u16,
}

impl Ast {
    pub(crate) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn expr(&self, id: Id) -> &Expr {
        &self.nodes[id as usize].expr
    }
}

/// A node and its position.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) expr: Expr,
    /// The byte offset at which messages point.
    pub(crate) offset: u32,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Literal),
    Ident(Str),
    Select {
        operand: Id,
        field: Str,
        /// Whether only presence is tested: `has(a.b)`.
        test: bool,
    },
    Call {
        target: Option<Id>,
        function: Str,
        args: Vec<Id>,
    },
    List {
        items: Vec<Id>,
        /// The positions of `?item`.
        optional: Vec<u32>,
    },
    Map(Vec<Entry>),
    Struct {
        name: Str,
        fields: Vec<StructField>,
    },
    Fold(Box<Fold>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Id,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct StructField {
    pub(crate) name: Str,
    pub(crate) offset: u32,
    pub(crate) value: Id,
    pub(crate) optional: bool,
}

/// A comprehension: the expansion of every macro that iterates over a list or map.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) range: Id,
    pub(crate) var: Str,
    pub(crate) var2: Option<Str>,
    pub(crate) accu: Str,
    pub(crate) init: Id,
    pub(crate) condition: Id,
    pub(crate) step: Id,
    pub(crate) result: Id,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Str),
    Bytes(Box<[u8]>),
}

/// The names of the operators, which are ordinary functions.
pub(crate) mod operator {
    pub(crate) const CONDITIONAL: &str = "_?_:_";
    pub(crate) const AND: &str = "_&&_";
    pub(crate) const OR: &str = "_||_";
    pub(crate) const NOT: &str = "!_";
    pub(crate) const EQUALS: &str = "_==_";
    pub(crate) const NOT_EQUALS: &str = "_!=_";
    pub(crate) const LESS: &str = "_<_";
    pub(crate) const LESS_EQUALS: &str = "_<=_";
    pub(crate) const GREATER: &str = "_>_";
    pub(crate) const GREATER_EQUALS: &str = "_>=_";
    pub(crate) const ADD: &str = "_+_";
    pub(crate) const SUBTRACT: &str = "_-_";
    pub(crate) const MULTIPLY: &str = "_*_";
    pub(crate) const DIVIDE: &str = "_/_";
    pub(crate) const MODULO: &str = "_%_";
    pub(crate) const NEGATE: &str = "-_";
    pub(crate) const INDEX: &str = "_[_]";
    pub(crate) const OPT_INDEX: &str = "_[?_]";
    pub(crate) const OPT_SELECT: &str = "_?._";
    pub(crate) const IN: &str = "@in";
    pub(crate) const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub(crate) const MAP_INSERT: &str = "cel.@mapInsert";
    pub(crate) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";
}

/// The accumulator of the macros; expressions cannot name it.
pub(crate) const ACCUMULATOR: &str = "@result";
/// A loop variable that is never read.
pub(crate) const UNUSED: &str = "#unused";
