//! Parses operands: literals, names, calls, lists, maps and messages.

use bareboat_api::Str;

use super::super::ast::{Entry, Expr, Id, Literal, StructField};
use super::super::literal;
use super::super::scanner::{Kind, Token};
use super::{Parser, Stop};
use crate::escape::RESERVED;

impl Parser<'_> {
    pub(super) fn primary(&mut self, negative: bool) -> Result<Id, Stop> {
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
                _ => Err(self.unexpected_operand()),
            },
            Kind::End | Kind::Quoted => Err(self.unexpected_operand()),
        }
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

    /// Parses an identifier, a call or a message that begins with a name.
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

    /// Returns how many `.name` follow before a `{`, if the text has that form.
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
            if items.is_empty() {
                self.allowed = &["']'", "','", "'?'"];
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

    /// Accepts a trailing comma; `[,]` and `{,}` are allowed.
    fn accept_trailing_comma(&mut self, empty: bool, close: &str) -> Result<bool, Stop> {
        if empty && self.peek().is(",") {
            self.next();
            self.expect(close)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn expect_separator(&mut self, close: &str) -> Result<(), Stop> {
        match self.accept(",") {
            Some(_) => Ok(()),
            None => Err(self.unseparated(close)),
        }
    }

    fn entries(&mut self) -> Result<Vec<Entry>, Stop> {
        let mut entries = Vec::new();
        while self.accept("}").is_none() {
            if self.accept_trailing_comma(entries.is_empty(), "}")? {
                break;
            }
            if entries.is_empty() {
                self.allowed = &["'}'", "','", "'?'"];
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
            let name = self.peek();
            let text = match name.kind {
                Kind::Ident => name.text,
                Kind::Quoted if self.options.quoted_names => &name.text[1..name.text.len() - 1],
                _ => return Err(self.unexpected_operand()),
            };
            self.next();
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
}
