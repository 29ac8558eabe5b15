//! An API server: its kinds, and the server that serves them.

pub mod chart;
pub mod note;

use bareboat::prelude::*;

/// Adds the kinds to a server: this program's, or the one of a test.
pub fn kinds(mut builder: ServerBuilder) -> anyhow::Result<ServerBuilder> {
    builder = note::serve(builder)?;
    builder = chart::serve(builder)?;
    Ok(builder)
}
