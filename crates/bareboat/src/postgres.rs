//! The log in a PostgreSQL database.

pub use bareboat_sql::{AddressError, Failover, Postgres, SqlError, SqlOptions};
