//! A list of field errors with a limit.
//!
//! A few bytes of a body can cause several errors, and each of them is printed several times on its
//! way to the client. Checks therefore collect errors here, and count those that are not kept.

use super::FieldError;
use crate::Value;

/// The maximum number of errors that are kept.
const MAX_KEPT: usize = 1000;
/// The maximum bytes of paths, values and details that are kept. An error may show a whole list,
/// and a list may have many errors.
const MAX_SHOWN: usize = 4 << 20;

/// Errors of one object. Once the limit is reached, further errors are only counted.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors {
    kept: Vec<FieldError>,
    /// The bytes of the kept errors.
    shown: usize,
    /// How many errors followed that are not kept.
    more: usize,
}

impl FieldErrors {
    /// Adds an error; it is only counted if the limit is reached.
    pub fn push(&mut self, error: FieldError) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.shown += weight(&error);
            self.kept.push(error);
        }
    }

    /// Moves all errors of another list to the end of this one.
    pub fn append(&mut self, other: &mut FieldErrors) {
        let other = std::mem::take(other);
        self.extend(other.kept);
        self.more += other.more;
    }

    /// Returns whether the limit is reached. Callers that would clone a lot for an error check this
    /// first.
    pub fn is_full(&self) -> bool {
        self.more > 0 || self.kept.len() >= MAX_KEPT || self.shown >= MAX_SHOWN
    }

    /// Returns whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the number of errors, with those that are not kept.
    pub fn len(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Returns the kept errors.
    pub fn kept(&self) -> &[FieldError] {
        &self.kept
    }

    /// Removes all errors after the first `len`, and returns those of them that were kept.
    pub fn take_after(&mut self, len: usize) -> Vec<FieldError> {
        let taken = self.kept.split_off(len.min(self.kept.len()));
        self.shown -= taken.iter().map(weight).sum::<usize>();
        self.more = len.saturating_sub(self.kept.len());
        taken
    }

    /// Keeps the kept errors that fit a condition.
    pub fn retain(&mut self, fits: impl FnMut(&FieldError) -> bool) {
        self.kept.retain(fits);
        self.shown = self.kept.iter().map(weight).sum();
    }

    /// Returns the kept errors.
    pub fn into_list(self) -> Vec<FieldError> {
        self.kept
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

fn weight(error: &FieldError) -> usize {
    let shown = error.value.as_ref().map_or(0, size);
    error.path.as_str().len() + error.detail.len() + shown
}

/// Returns the approximate size of a printed value in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 2 + size(item)).sum(),
        Value::Object(members) => {
            let sizes = members
                .iter()
                .map(|(key, member)| key.len() + 4 + size(member));
            sizes.sum()
        }
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldPath;

    fn error(value: String) -> FieldError {
        FieldError::invalid(FieldPath::new("spec"), value, "is wrong")
    }

    #[test]
    fn errors_above_the_limit_are_counted_and_not_kept() {
        let mut errors = FieldErrors::default();
        assert!(errors.is_empty());
        errors.extend((0..3 * MAX_KEPT).map(|at| error(at.to_string())));
        assert_eq!(errors.len(), 3 * MAX_KEPT);
        assert!(errors.is_full() && !errors.is_empty());
        assert_eq!(errors.into_list().len(), MAX_KEPT);
    }

    #[test]
    fn large_values_reach_the_limit_sooner() {
        let mut errors = FieldErrors::default();
        errors.extend((0..10).map(|_| error("x".repeat(1 << 20))));
        assert_eq!((errors.kept().len(), errors.len()), (4, 10));
    }

    #[test]
    fn taken_errors_make_room_again() {
        let mut errors = FieldErrors::default();
        errors.push(error("first".to_owned()));
        let before = errors.len();
        errors.extend((0..2 * MAX_KEPT).map(|at| error(at.to_string())));
        let middle = errors.len() - 5;
        assert!(errors.take_after(middle).is_empty(), "they were not kept");
        assert_eq!(errors.len(), middle);
        assert_eq!(errors.take_after(before).len(), MAX_KEPT - 1);
        assert_eq!((errors.len(), errors.is_full()), (before, false));
        errors.push(error("another".to_owned()));
        assert_eq!(errors.kept().len(), 2);
    }
}
