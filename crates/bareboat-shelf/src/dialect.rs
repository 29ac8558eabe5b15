//! What differs between databases in the statements of searches.

/// A database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite. Labels and fields are texts; indexes on them are made for some keys.
    Sqlite,
    /// PostgreSQL. Labels and fields are `jsonb`, with an index over all keys.
    Postgres,
    /// MariaDB and MySQL. Labels and fields are texts, all other texts are bytes; indexes are made for some keys.
    Mysql,
}

/// The bytes of a text that an index of MariaDB or MySQL has.
const INDEXED_BYTES: usize = 200;
/// The rows of a search that one statement reads in MariaDB or MySQL.
const PART: usize = 1000;

impl Dialect {
    /// Returns whether indexes are made for keys that are used.
    pub(crate) fn learns(self) -> bool {
        self != Dialect::Postgres
    }

    /// Returns how many rows of a search one statement may read, where no other statement can run until all its rows have arrived.
    pub(crate) fn part(self) -> Option<usize> {
        (self == Dialect::Mysql).then_some(PART)
    }

    /// Returns whether a search by body first reads only the places of rows, then judges bodies, and at last reads the whole rows of those
    /// that match.
    pub(crate) fn judges_bodies_first(self) -> bool {
        self == Dialect::Sqlite
    }

    /// Returns how many bytes of a text the column of an index has, if it does not have all of them.
    pub(crate) fn indexed_bytes(self) -> Option<usize> {
        (self == Dialect::Mysql).then_some(INDEXED_BYTES)
    }

    /// Returns what an index of a key has.
    pub(crate) fn indexed(self, column: &str, key: &str) -> String {
        let text = self.member(column, key);
        match self.indexed_bytes() {
            None => text,
            Some(bytes) => format!("LEFT({text}, {bytes})"),
        }
    }

    /// Returns whether a list of columns that is greater than a list of values is looked up in an index.
    pub(crate) fn compares_lists(self) -> bool {
        self != Dialect::Mysql
    }

    /// Returns the clause of an INSERT that leaves a row as it is, if there is one with the same key.
    pub(crate) fn or_leave(self, key: &[&str]) -> String {
        match self {
            Dialect::Sqlite | Dialect::Postgres => {
                format!("ON CONFLICT ({}) DO NOTHING", key.join(", "))
            }
            Dialect::Mysql => format!("ON DUPLICATE KEY UPDATE {0} = {0}", key[0]),
        }
    }

    /// Returns a column in a form that no index answers.
    pub(crate) fn unindexed(self, column: &str) -> String {
        match self {
            Dialect::Sqlite => format!("+{column}"),
            Dialect::Postgres | Dialect::Mysql => column.to_owned(),
        }
    }

    /// Returns the condition that a column contains a text.
    pub(crate) fn contains(self, column: &str) -> String {
        match self {
            Dialect::Sqlite | Dialect::Mysql => format!("instr({column}, ?) > 0"),
            Dialect::Postgres => format!("strpos({column}, ?) > 0"),
        }
    }

    /// Returns the text of a key in a JSON object of texts. The key has no characters that are special in SQL or JSON paths.
    pub(crate) fn member(self, column: &str, key: &str) -> String {
        match self {
            Dialect::Sqlite => format!("json_extract({column}, '$.\"{key}\"')"),
            Dialect::Postgres => format!("(({column} ->> '{key}') COLLATE \"C\")"),
            // MariaDB's JSON_VALUE has all of a text, that of MySQL only its start.
            Dialect::Mysql => {
                format!("CAST(JSON_UNQUOTE(JSON_EXTRACT({column}, '$.\"{key}\"')) AS BINARY)")
            }
        }
    }

    /// Returns the number that a text begins with, or 0. Absent texts count as 0.
    pub(crate) fn real(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("CAST(coalesce({text}, 0) AS REAL)"),
            // Lengths are limited, because a number that is too large is an error there. A question mark would be a parameter.
            Dialect::Postgres => format!(
                "coalesce(CAST(substring({text} FROM '^\\s*([-+]{{0,1}}(\\d{{1,200}}(\\.\\d{{0,50}}){{0,1}}|\\.\\d{{1,50}})([eE][-+]{{0,1}}\\d{{1,2}}){{0,1}})') AS float8), 0)"
            ),
            Dialect::Mysql => format!("(coalesce({text}, '0') + 0e0)"),
        }
    }

    /// Returns the integer that a text begins with, or 0.
    pub(crate) fn integer(self, text: &str) -> String {
        match self {
            Dialect::Sqlite => format!("CAST({text} AS INTEGER)"),
            Dialect::Postgres => {
                format!("coalesce(CAST(substring({text} FROM '^\\d{{1,18}}') AS int8), 0)")
            }
            Dialect::Mysql => format!("CAST(LEFT({text}, 18) AS SIGNED)"),
        }
    }

    /// Returns the text of a JSON column.
    pub(crate) fn json_text(self, column: &str) -> String {
        match self {
            Dialect::Sqlite | Dialect::Mysql => column.to_owned(),
            Dialect::Postgres => format!("CAST({column} AS text)"),
        }
    }

    /// Returns the mark of a parameter with the text of a JSON document.
    pub(crate) fn json_mark(self) -> &'static str {
        match self {
            Dialect::Sqlite | Dialect::Mysql => "?",
            Dialect::Postgres => "CAST(? AS jsonb)",
        }
    }

    /// Returns the clause that names an index. SQLite has no statistics to choose by.
    pub(crate) fn hint(self, index: &str) -> String {
        match self {
            Dialect::Sqlite => format!("INDEXED BY {index}"),
            Dialect::Postgres | Dialect::Mysql => String::new(),
        }
    }

    /// Returns the columns of a narrow row, in the order in which [`crate::row::Narrow`] is read.
    pub fn columns(self) -> &'static str {
        match self {
            Dialect::Sqlite | Dialect::Mysql => {
                "o.id, o.member, o.kind, o.version, o.ns, o.name, o.uid, o.owner, o.created, o.deleting, \
                 o.synced, o.rv, o.born, o.rev, o.gone, o.labels, o.fields"
            }
            Dialect::Postgres => {
                "o.id, o.member, o.kind, o.version, o.ns, o.name, o.uid, o.owner, o.created, o.deleting, \
                 o.synced, o.rv, o.born, o.rev, o.gone, CAST(o.labels AS text), CAST(o.fields AS text)"
            }
        }
    }
}

/// The number of the columns of a narrow row.
pub(crate) const WIDTH: usize = crate::row::Narrow::COLUMNS;
