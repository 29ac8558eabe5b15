//! Error reports for expressions that do not compile.
//!
//! `bareboat_cel` decides which variables they may use.

use super::check::Errors;
use bareboat_api::{FieldError, FieldPath};
use bareboat_cel::Refused;

/// Reports why an expression was rejected, if it was.
pub(super) fn judge<T>(
    compiled: Result<T, Refused>,
    expression: &str,
    place: FieldPath,
    wrong: &mut Errors,
) {
    match compiled {
        Ok(_) => {}
        Err(Refused::Invalid(detail)) => {
            wrong.push(FieldError::invalid(place, expression, detail));
        }
        Err(Refused::Hopeless(detail)) => wrong.push(FieldError::internal(place, detail)),
    }
}
