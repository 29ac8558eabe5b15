//! The recursive descent parser.
//!
//! Upstream's grammar: cel-go parser/gen/CEL.g4. Syntax error messages follow its wording where
//! users are likely to see them.

mod complain;
mod primary;

use super::ast::{Ast, Expr, Id, Literal, Node, operator};
use super::macros::{self, Macros};
use super::scanner::{Kind, Token, scan};
use crate::issue::Issue;

/// The syntax that the parser accepts beyond the core of the language.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) macros: Macros,
    /// `a.?b`, `a[?b]`, `[?a]` and `{?a: b}`.
    pub(crate) optional_syntax: bool,
    /// Field names in backquotes.
    pub(crate) quoted_names: bool,
}

/// The maximum number of characters of an expression.
const MAX_CHARACTERS: usize = 100_000;
/// The maximum nesting of an expression.
const MAX_NESTING: u32 = 250;
/// The maximum depth of the tree with macros expanded; it bounds all recursion over the tree.
const MAX_DEPTH: u16 = 300;

/// Parses an expression.
pub(crate) fn parse(source: &str, options: Options) -> Result<Ast, Vec<Issue>> {
    let characters = source.chars().count();
    if characters > MAX_CHARACTERS {
        return Err(vec![Issue::nowhere(format!(
            "expression code point size exceeds limit: size: {characters}, limit {MAX_CHARACTERS}"
        ))]);
    }
    let (tokens, issues) = scan(source);
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        options,
        nesting: 0,
        nodes: Vec::new(),
        depths: Vec::new(),
        issues,
        allowed: &[],
    };
    let root = match parser.whole() {
        Ok(root) if parser.issues.is_empty() => root,
        Ok(_) => return Err(parser.issues),
        Err(issue) => {
            parser.issues.push(*issue);
            return Err(parser.issues);
        }
    };
    let depth = parser.depths[root as usize];
    Ok(Ast {
        nodes: parser.nodes,
        root,
        depth,
    })
}

/// The error that stops the parser; other errors go to `issues` and parsing continues.
type Stop = Box<Issue>;

pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token<'s>>,
    at: usize,
    options: Options,
    nesting: u32,
    nodes: Vec<Node>,
    depths: Vec<u16>,
    issues: Vec<Issue>,
    /// The tokens allowed here besides an operand, for messages.
    allowed: &'static [&'static str],
}

impl<'s> Parser<'s> {
    fn whole(&mut self) -> Result<Id, Stop> {
        let root = self.expr()?;
        if self.peek().kind != Kind::End {
            return Err(self.trailing());
        }
        Ok(root)
    }

