//! The values of variables.

use bareboat_api::Str;

use crate::error::EvalError;
use crate::value::Val;

/// Where an evaluation finds the values of variables.
///
/// Whoever wants to compute a variable only when it is read implements this; everybody else uses
/// [`Variables`].
pub trait Activation<'a> {
    /// The value of a variable, why it has none, or nothing if there is no such variable.
    fn resolve(&self, name: &str) -> Option<Result<Val<'a>, EvalError>>;
}

/// A variable and its value, or the error that reading it gives.
type Bound<'a> = (Str, Result<Val<'a>, EvalError>);

/// Variables with their values.
#[derive(Clone, Default)]
pub struct Variables<'a> {
    // A `SmallVec` would tie the variables to the lifetime of the first program that reads them:
    // it is invariant. Rules have `self` and `oldSelf`.
    few: [Option<Bound<'a>>; 2],
    more: Vec<Bound<'a>>,
}

impl<'a> Variables<'a> {
    /// None.
    pub fn new() -> Variables<'a> {
        Variables::default()
    }

    /// Binds a variable to a value, or to the error that reading it gives, as [`Val::of`] returns
    /// them.
    pub fn bind(
        mut self,
        name: &str,
        value: impl Into<Result<Val<'a>, EvalError>>,
    ) -> Variables<'a> {
        self.set(name, value);
        self
    }

    /// Like [`Variables::bind`], in place; a variable that was bound is bound anew.
    pub fn set(&mut self, name: &str, value: impl Into<Result<Val<'a>, EvalError>>) {
        let value = value.into();
        let mut known = self.few.iter_mut().flatten().chain(&mut self.more);
        if let Some((_, old)) = known.find(|(known, _)| known == name) {
            *old = value;
            return;
        }
        match self.few.iter_mut().find(|free| free.is_none()) {
            Some(free) => *free = Some((name.into(), value)),
            None => self.more.push((name.into(), value)),
        }
    }
}

impl<'a> From<Val<'a>> for Result<Val<'a>, EvalError> {
    fn from(value: Val<'a>) -> Self {
        Ok(value)
    }
}

impl<'a> Activation<'a> for Variables<'a> {
    fn resolve(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
        let mut known = self.few.iter().flatten().chain(&self.more);
        let (_, value) = known.find(|(known, _)| known == name)?;
        Some(value.clone())
    }
}
