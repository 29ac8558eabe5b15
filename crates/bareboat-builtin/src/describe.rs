//! Descriptions of built-in definitions and their fields, from the published schemas.
//!
//! The schemas are text (`describe/definitions.txt`) in the program's read-only data: sorted lines of a name, a space and
//! a schema in JSON. A schema is parsed on request and not cached; the server joins it with the facts and caches the
//! resulting documents. `make golden` writes the file anew from the types of `k8s-openapi`, which only a test needs: that
//! crate takes longer to compile than any other.

use crate::lines::line_of;
use bareboat_api::Value;

/// All definitions, one on each line.
const TABLE: &str = include_str!("describe/definitions.txt");

/// Returns the schema of a definition such as `io.k8s.api.core.v1.ConfigMap`, with descriptions.
///
/// Other definitions are referred to by name, not included.
pub fn definition(name: &str) -> Option<Value> {
    let line = line_of(TABLE, name, |line| {
        line.split_once(' ').map_or(line, |(name, _)| name)
    })?;
    let (_, schema) = line.split_once(' ')?;
    serde_json::from_str(schema).ok()
}

#[cfg(test)]
mod tests;
