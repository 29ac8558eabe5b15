//! Paths of fields in objects, as field selectors spell them: `.a.b`, `a['x.y']`, `a."x.y"`, `list[].f`, `list[0].f`.

use bareboat_api::Value;
use std::fmt;

/// The longest path.
const MOST_STEPS: usize = 32;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A member of an object.
    Key(String),
    /// Every element of a list.
    Each,
    /// One element of a list.
    At(usize),
}

/// A path from the top of an object to a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path(Vec<Step>);

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid field path {text:?}: {why}")]
pub struct PathError {
    text: String,
    why: &'static str,
}

impl Path {
    /// Parses a path. The last step must name a field, not an element of a list.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let wrong = |why| PathError {
            text: text.to_owned(),
            why,
        };
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix('.').unwrap_or(text);
        if rest.is_empty() {
            return Err(wrong("it names no field"));
        }
        while !rest.is_empty() {
            if steps.len() == MOST_STEPS {
                return Err(wrong("it has too many steps"));
            }
            let (step, after) = match rest.as_bytes()[0] {
                b'[' => bracket(rest).map_err(wrong)?,
                b'"' | b'\'' => quoted(rest).map_err(wrong)?,
                _ => plain(rest).map_err(wrong)?,
            };
            if steps.is_empty() && !matches!(step, Step::Key(_)) {
                return Err(wrong("it must begin with the name of a field"));
            }
            steps.push(step);
            rest = match after.strip_prefix('.') {
                Some("") => return Err(wrong("it ends with a dot")),
                Some(more) => more,
                None if after.is_empty() || after.starts_with('[') => after,
                None => return Err(wrong("a dot is missing between two fields")),
            };
        }
        match steps.last() {
            Some(Step::Key(_)) => Ok(Path(steps)),
            _ => Err(wrong("the last element must not be a list")),
        }
    }

    /// Parses a path in the notation of SQL's JSON functions: `$.a.b`, `$.a[0].b`, `$."x.y"`.
    pub fn parse_json(text: &str) -> Result<Path, PathError> {
        let wrong = |why| PathError {
            text: text.to_owned(),
            why,
        };
        let rest = text.strip_prefix('$');
        Path::parse(rest.ok_or_else(|| wrong("it must begin with $"))?)
    }

    /// Returns the steps.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Gives the first step another name, if there is one.
    pub fn rename(&mut self, other: &dyn Fn(&str) -> Option<&'static str>) {
        if let Some(Step::Key(key)) = self.0.first_mut()
            && let Some(name) = other(key)
        {
            name.clone_into(key);
        }
    }

    /// Returns whether the path goes through a list.
    pub fn has_list(&self) -> bool {
        self.0.iter().any(|step| !matches!(step, Step::Key(_)))
    }

    /// Returns whether the path can name a column of its own: names of common characters, no lists.
    pub fn is_simple(&self) -> bool {
        let common = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
        self.0.iter().all(|step| match step {
            Step::Key(key) => !key.is_empty() && key.chars().all(common),
            _ => false,
        })
    }

    /// Returns the value at the path in an object; `None` if the path goes through a list.
    pub fn read<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, step| match step {
            Step::Key(key) => value.get(key),
            _ => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if key.contains(['.', '[', ']', '\'', '"', ' ']) => {
                    write!(f, "['{key}']")?;
                }
                Step::Key(key) if index == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Each => f.write_str("[]")?,
                Step::At(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

fn bracket(text: &str) -> Result<(Step, &str), &'static str> {
    let inner = &text[1..];
    if let Some(first) = inner.chars().next()
        && matches!(first, '\'' | '"')
    {
        let (step, after) = quoted(inner)?;
        let after = after
            .strip_prefix(']')
            .ok_or("a closing bracket is missing")?;
        return Ok((step, after));
    }
    let (inside, after) = inner
        .split_once(']')
        .ok_or("a closing bracket is missing")?;
    if inside.is_empty() {
        return Ok((Step::Each, after));
    }
    let index = inside.parse();
    let index = index.map_err(|_| "put the name of a field in brackets in quotes")?;
    Ok((Step::At(index), after))
}

fn quoted(text: &str) -> Result<(Step, &str), &'static str> {
    let quote = text.chars().next().unwrap_or('"');
    let (key, after) = text[1..]
        .split_once(quote)
        .ok_or("a closing quote is missing")?;
    match key.is_empty() {
        true => Err("a field has no name"),
        false => Ok((Step::Key(key.to_owned()), after)),
    }
}

fn plain(text: &str) -> Result<(Step, &str), &'static str> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (key, after) = text.split_at(end);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_/$@".contains(c);
    if key.is_empty() {
        return Err("a field has no name");
    }
    match key.chars().all(allowed) {
        true => Ok((Step::Key(key.to_owned()), after)),
        false => Err("put a field with such a name in brackets and quotes"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Path, Step};

    #[test]
    fn paths_of_the_documentation_parse() {
        let key = |text: &str| Step::Key(text.to_owned());
        let parsed = |text: &str| Path::parse(text).map(|path| path.steps().to_vec());
        assert_eq!(parsed(".a.b"), Ok(vec![key("a"), key("b")]));
        assert_eq!(parsed("a['x.y']"), Ok(vec![key("a"), key("x.y")]));
        assert_eq!(parsed("a.\"x.y\""), Ok(vec![key("a"), key("x.y")]));
        assert_eq!(parsed("l[].f"), Ok(vec![key("l"), Step::Each, key("f")]));
        assert_eq!(parsed("l[0].f"), Ok(vec![key("l"), Step::At(0), key("f")]));
    }

    #[test]
    fn wrong_paths_are_refused() {
        let wrong = [
            "",
            ".",
            "[0]",
            "a[test.io]",
            "spec.containers[]",
            "a..b",
            "a.",
            "a['x'",
            "a b",
        ];
        for text in wrong {
            assert!(Path::parse(text).is_err(), "{text} parses");
        }
    }

    #[test]
    fn a_printed_path_parses_to_itself() {
        for text in ["a.b", "a['x.y'].c", "l[].f", "l[3].f"] {
            let path = Path::parse(text).expect("it parses");
            assert_eq!(path.to_string(), text);
        }
    }
}
