//! The values of variables.

use bareboat_api::Str;

use crate::error::EvalError;
use crate::value::Val;

/// Provides the values of variables.
///
/// Callers that compute a variable only when it is read implement this; others use [`Variables`].
///
/// ```
/// use bareboat_cel::{Activation, Budget, DeclType, Env, EvalError, Val};
/// use std::cell::Cell;
///
/// #[derive(Default)]
/// struct Lazy { reads: Cell<u32> }
/// impl<'a> Activation<'a> for Lazy {
///     fn resolve(&self, name: &str) -> Option<Result<Val<'a>, EvalError>> {
///         (name == "owner").then(|| {
///             self.reads.set(self.reads.get() + 1);
///             Ok(Val::str("ada"))
///         })
///     }
/// }
///
/// let env = Env::kubernetes().declare("owner", &DeclType::string());
/// let program = |text| env.program(&env.compile(text).expect("it is an expression")).expect("it is sound");
/// let lazy = Lazy::default();
/// let eval = |text| program(text).eval(&lazy, &mut Budget::new(1_000)).map(|result| result.as_bool());
/// assert_eq!(eval("1 + 1 == 2 || owner == 'ada'").expect("it has a value"), Some(true));
/// assert_eq!(lazy.reads.get(), 0);
/// assert_eq!(eval("owner == 'ada'").expect("it has a value"), Some(true));
/// assert_eq!(lazy.reads.get(), 1);
/// ```
pub trait Activation<'a> {
    /// Returns the value of a variable or its error; `None` if there is no such variable.
    fn resolve(&self, name: &str) -> Option<Result<Val<'a>, EvalError>>;
}

/// A variable with its value, or with the error of reading it.
type Bound<'a> = (Str, Result<Val<'a>, EvalError>);

/// Variables with their values.
#[derive(Clone, Default)]
pub struct Variables<'a> {
    // Not a `SmallVec`: it is invariant, and would tie the variables to the lifetime of the first
    // program that reads them. Rules have two variables, `self` and `oldSelf`.
    few: [Option<Bound<'a>>; 2],
    more: Vec<Bound<'a>>,
}

bareboat_api::opaque_debug!(Variables<'_>);

impl<'a> Variables<'a> {
    /// Returns no variables.
    pub fn new() -> Variables<'a> {
        Variables::default()
    }

    /// Binds a variable to a value, or to the error of reading it, as [`Val::of`] returns them.
    pub fn bind(
        mut self,
        name: &str,
        value: impl Into<Result<Val<'a>, EvalError>>,
    ) -> Variables<'a> {
        self.set(name, value);
        self
    }

    /// Like [`Variables::bind`], in place; replaces an earlier binding.
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
