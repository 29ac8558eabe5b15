//! Values that statements take, and cells of rows that they return, for all engines.

use crate::shelf::ShelfError;

/// A value that is bound to a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A number that is not an integer.
    Real(f64),
    /// SQL's unknown value.
    Null,
}

impl From<&str> for Param {
    fn from(text: &str) -> Param {
        Param::Text(text.to_owned())
    }
}

impl From<String> for Param {
    fn from(text: String) -> Param {
        Param::Text(text)
    }
}

impl From<i64> for Param {
    fn from(number: i64) -> Param {
        Param::Int(number)
    }
}

impl From<usize> for Param {
    fn from(number: usize) -> Param {
        Param::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// One row of an answer. Columns are counted from 0.
///
/// ```
/// use bareboat_shelf::{Cells, Param, ShelfError};
///
/// /// A row in memory.
/// struct Fixed(Vec<Param>);
///
/// impl Cells for Fixed {
///     fn int(&self, column: usize) -> Result<Option<i64>, ShelfError> {
///         match &self.0[column] {
///             Param::Int(number) => Ok(Some(*number)),
///             Param::Null => Ok(None),
///             other => Err(ShelfError::Query(format!("{other:?} is no integer"))),
///         }
///     }
///
///     fn text(&self, column: usize) -> Result<Option<&str>, ShelfError> {
///         match &self.0[column] {
///             Param::Text(text) => Ok(Some(text)),
///             Param::Null => Ok(None),
///             other => Err(ShelfError::Query(format!("{other:?} is no text"))),
///         }
///     }
///
///     fn value(&self, column: usize) -> Result<Param, ShelfError> {
///         Ok(self.0[column].clone())
///     }
/// }
///
/// # fn main() -> Result<(), ShelfError> {
/// let row = Fixed(vec![7i64.into(), "web".into(), Param::Null]);
/// assert_eq!(row.int(0)?, Some(7));
/// assert_eq!(row.text(1)?, Some("web"));
/// assert_eq!(row.int(2)?, None);
/// assert!(row.int(1).is_err());
/// # Ok(()) }
/// ```
pub trait Cells {
    /// Returns an integer; `None` for NULL.
    fn int(&self, column: usize) -> Result<Option<i64>, ShelfError>;

    /// Returns a text; `None` for NULL.
    fn text(&self, column: usize) -> Result<Option<&str>, ShelfError>;

    /// Returns any value.
    fn value(&self, column: usize) -> Result<Param, ShelfError>;
}

/// Returns an integer that is never NULL.
pub(crate) fn number(cells: &dyn Cells, column: usize) -> Result<i64, ShelfError> {
    Ok(cells.int(column)?.unwrap_or(0))
}

/// Returns a text that is never NULL.
pub(crate) fn text(cells: &dyn Cells, column: usize) -> Result<String, ShelfError> {
    Ok(cells.text(column)?.unwrap_or("").to_owned())
}
