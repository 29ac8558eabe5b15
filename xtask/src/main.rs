//! Chores of the repository: the generator of the table of facts.
//!
//! `cargo run -p xtask -- facts` rewrites the table of facts about built-in kinds from the
//! published Go modules; it needs `go` and the module proxy, nothing else in the repository does.

mod facts;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("facts") => facts::run(),
        _ => bail!("usage: cargo run -p xtask -- facts"),
    }
}
