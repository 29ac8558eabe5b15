//! Parses the text of a path.

use super::{Filter, Node, PathError, Slice, fault};
use crate::{Str, Value};

/// The maximum length of a path; far longer than any handwritten one.
const MAX_LENGTH: usize = 4096;

/// Parses the text between the braces of a template.
pub(super) fn action(text: &str) -> Result<Vec<Node>, PathError> {
    if text.len() > MAX_LENGTH {
        return fault(format!("the path is longer than {MAX_LENGTH} bytes"));
    }
    let mut parser = Parser {
        rest: text,
        nodes: Vec::new(),
    };
    parser.run()?;
    Ok(parser.nodes)
}

struct Parser<'a> {
    rest: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Parser<'a> {
    /// Invariant: filters and unions recurse on shorter text that cannot contain a filter again, so
    /// the depth is bounded.
    fn run(&mut self) -> Result<(), PathError> {
        while let Some(first) = self.rest.chars().next() {
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                self.filter()?;
            } else if let Some(rest) = self.rest.strip_prefix("..") {
                self.rest = rest;
                self.recursive()?;
            } else {
                match first {
                    '\r' | '\n' => return fault("unclosed action"),
                    ' ' | '@' | '$' => self.rest = &self.rest[1..],
                    '[' => self.array()?,
                    '"' | '\'' => self.quoted(first)?,
                    '.' => {
                        self.rest = &self.rest[1..];
                        self.field();
                    }
                    '+' | '-' | '0'..='9' => self.number()?,
                    letter if letter == '_' || letter.is_alphanumeric() => self.word(),
                    other => {
                        return fault(format!(
                            "unrecognized character in action: U+{:04X} '{other}'",
                            u32::from(other)
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn recursive(&mut self) -> Result<(), PathError> {
        if self.nodes.last() == Some(&Node::Recursive) {
            return fault("invalid multiple recursive descent");
        }
        self.nodes.push(Node::Recursive);
        if self
            .rest
            .starts_with(|next: char| next == '_' || next.is_alphanumeric())
        {
            self.field();
        }
        Ok(())
    }

    /// Parses a name up to the next special character that is not escaped.
    fn field(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|character: char| {
            if escaped {
                escaped = false;
                return false;
            }
            escaped = character == '\\';
            terminates(character)
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        self.nodes.push(match name {
            "*" => Node::Wildcard,
            name => Node::Field(Str::from(name.replace('\\', ""))),
        });
    }

    fn word(&mut self) {
        let end = self.rest.find(terminates).unwrap_or(self.rest.len());
        let word = self.take(end);
        self.nodes.push(match word {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            other => Node::Identifier(Str::new(other)),
        });
    }

    fn number(&mut self) -> Result<(), PathError> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..]
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(self.rest.len() - sign);
        let text = self.take(sign + digits);
        let value = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => Value::Int(integer),
            (_, Ok(float)) if float.is_finite() => Value::Float(float),
            _ => return fault(format!("cannot parse number {text}")),
        };
        self.nodes.push(Node::Literal(value));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), PathError> {
        let mut text = String::new();
        let mut characters = self.rest[1..].char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\n' => break,
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, mark @ ('\\' | '"' | '\'' | '/'))) => text.push(mark),
                    Some((_, other)) => return fault(format!("unquote string error: \\{other}")),
                    None => break,
                },
                end if end == quote => {
                    self.rest = &self.rest[1 + at + quote.len_utf8()..];
                    self.nodes.push(Node::Literal(Value::from(text)));
                    return Ok(());
                }
                other => text.push(other),
            }
        }
        fault("unterminated quoted string")
    }

    fn array(&mut self) -> Result<(), PathError> {
        let Some(end) = self.rest.find([']', '\n']) else {
            return fault("unterminated array");
        };
        if self.rest.as_bytes()[end] == b'\n' {
            return fault("unterminated array");
        }
        let text = &self.take(end + 1)[1..end];
        if !text.contains(',') {
            return self.subscript(text);
        }
        let mut branches = Vec::new();
        for part in text.split(',') {
            let mut branch = Parser {
                rest: "",
                nodes: Vec::new(),
            };
            branch.subscript(part.trim_matches(' '))?;
            branches.push(branch.nodes);
        }
        self.nodes.push(Node::Union(branches));
        Ok(())
    }

    /// Parses one item between brackets: `*`, a quoted key, an index or a slice.
    fn subscript(&mut self, text: &str) -> Result<(), PathError> {
        if text == "*" {
            return self.subscript(":");
        }
        let key = text
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            // Upstream parses a quoted key as its own path, so a dot inside must be escaped.
            self.nodes.extend(action(&format!(".{key}"))?);
            return Ok(());
        }
        let mut parts = text.split(':');
        let start = bound(parts.next().unwrap_or(""), text)?;
        let second = parts.next();
        let end = bound(second.unwrap_or(""), text)?;
        let step = bound(parts.next().unwrap_or(""), text)?;
        if parts.next().is_some() {
            return fault(format!("invalid array index {text}"));
        }
        self.nodes.push(Node::Slice(Slice {
            start,
            end,
            single: second.is_none(),
            step,
        }));
        Ok(())
    }

    fn filter(&mut self) -> Result<(), PathError> {
        let Some(end) = filter_end(self.rest) else {
            return fault("unterminated filter");
        };
        let text = self.take(end);
        let Some(rest) = self.rest.strip_prefix(")]") else {
            return fault("unclosed array expect ]");
        };
        self.rest = rest;
        let operator = |character| matches!(character, '!' | '<' | '>' | '=');
        let split = text.find(operator).filter(|at| *at > 0).and_then(|at| {
            let (left, rest) = text.split_at(at);
            let length = rest.find(|character| !operator(character))?;
            let (operator, right) = rest.split_at(length);
            Some((left, operator, right))
        });
        self.nodes.push(Node::Filter(match split {
            Some((left, operator, right)) => Filter {
                left: action(left)?,
                compare: Some((Str::new(operator), action(right)?)),
            },
            None => Filter {
                left: action(text)?,
                compare: None,
            },
        }));
        Ok(())
    }
}

/// Returns the position of the closing parenthesis, ignoring quoted text.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\'' if quote.is_none() => quote = Some(character),
            mark if quote == Some(mark) => quote = None,
            ')' if quote.is_none() => return Some(at),
            _ => {}
        }
    }
    None
}

fn bound(text: &str, whole: &str) -> Result<Option<i64>, PathError> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return fault(format!("invalid array index {whole}"));
    }
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => fault(format!("array index {text} is not a number")),
    }
}

fn terminates(character: char) -> bool {
    matches!(
        character,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}
