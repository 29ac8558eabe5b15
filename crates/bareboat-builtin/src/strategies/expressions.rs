//! What is said about expressions that do not compile.
//!
//! Which variables they may use is the business of `bareboat_cel`.

use super::check::Errors;
use bareboat_api::{FieldError, FieldPath};
use bareboat_cel::Refused;

/// Tells why an expression was refused, if it was.
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
