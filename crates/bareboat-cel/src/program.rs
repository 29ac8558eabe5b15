//! Programs: checked expressions in the compact form that is evaluated and kept.

mod code;
mod lower;

pub(crate) use code::{Arith, Code, Comparison, FoldOp, Op, OpId, Span, StructOp, Targets};
pub(crate) use lower::build;

use std::sync::Arc;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::eval::{self, Activation};
use crate::value::Val;

/// An expression ready to run; cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Program {
    pub(crate) code: Arc<Code>,
}

impl Program {
    /// Runs the program.
    ///
    /// What it cost is taken off the budget and can be read there.
    pub fn eval<'a>(
        &'a self,
        variables: &dyn Activation<'a>,
        budget: &mut Budget,
    ) -> Result<Val<'a>, EvalError> {
        eval::run(&self.code, variables, budget)
    }

    /// Whether the program reads the variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.code.variables.iter().any(|name| name == variable)
    }
}

#[cfg(test)]
mod tests;
