//! Parsing: scanner, parser, macros.

pub(crate) mod ast;
mod literal;
mod macros;
mod parser;
mod scanner;

pub(crate) use macros::Macros;
pub(crate) use parser::{Options, parse};
