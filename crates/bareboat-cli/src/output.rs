//! Output of commands: tables for people, JSON for programs. Text from outside is escaped for terminals.

use anyhow::Result;
use bareboat::api::Value;
use std::fmt;

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Prints JSON, indented.
pub(crate) fn json(value: &Value) -> Result<()> {
    let mut text = String::new();
    indent(value, 0, &mut text);
    text.push('\n');
    crate::print(text.as_bytes())
}

fn indent(value: &Value, depth: usize, out: &mut String) {
    let step = |depth: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('{');
            for (index, (key, member)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                step(depth + 1, out);
                out.push_str(&Value::from(key).to_string());
                out.push_str(": ");
                indent(member, depth + 1, out);
            }
            step(depth, out);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                step(depth + 1, out);
                indent(item, depth + 1, out);
            }
            step(depth, out);
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Escapes control characters and characters that change the direction of text, so that the text is safe on a terminal.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let steers = character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        match steers {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    out
}

/// A table with aligned columns.
pub(crate) struct Table<const N: usize>(Vec<[String; N]>);

impl<const N: usize> Table<N> {
    /// A table with these headings.
    pub(crate) fn new(headings: [&str; N]) -> Table<N> {
        Table(vec![headings.map(str::to_owned)])
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: [String; N]) {
        self.0.push(row);
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let widths = self.0.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..N).map(width).collect();
        for row in &self.0 {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{cell:width$}   "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat::api::value;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown("plain Zoë"), "plain Zoë");
        assert_eq!(shown("a\u{1b}[31mb\u{202e}"), "a\\u{1b}[31mb\\u{202e}");
        assert_eq!(shown("a\nb"), "a\\nb");
    }

    #[test]
    fn tables_are_aligned() {
        let mut table = Table::new(["A", "B"]);
        table.row(["long cell".to_owned(), "x".to_owned()]);
        assert_eq!(table.to_string(), "A           B\nlong cell   x\n");
    }

    #[test]
    fn json_is_indented() {
        let mut text = String::new();
        indent(&value!({"a": [1, {}], "b": "\u{1b}"}), 0, &mut text);
        assert_eq!(
            text,
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"\\u001b\"\n}"
        );
    }
}
