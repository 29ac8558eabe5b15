//! Programs: checked expressions in the compact form that is stored and evaluated.

mod code;
mod lower;

pub(crate) use code::{Arith, Code, Comparison, FoldOp, Op, OpId, Span, StructOp, Targets};
pub(crate) use lower::build;

use std::sync::Arc;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::eval::{self, Activation};
use crate::value::Val;

/// A program; cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Program {
    pub(crate) code: Arc<Code>,
}

bareboat_api::opaque_debug!(Program);

impl Program {
    /// Runs the program.
    ///
    /// Its cost is subtracted from the budget and can be read there.
    pub fn eval<'a>(
        &'a self,
        variables: &dyn Activation<'a>,
        budget: &mut Budget,
    ) -> Result<Val<'a>, EvalError> {
        eval::run(&self.code, variables, budget)
    }

    /// Returns the names of the variables that the program may read.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.code.variables.iter().map(bareboat_api::Str::as_str)
    }

    /// Returns the depth of the expression, which bounds the recursion of its evaluation.
    pub fn depth(&self) -> usize {
        self.code.depth.into()
    }

    /// Returns whether the program reads the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.code.variables.iter().any(|name| name == variable)
    }
}

#[cfg(test)]
mod tests;
