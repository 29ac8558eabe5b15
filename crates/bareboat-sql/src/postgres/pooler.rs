//! Notices a pooler that gives one connection of the database to several clients in turn, such as PgBouncer with
//! `pool_mode=transaction`.
//!
//! Behind one, the settings of a session (among them `synchronous_commit`, the isolation level and `search_path`) are
//! those of another client, and prepared statements are missing. So the address is refused. A pooler whose clients keep
//! their connection (`pool_mode=session`) is as good as none.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::address::Address;
use super::session::dial;
use crate::error::SqlError;

const REFUSED: &str = "the address leads to a pooler that shares sessions, such as PgBouncer with pool_mode=transaction: settings of a session do not hold there; \
     use the address of the database itself, or pool_mode=session";

/// Refuses a pooler that shares sessions. `client` is a connection that is open.
pub(super) async fn refuse(address: &Address, client: &Client) -> Result<(), SqlError> {
    let second = dial(address).await?;
    let first = server_process(client).await?;
    // A connection that is not in a transaction is given to the next client that begins one.
    second.batch_execute("BEGIN").await?;
    let shared = first == server_process(&second).await?
        // It was given to another client of the pooler instead.
        || first != server_process(client).await?;
    second.batch_execute("ROLLBACK").await?;
    match shared {
        true => Err(SqlError::Unsafe(REFUSED.into())),
        false => Ok(()),
    }
}

/// Returns the process of the server that answers. The statement is not prepared, so that it works behind any pooler.
async fn server_process(client: &Client) -> Result<Option<String>, SqlError> {
    let rows = client.simple_query("SELECT pg_backend_pid()").await?;
    Ok(rows.iter().find_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}
