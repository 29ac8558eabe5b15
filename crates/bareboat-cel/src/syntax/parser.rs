//! From tokens to a tree, by recursive descent.
//!
//! Upstream's grammar: cel-go parser/gen/CEL.g4. Messages about syntax follow its wording where a
//! person is likely to see them.

use bareboat_api::Str;

use super::ast::{Ast, Entry, Expr, Id, Literal, Node, StructField, operator};
use super::literal;
use super::macros::{self, Macros};
use super::scanner::{Kind, Token, scan};
use crate::escape::RESERVED;
use crate::issue::Issue;

/// What a parser understands beyond the core of the language.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) macros: Macros,
    /// `a.?b`, `a[?b]`, `[?a]` and `{?a: b}`.
    pub(crate) optional_syntax: bool,
    /// Field names in backquotes.
    pub(crate) quoted_names: bool,
}

/// The most characters an expression may have.
const MAX_CHARACTERS: usize = 100_000;
/// The deepest nesting an expression may have.
const MAX_NESTING: u32 = 250;
/// The deepest tree, macros expanded; everything that walks it recurses this far at most.
const MAX_DEPTH: u16 = 500;

/// Parses an expression.
pub(crate) fn parse(source: &str, options: Options) -> Result<Ast, Vec<Issue>> {
    let characters = source.chars().count();
    if characters > MAX_CHARACTERS {
        return Err(vec![Issue::nowhere(format!(
            "expression code point size exceeds limit: size: {characters}, limit {MAX_CHARACTERS}"
        ))]);
    }
    let tokens = scan(source)?;
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        options,
        nesting: 0,
        nodes: Vec::new(),
        depths: Vec::new(),
        issues: Vec::new(),
    };
    let root = match parser.whole() {
        Ok(root) if parser.issues.is_empty() => root,
        Ok(_) => return Err(parser.issues),
        Err(issue) => {
            parser.issues.push(*issue);
            return Err(parser.issues);
        }
    };
    Ok(Ast {
        nodes: parser.nodes,
        root,
    })
}

/// What stops the parser; everything else is noted in `issues` and passed over.
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
}

const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

impl<'s> Parser<'s> {
    fn whole(&mut self) -> Result<Id, Stop> {
        let root = self.expr()?;
        let token = self.peek();
        if token.kind != Kind::End {
            let message = format!(
                "Syntax error: mismatched input '{}' expecting <EOF>",
                token.text
            );
            return Err(self.stop(token.offset, message));
        }
        Ok(root)
    }