    fn peek(&self) -> Token<'s> {
        // Invariant: the end token is never consumed, so there always is a token.
        self.tokens[self.at]
    }

    fn peek_after(&self, count: usize) -> Token<'s> {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'s> {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
            self.allowed = &[];
        }
        token
    }

    fn accept(&mut self, mark: &str) -> Option<Token<'s>> {
        self.peek().is(mark).then(|| self.next())
    }

    fn expect(&mut self, mark: &str) -> Result<Token<'s>, Stop> {
        self.accept(mark).ok_or_else(|| self.unexpected(mark))
    }

    fn stop(&self, offset: usize, message: impl Into<String>) -> Stop {
        Box::new(Issue::new(self.source, offset, message))
    }

    fn report(&mut self, offset: usize, message: impl Into<String>) {
        self.issues.push(Issue::new(self.source, offset, message));
    }

    pub(super) fn macros(&self) -> Macros {
        self.options.macros
    }

    pub(super) fn expr_of(&self, id: Id) -> &Expr {
        &self.nodes[id as usize].expr
    }

    pub(super) fn offset_of(&self, id: Id) -> usize {
        self.nodes[id as usize].offset as usize
    }

    /// Adds a node. Reports a tree that is too deep, once.
    pub(super) fn add(&mut self, offset: usize, expr: Expr) -> Id {
        let mut depth = 0;
        each_child(&expr, |child| {
            depth = depth.max(self.depths[child as usize])
        });
        let depth = depth + 1;
        if depth == MAX_DEPTH {
            self.issues.push(Issue::nowhere(format!(
                "expression recursion limit exceeded: {MAX_NESTING}"
            )));
        }
        self.depths.push(depth.min(MAX_DEPTH + 1));
        self.nodes.push(Node {
            expr,
            offset: offset as u32,
        });
        self.nodes.len() as Id - 1
    }

    fn expr(&mut self) -> Result<Id, Stop> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Box::new(Issue::nowhere(format!(
                "expression recursion limit exceeded: {MAX_NESTING}"
            ))));
        }
        let condition = self.logical(true)?;
        let result = match self.accept("?") {
            None => condition,
            Some(mark) => {
                let then = self.logical(true)?;
                self.expect(":")?;
                let otherwise = self.expr()?;
                let args = vec![condition, then, otherwise];
                self.call(mark.offset, operator::CONDITIONAL, args)
            }
        };
        self.nesting -= 1;
        Ok(result)
    }

    /// Parses a chain of `||` or of `&&`, which is one call of any length.
    fn logical(&mut self, or: bool) -> Result<Id, Stop> {
        let (mark, function) = if or {
            ("||", operator::OR)
        } else {
            ("&&", operator::AND)
        };
        let mut offset = None;
        let mut args = Vec::new();
        loop {
            args.push(if or {
                self.logical(false)?
            } else {
                self.binary(0)?
            });
            match self.accept(mark) {
                Some(token) => {
                    offset.get_or_insert(token.offset);
                }
                None => break,
            }
        }
        Ok(match offset {
            Some(offset) => self.call(offset, function, args),
            None => args[0],
        })
    }

    /// Parses relations (0), sums (1) and products (2), of at least that level.
    fn binary(&mut self, least: u8) -> Result<Id, Stop> {
        let mut left = self.unary()?;
        loop {
            let token = self.peek();
            let Some((level, function)) = operator_at(token).filter(|(level, _)| *level >= least)
            else {
                return Ok(left);
            };
            self.next();
            let right = self.binary(level + 1)?;
            left = self.call(token.offset, function, vec![left, right]);
        }
    }

    fn unary(&mut self) -> Result<Id, Stop> {
        let first = self.peek();
        let function = match first.text {
            "!" if first.kind == Kind::Mark => operator::NOT,
            "-" if first.kind == Kind::Mark => operator::NEGATE,
            _ => return self.member(false),
        };
        let mut count = 0;
        while self.accept(first.text).is_some() {
            count += 1;
        }
        let literal = matches!(self.peek().kind, Kind::Int | Kind::Float);
        let negative = function == operator::NEGATE && count == 1 && literal;
        if negative {
            count = 0;
        }
        let operand = self.member(negative)?;
        Ok(if count % 2 == 1 {
            self.call(first.offset, function, vec![operand])
        } else {
            operand
        })
    }

    fn member(&mut self, negative: bool) -> Result<Id, Stop> {
        let mut operand = self.primary(negative)?;
        loop {
            let token = self.peek();
            if token.is(".") {
                operand = self.field_or_call(operand)?;
            } else if token.is("[") {
                self.next();
                self.allowed = &["'?'"];
                let optional = self.optional_mark()?;
                let index = self.expr()?;
                self.expect("]")?;
                let function = if optional {
                    operator::OPT_INDEX
                } else {
                    operator::INDEX
                };
                operand = self.call(token.offset, function, vec![operand, index]);
            } else {
                return Ok(operand);
            }
        }
    }

    fn field_or_call(&mut self, operand: Id) -> Result<Id, Stop> {
        let dot = self.next();
        let optional = self.optional_mark()?;
        let name = self.next();
        let field = match name.kind {
            Kind::Ident => name.text,
            Kind::Quoted => {
                if !self.options.quoted_names {
                    self.report(name.offset, "unsupported syntax: '`'");
                }
                &name.text[1..name.text.len() - 1]
            }
            _ => {
                let text = if name.kind == Kind::End {
                    ""
                } else {
                    name.text
                };
                let message = format!("Syntax error: no viable alternative at input '.{text}'");
                return Err(self.stop(name.offset, message));
            }
        };
        if optional {
            let field = self.add(name.offset, Expr::Literal(Literal::String(field.into())));
            return Ok(self.call(dot.offset, operator::OPT_SELECT, vec![operand, field]));
        }
        if name.kind == Kind::Ident && self.peek().is("(") {
            let open = self.next();
            let args = self.arguments(")")?;
            return Ok(self.call_or_macro(open.offset, Some(operand), field, args));
        }
        let field = field.into();
        Ok(self.add(
            dot.offset,
            Expr::Select {
                operand,
                field,
                test: false,
            },
        ))
    }

    fn optional_mark(&mut self) -> Result<bool, Stop> {
        match self.accept("?") {
            None => Ok(false),
            Some(mark) if !self.options.optional_syntax => {
                Err(self.stop(mark.offset, "unsupported syntax '?'"))
            }
            Some(_) => Ok(true),
        }
    }

    fn arguments(&mut self, close: &str) -> Result<Vec<Id>, Stop> {
        let mut args = Vec::new();
        if self.accept(close).is_some() {
            return Ok(args);
        }
        self.allowed = &["')'"];
        loop {
            args.push(self.expr()?);
            if self.accept(",").is_none() {
                self.expect(close)?;
                return Ok(args);
            }
        }
    }

    pub(super) fn call(&mut self, offset: usize, function: &str, args: Vec<Id>) -> Id {
        let function = function.into();
        self.add(
            offset,
            Expr::Call {
                target: None,
                function,
                args,
            },
        )
    }

    fn call_or_macro(
        &mut self,
        offset: usize,
        target: Option<Id>,
        name: &str,
        args: Vec<Id>,
    ) -> Id {
        match macros::expand(self, offset, target, name, &args) {
            Some(Ok(expanded)) => expanded,
            Some(Err((at, message))) => {
                self.report(at, message);
                self.add(offset, Expr::Literal(Literal::Null))
            }
            None => self.add(
                offset,
                Expr::Call {
                    target,
                    function: name.into(),
                    args,
                },
            ),
        }
    }
}

