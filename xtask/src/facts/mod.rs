//! Reads published Go packages and writes the table of facts about built-in messages.
//!
//! The format of the table is described in `bareboat_builtin::facts`.

mod golang;
mod modules;
mod schema;
mod table;

use anyhow::{Context, Result};
use std::path::Path;

/// The version of every module; the first line of the table names it.
const VERSION: &str = "v0.36.6";

/// Fetches the modules and rewrites the table.
pub(crate) fn run() -> Result<()> {
    let modules = modules::download(VERSION)?;
    let schema = schema::read(&modules.file(
        "k8s.io/client-go",
        "applyconfigurations/internal/internal.go",
    )?)?;
    let text = table::write(&modules, &schema, VERSION)?;
    let target = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/bareboat-builtin/src/facts/facts.txt");
    std::fs::write(&target, &text).with_context(|| format!("writing {}", target.display()))?;
    println!("{} lines, {} bytes", text.lines().count(), text.len());
    Ok(())
}
