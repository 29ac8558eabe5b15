//! The columns of a table and how their cells are filled.

use crate::time::{Timestamp, human_duration};
use crate::{Str, Value};
use std::fmt;
use std::sync::Arc;

/// The moment a table is printed at, for ages: seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now(pub i64);

impl Now {
    /// How long ago a time of the API was, as people say it; nothing if it is none.
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
    /// The heading.
    pub name: Str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub ty: Str,
    /// Such as `name` or `date-time`; may be empty.
    pub format: Str,
    /// Told by `kubectl explain`-like tools.
    pub description: Str,
    /// 0 is always shown, more only in wide output.
    pub priority: i32,
    /// What stands in the cells.
    pub cell: Cell,
}

impl Column {
    /// A column of strings that is always shown.
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

    /// How long ago an object was created.
    pub fn age() -> Column {
        Column::string("Age", |object, now| {
            let created = object.at(&["metadata", "creationTimestamp"]);
            let age = created
                .and_then(Value::as_str)
                .and_then(|time| now.since(time));
            age.map_or_else(|| Value::string("<unknown>"), Value::from)
        })
    }

    /// The same column with another type.
    #[must_use]
    pub fn typed(mut self, ty: &str) -> Column {
        self.ty = Str::new(ty);
        self
    }

    /// The same column, shown in wide output only.
    #[must_use]
    pub fn wide(mut self) -> Column {
        self.priority = 1;
        self
    }

    /// The same column with a description.
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
