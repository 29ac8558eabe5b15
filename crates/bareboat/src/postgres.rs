//! The log in a PostgreSQL database.

pub use bareboat_sql::{AddressError, DatabaseError, Failover, Postgres, SqlError, SqlOptions};