    fn peek(&self) -> Token<'s> {
        // Invariant: the end token is never consumed, so there is always one to look at.
        self.tokens[self.at]
    }

    fn peek_after(&self, count: usize) -> Token<'s> {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'s> {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn accept(&mut self, mark: &str) -> Option<Token<'s>> {
        self.peek().is(mark).then(|| self.next())
    }

    fn expect(&mut self, mark: &str) -> Result<Token<'s>, Stop> {
        self.accept(mark).ok_or_else(|| {
            let found = self.peek();
            self.stop(
                found.offset,
                format!(
                    "Syntax error: mismatched input '{}' expecting '{mark}'",
                    found.text
                ),
            )
        })
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

    /// Adds a node. A tree that is too deep is noticed here, once.
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

    /// A chain of `||` or of `&&`, which is one call however long it is.
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

    /// Relations (0), sums (1) and products (2).
    fn binary(&mut self, level: u8) -> Result<Id, Stop> {
        let mut left = self.operand(level)?;
        loop {
            let token = self.peek();
            let Some(function) = operator_at(level, token) else {
                return Ok(left);
            };
            self.next();
            let right = self.operand(level)?;
            left = self.call(token.offset, function, vec![left, right]);
        }
    }

    fn operand(&mut self, level: u8) -> Result<Id, Stop> {
        if level == 2 {
            self.unary()
        } else {
            self.binary(level + 1)
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
                let message = format!(
                    "Syntax error: no viable alternative at input '.{}'",
                    name.text
                );
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
        loop {
            args.push(self.expr()?);
            if self.accept(",").is_none() {
                self.expect(close)?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self, negative: bool) -> Result<Id, Stop> {
        let token = self.peek();
        match token.kind {
            Kind::Int | Kind::Uint | Kind::Float | Kind::String | Kind::Bytes => {
                self.next();
                Ok(self.literal(token, negative))
            }
            Kind::Ident => self.name(false),
            Kind::Mark => match token.text {
                "." => {
                    self.next();
                    self.name(true)
                }
                "(" => {
                    self.next();
                    let inner = self.expr()?;
                    self.expect(")")?;
                    Ok(inner)
                }
                "[" => self.list(),
                "{" => {
                    self.next();
                    let entries = self.entries()?;
                    Ok(self.add(token.offset, Expr::Map(entries)))
                }
                "true" | "false" => {
                    self.next();
                    let value = Literal::Bool(token.text == "true");
                    Ok(self.add(token.offset, Expr::Literal(value)))
                }
                "null" => {
                    self.next();
                    Ok(self.add(token.offset, Expr::Literal(Literal::Null)))
                }
                _ => Err(self.unexpected_operand(token)),
            },
            Kind::End | Kind::Quoted => Err(self.unexpected_operand(token)),
        }
    }

    fn unexpected_operand(&self, token: Token<'_>) -> Stop {
        let message = format!(
            "Syntax error: mismatched input '{}' expecting {OPERAND}",
            token.text
        );
        self.stop(token.offset, message)
    }

    fn literal(&mut self, token: Token<'_>, negative: bool) -> Id {
        let sign = if negative { -1.0 } else { 1.0 };
        let value = match token.kind {
            Kind::Int => literal::int(token.text, negative)
                .map(Literal::Int)
                .ok_or("invalid int literal"),
            Kind::Uint => literal::uint(token.text)
                .map(Literal::Uint)
                .ok_or("invalid uint literal"),
            Kind::Float => match token.text.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(Literal::Double(sign * value)),
                _ => Err("invalid double literal"),
            },
            Kind::Bytes => literal::bytes(token.text).map(|bytes| Literal::Bytes(bytes.into())),
            _ => literal::string(token.text).map(|text| Literal::String(text.into())),
        };
        let value = value.unwrap_or_else(|message| {
            self.report(token.offset, message);
            Literal::Null
        });
        self.add(token.offset, Expr::Literal(value))
    }

    /// An identifier, a call or a message, whichever the name turns out to begin.
    fn name(&mut self, absolute: bool) -> Result<Id, Stop> {
        let token = self.next();
        if token.kind != Kind::Ident {
            return Err(self.stop(
                token.offset,
                format!(
                    "Syntax error: no viable alternative at input '.{}'",
                    token.text
                ),
            ));
        }
        let qualify = |name: &str| match absolute {
            true => Str::from(format!(".{name}")),
            false => Str::new(name),
        };
        if let Some(length) = self.message_name() {
            let mut name = qualify(token.text);
            for _ in 0..length {
                self.next();
                name.push('.');
                name.push_str(self.next().text);
            }
            let open = self.expect("{")?;
            let fields = self.fields()?;
            return Ok(self.add(open.offset, Expr::Struct { name, fields }));
        }
        if RESERVED.contains(&token.text) {
            self.report(token.offset, format!("reserved identifier: {}", token.text));
        }
        if let Some(open) = self.accept("(") {
            let args = self.arguments(")")?;
            let name = qualify(token.text);
            return Ok(self.call_or_macro(open.offset, None, &name, args));
        }
        Ok(self.add(token.offset, Expr::Ident(qualify(token.text))))
    }

    /// How many `.name` follow before a `{`, if that is what follows.
    fn message_name(&self) -> Option<usize> {
        let mut count = 0;
        loop {
            let token = self.peek_after(2 * count);
            if token.is("{") {
                return Some(count);
            }
            if !token.is(".") || self.peek_after(2 * count + 1).kind != Kind::Ident {
                return None;
            }
            count += 1;
        }
    }

    fn list(&mut self) -> Result<Id, Stop> {
        let open = self.next();
        let mut items = Vec::new();
        let mut optional = Vec::new();
        while self.accept("]").is_none() {
            if self.accept_trailing_comma(items.is_empty(), "]")? {
                break;
            }
            if self.optional_mark()? {
                optional.push(items.len() as u32);
            }
            items.push(self.expr()?);
            if !self.peek().is("]") {
                self.expect_separator("]")?;
            }
        }
        Ok(self.add(open.offset, Expr::List { items, optional }))
    }

    /// `[,]` and `{,}` are allowed.
    fn accept_trailing_comma(&mut self, empty: bool, close: &str) -> Result<bool, Stop> {
        if empty && self.peek().is(",") {
            self.next();
            self.expect(close)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn expect_separator(&mut self, close: &str) -> Result<(), Stop> {
        let found = self.peek();
        if self.accept(",").is_some() {
            return Ok(());
        }
        let message = format!(
            "Syntax error: mismatched input '{}' expecting '{close}'",
            found.text
        );
        Err(self.stop(found.offset, message))
    }

    fn entries(&mut self) -> Result<Vec<Entry>, Stop> {
        let mut entries = Vec::new();
        while self.accept("}").is_none() {
            if self.accept_trailing_comma(entries.is_empty(), "}")? {
                break;
            }
            let optional = self.optional_mark()?;
            let key = self.expr()?;
            self.expect(":")?;
            let value = self.expr()?;
            entries.push(Entry {
                key,
                value,
                optional,
            });
            if !self.peek().is("}") {
                self.expect_separator("}")?;
            }
        }
        Ok(entries)
    }

    fn fields(&mut self) -> Result<Vec<StructField>, Stop> {
        let mut fields = Vec::new();
        while self.accept("}").is_none() {
            if self.accept_trailing_comma(fields.is_empty(), "}")? {
                break;
            }
            let optional = self.optional_mark()?;
            let name = self.next();
            let text = match name.kind {
                Kind::Ident => name.text,
                Kind::Quoted if self.options.quoted_names => &name.text[1..name.text.len() - 1],
                _ => return Err(self.unexpected_operand(name)),
            };
            let colon = self.expect(":")?;
            let value = self.expr()?;
            fields.push(StructField {
                name: text.into(),
                offset: colon.offset as u32,
                value,
                optional,
            });
            if !self.peek().is("}") {
                self.expect_separator("}")?;
            }
        }
        Ok(fields)
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

fn operator_at(level: u8, token: Token<'_>) -> Option<&'static str> {
    if token.kind != Kind::Mark {
        return None;
    }
    Some(match (level, token.text) {
        (0, "<") => operator::LESS,
        (0, "<=") => operator::LESS_EQUALS,
        (0, ">") => operator::GREATER,
        (0, ">=") => operator::GREATER_EQUALS,
        (0, "==") => operator::EQUALS,
        (0, "!=") => operator::NOT_EQUALS,
        (0, "in") => operator::IN,
        (1, "+") => operator::ADD,
        (1, "-") => operator::SUBTRACT,
        (2, "*") => operator::MULTIPLY,
        (2, "/") => operator::DIVIDE,
        (2, "%") => operator::MODULO,
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
