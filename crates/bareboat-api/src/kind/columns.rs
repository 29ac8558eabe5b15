//! Table columns and how their cells are computed.

use crate::time::{Timestamp, human_duration};
use crate::{Str, Value};
use std::fmt;
use std::sync::Arc;

/// The time at which a table is printed, for ages: seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now(pub i64);

impl Now {
    /// Returns the human-readable age of a timestamp; `None` if it is not a timestamp.
    pub fn since(self, time: &str) -> Option<Str> {
        let time = Timestamp::parse(time).ok()?;
        Some(human_duration(self.0.saturating_sub(time.seconds)).into())
    }
}

/// Computes a cell from an object.
pub type Cell = Arc<dyn Fn(&Value, Now) -> Value + Send + Sync>;

/// One column.
#[derive(Clone)]
pub struct Column {
    /// The heading of the column.
    pub name: Str,
    /// The type: `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: Str,
    /// The format, such as `name` or `date-time`; may be empty.
    pub format: Str,
    /// The description.
    pub description: Str,
    /// The priority: 0 is always shown, higher only in wide output.
    pub priority: i32,
    /// Computes the cells.
    pub cell: Cell,
}

impl Column {
    /// Returns a column of strings that is always shown.
    pub fn string(
        name: &str,
        cell: impl Fn(&Value, Now) -> Value + Send + Sync + 'static,
    ) -> Column {
        Column {
            name: Str::new(name),
            ty: Str::const_new("string"),
            format: Str::default(),
            description: Str::default(),
            priority: 0,
            cell: Arc::new(cell),
        }
    }

    /// Returns the column with an object's age.
    pub fn age() -> Column {
        Column::string("Age", |object, now| {
            let created = object.at(&["metadata", "creationTimestamp"]);
            let age = created
                .and_then(Value::as_str)
                .and_then(|time| now.since(time));
            age.map_or_else(|| Value::string("<unknown>"), Value::from)
        })
    }

    /// Changes the type of the column.
    #[must_use]
    pub fn typed(mut self, ty: &str) -> Column {
        self.ty = Str::new(ty);
        self
    }

    /// Limits the column to wide output.
    #[must_use]
    pub fn wide(mut self) -> Column {
        self.priority = 1;
        self
    }

    /// Sets the description of the column.
    #[must_use]
    pub fn described(mut self, text: &str) -> Column {
        self.description = Str::new(text);
        self
    }
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
