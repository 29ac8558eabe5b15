//! The parser of label selectors.

use super::{Operator, Requirement, SelectorError};
use crate::{FieldError, FieldPath, Str, names};
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    End,
    Open,
    Close,
    Comma,
    Not,
    /// A binary operator written in symbols.
    Symbol(&'a str),
    /// A key, a value, or one of the words `in` and `notin`.
    Word(&'a str),
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Token::End => "",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Symbol(text) | Token::Word(text) => text,
        }
    }
}

/// Parses the requirements of a selector.
pub(super) fn selector(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            Token::End => return Ok(requirements),
            Token::Word(_) | Token::Not => {
                let requirement = parser.requirement().map_err(|error| {
                    SelectorError(format!("unable to parse requirement: {error}"))
                })?;
                requirements.push(requirement);
            }
            other => {
                return Err(found(
                    other,
                    ", expected: !, identifier, or 'end of string'",
                ));
            }
        }
        match parser.next() {
            Token::End => return Ok(requirements),
            Token::Comma => {
                let after = parser.peek();
                if !matches!(after, Token::Word(_) | Token::Not) {
                    return Err(found(after, ", expected: identifier after ','"));
                }
            }
            other => return Err(found(other, ", expected: ',' or 'end of string'")),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];
        const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
        self.rest = self.rest.trim_start_matches(SPACES);
        let Some(first) = self.rest.chars().next() else {
            return Token::End;
        };
        let length = if self.rest.starts_with("==") || self.rest.starts_with("!=") {
            2
        } else if SYMBOLS.contains(&first) {
            1
        } else {
            let ends = |character| SYMBOLS.contains(&character) || SPACES.contains(&character);
            self.rest.find(ends).unwrap_or(self.rest.len())
        };
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        match text {
            "(" => Token::Open,
            ")" => Token::Close,
            "," => Token::Comma,
            "!" => Token::Not,
            "=" | "==" | "!=" | ">" | "<" => Token::Symbol(text),
            word => Token::Word(word),
        }
    }

    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.next()
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut first = self.next();
        let negated = first == Token::Not;
        if negated {
            first = self.next();
        }
        let Token::Word(key) = first else {
            return Err(found(first, ", expected: identifier"));
        };
        let complaints = names::qualified_name(key);
        if !complaints.is_empty() {
            let error = FieldError::invalid(FieldPath::root(), key, complaints.join("; "));
            return Err(SelectorError(error.to_string()));
        }
        let ends = matches!(self.peek(), Token::End | Token::Comma);
        match (negated, ends) {
            (true, _) => Requirement::new(key, Operator::DoesNotExist, Vec::new()),
            (false, true) => Requirement::new(key, Operator::Exists, Vec::new()),
            (false, false) => {
                let operator = self.operator()?;
                let values = match operator {
                    Operator::In | Operator::NotIn => self.values()?,
                    _ => self.exact_value()?,
                };
                Requirement::new(key, operator, values)
            }
        }
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let token = self.next();
        Ok(match token {
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            other => return Err(found(other, ", expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact_value(&mut self) -> Result<Vec<Str>, SelectorError> {
        if let Token::End | Token::Comma = self.peek() {
            return Ok(vec![Str::default()]);
        }
        match self.next() {
            Token::Word(value) => Ok(vec![Str::new(value)]),
            other => Err(found(other, ", expected: identifier")),
        }
    }

    /// Parses `(a,b)` and sorts the values; a missing text between commas and parentheses is the
    /// empty value.
    fn values(&mut self) -> Result<Vec<Str>, SelectorError> {
        let open = self.next();
        if open != Token::Open {
            return Err(found(open, " expected: '('"));
        }
        let mut values = BTreeSet::new();
        let mut expected = ", expected: ',', ')' or identifier";
        loop {
            match self.peek() {
                Token::Word(value) => {
                    self.next();
                    values.insert(Str::new(value));
                }
                Token::Comma | Token::Close => {
                    values.insert(Str::default());
                }
                other => return Err(found(other, expected)),
            }
            expected = ", expected: ',', or identifier";
            match self.next() {
                Token::Comma => {}
                Token::Close => return Ok(values.into_iter().collect()),
                other => return Err(found(other, ", expected: ',' or ')'")),
            }
        }
    }
}

fn found(token: Token<'_>, expected: &str) -> SelectorError {
    SelectorError(format!("found '{}'{expected}", token.text()))
}
