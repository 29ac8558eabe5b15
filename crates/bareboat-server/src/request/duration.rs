//! The time limit of a request: `?timeout=` lowers the server's limit.

use super::query::Query;
use bareboat_api::Status;
use std::time::Duration;

/// Parses `?timeout=30s`; `None` if the client sets none.
pub fn wished(query: &Query) -> Result<Option<Duration>, Status> {
    let Some(text) = query.given("timeout") else {
        return Ok(None);
    };
    let refuse = |why: &str| {
        Status::bad_request(format!(
            "invalid timeout specified in the request URL - {why}"
        ))
    };
    let nanoseconds =
        bareboat_api::time::parse_duration(text).map_err(|error| refuse(&error.to_string()))?;
    match u64::try_from(nanoseconds) {
        Ok(0) => Ok(None),
        Ok(nanoseconds) => Ok(Some(Duration::from_nanos(nanoseconds))),
        Err(_) => Err(refuse("a timeout cannot be negative")),
    }
}
