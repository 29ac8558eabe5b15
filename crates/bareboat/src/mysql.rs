//! The log in a MySQL or MariaDB database.

pub use bareboat_sql::{AddressError, DatabaseError, Failover, Mysql, SqlError, SqlOptions};
