//! Syntax error messages of the parser.
//!
//! The wording is that of upstream's parser generator: a token too many is *extraneous*, a missing
//! token is *missing*, and anything else *mismatched*.

use super::super::scanner::{Kind, Token};
use super::{Parser, Stop};

/// The tokens that can begin an operand, in the order messages list them.
const OPERAND: [&str; 19] = [
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
];

impl Parser<'_> {
    /// Returns the error of a token in place of one particular token.
    pub(super) fn unexpected(&self, wanted: &str) -> Stop {
        let found = self.peek();
        let text = found.text;
        let message = if self.peek_after(1).is(wanted) {
            format!("extraneous input '{text}' expecting '{wanted}'")
        } else if may_follow(wanted, found) {
            format!("missing '{wanted}' at '{text}'")
        } else {
            format!("mismatched input '{text}' expecting '{wanted}'")
        };
        self.stop(found.offset, format!("Syntax error: {message}"))
    }

    /// Returns the error of a token between two elements of a list or map.
    pub(super) fn unseparated(&self, close: &str) -> Stop {
        let found = self.peek();
        let text = found.text;
        let message = if self.peek_after(1).is(close) {
            "extraneous"
        } else {
            "mismatched"
        };
        self.stop(
            found.offset,
            format!("Syntax error: {message} input '{text}' expecting {{'{close}', ','}}"),
        )
    }

    /// Returns the error of tokens after the expression.
    pub(super) fn trailing(&self) -> Stop {
        let found = self.peek();
        let text = found.text;
        let message = match self.peek_after(1).kind {
            Kind::End => "extraneous",
            _ => "mismatched",
        };
        self.stop(
            found.offset,
            format!("Syntax error: {message} input '{text}' expecting <EOF>"),
        )
    }

    /// Returns the error of a token in place of an operand.
    pub(super) fn unexpected_operand(&self) -> Stop {
        let found = self.peek();
        let extras: &[&str] = self.allowed;
        let expected: Vec<&str> = OPERAND
            .into_iter()
            .filter(|mark| !"']''}'')'',''?'".contains(mark) || extras.contains(mark))
            .chain(["IDENTIFIER"])
            .collect();
        let next = self.peek_after(1);
        let message = if begins_operand(next) && found.kind != Kind::End {
            "extraneous"
        } else {
            "mismatched"
        };
        self.stop(
            found.offset,
            format!(
                "Syntax error: {message} input '{}' expecting {{{}}}",
                found.text,
                expected.join(", ")
            ),
        )
    }
}

fn begins_operand(token: Token<'_>) -> bool {
    match token.kind {
        Kind::End | Kind::Quoted => false,
        Kind::Mark => matches!(
            token.text,
            "[" | "{" | "(" | "." | "-" | "!" | "true" | "false" | "null"
        ),
        _ => true,
    }
}

/// Returns whether a token could follow the missing one.
fn may_follow(mark: &str, token: Token<'_>) -> bool {
    match mark {
        ":" | "{" => begins_operand(token),
        _ => token.kind == Kind::End || (token.kind == Kind::Mark && !begins_operand(token)),
    }
}