/// Returns the level and function of an operator.
fn operator_at(token: Token<'_>) -> Option<(u8, &'static str)> {
    if token.kind != Kind::Mark {
        return None;
    }
    Some(match token.text {
        "<" => (0, operator::LESS),
        "<=" => (0, operator::LESS_EQUALS),
        ">" => (0, operator::GREATER),
        ">=" => (0, operator::GREATER_EQUALS),
        "==" => (0, operator::EQUALS),
        "!=" => (0, operator::NOT_EQUALS),
        "in" => (0, operator::IN),
        "+" => (1, operator::ADD),
        "-" => (1, operator::SUBTRACT),
        "*" => (2, operator::MULTIPLY),
        "/" => (2, operator::DIVIDE),
        "%" => (2, operator::MODULO),
        _ => return None,
    })
}

fn each_child(expr: &Expr, mut visit: impl FnMut(Id)) {
    match expr {
        Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select { operand, .. } => visit(*operand),
        Expr::Call { target, args, .. } => {
            target.iter().chain(args).for_each(|id| visit(*id));
        }
        Expr::List { items, .. } => items.iter().for_each(|id| visit(*id)),
        Expr::Map(entries) => entries.iter().for_each(|entry| {
            visit(entry.key);
            visit(entry.value);
        }),
        Expr::Struct { fields, .. } => fields.iter().for_each(|field| visit(field.value)),
        Expr::Fold(fold) => {
            for id in [
                fold.range,
                fold.init,
                fold.condition,
                fold.step,
                fold.result,
            ] {
                visit(id);
            }
        }
    }
}
