//! Paths to declared fields of a schema, such as `.spec.replicas` or `.labels['a.b']`.

use crate::schema::Node;
use bareboat_api::FieldPath;

/// The target of a path: its printed form and its schema.
pub(crate) struct Target<'n> {
    pub(crate) path: FieldPath,
    /// The first member of the path.
    pub(crate) first: String,
    pub(crate) node: &'n Node,
}

/// Follows a path through a schema; the error explains an invalid path.
pub(crate) fn field_path<'n>(
    text: &str,
    node: &'n Node,
    brackets: bool,
) -> Result<Target<'n>, String> {
    let mut target = Target {
        path: FieldPath::root(),
        first: String::new(),
        node,
    };
    for step in steps(text, brackets) {
        target.step(&step?)?;
    }
    Ok(target)
}

/// Returns the names of a path, parsed lazily.
pub(crate) fn steps(text: &str, brackets: bool) -> impl Iterator<Item = Result<String, String>> {
    let mut tokens = split(text).into_iter();
    std::iter::from_fn(move || {
        let token = tokens.next()?;
        Some(step(token, &mut tokens, brackets))
    })
}

fn step<'t>(
    token: &str,
    rest: &mut impl Iterator<Item = &'t str>,
    brackets: bool,
) -> Result<String, String> {
    const END: &str = "unexpected end of JSON path";
    match token {
        "." => Ok(rest.next().ok_or(END)?.to_owned()),
        "[" if !brackets => Err("array notation is not allowed".to_owned()),
        "[" => {
            let token = rest.next().ok_or(END)?;
            let quoted = token
                .strip_prefix('\'')
                .and_then(|rest| rest.strip_suffix('\''));
            let Some(quoted) = quoted else {
                return Err(format!("expected single quoted string but got {token}"));
            };
            let name = unescape(quoted).map_err(|escape| {
                format!("invalid string literal: invalid escape char {escape}")
            })?;
            match rest.next().ok_or(END)? {
                "]" => Ok(name),
                other => Err(format!("expected ] but got {other}")),
            }
        }
        other => Err(format!("expected [ or . but got: {other}")),
    }
}

impl Target<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        const NOWHERE: &str = "does not refer to a valid field";
        if self.path.is_root() {
            self.first = name.to_owned();
        }
        if self.node.properties.is_empty() {
            self.node = self.node.additional().ok_or(NOWHERE)?;
            self.path = self.path.key(name);
        } else {
            self.node = self.node.property(name).ok_or(NOWHERE)?;
            self.path = self.path.child(name);
        }
        Ok(())
    }
}

/// Splits at dots and brackets, which are tokens too; quoted text is one token.
fn split(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = if let Some(inner) = rest.strip_prefix('\'') {
            let mut escaped = false;
            let close = inner.char_indices().find(|(_, character)| {
                let closes = *character == '\'' && !escaped;
                escaped = *character == '\\' && !escaped;
                closes
            });
            close.map_or(rest.len(), |(at, _)| at + 2)
        } else if rest.starts_with(['.', '[', ']']) {
            1
        } else {
            rest.find(['.', '[', ']']).unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(end);
        tokens.push(token);
        rest = tail;
    }
    tokens
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(same @ ('\'' | '\\')) => same,
            Some(other) => return Err(format!("\\{other}")),
            None => return Err("\\".to_owned()),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
