//! The errors of an evaluation.

use std::borrow::Cow;
use std::fmt;

/// The error of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression failed on this data.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// The evaluation exceeded its budget.
    #[error("operation cancelled: actual cost limit exceeded")]
    OutOfBudget,
}

const NO_SUCH_OVERLOAD: &str = "no such overload";

impl EvalError {
    /// Returns a failure with that message.
    pub fn new(message: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError::Failed(message.into())
    }

    pub(crate) fn no_such_overload() -> EvalError {
        EvalError::new(NO_SUCH_OVERLOAD)
    }

    pub(crate) fn is_no_such_overload(&self) -> bool {
        matches!(self, EvalError::Failed(message) if message == NO_SUCH_OVERLOAD)
    }

    pub(crate) fn no_such_key(key: impl fmt::Display) -> EvalError {
        EvalError::new(format!("no such key: {key}"))
    }
}
