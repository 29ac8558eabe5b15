//! Why an evaluation gave no value.

use std::borrow::Cow;
use std::fmt;

/// Why an evaluation gave no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The expression failed on this data.
    Failed(Cow<'static, str>),
    /// The evaluation cost more than was allowed.
    OutOfBudget,
}

const NO_SUCH_OVERLOAD: &str = "no such overload";

impl EvalError {
    /// A failure with that message.
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

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Failed(message) => f.write_str(message),
            EvalError::OutOfBudget => {
                f.write_str("operation cancelled: actual cost limit exceeded")
            }
        }
    }
}

impl std::error::Error for EvalError {}
