//! Repository tasks that no other tool does.
//!
//! `cargo run -p xtask -- tidy` checks rules of the repository that no other tool checks; `make check` runs it.
//!
//! `cargo run -p xtask -- facts` rewrites the table of facts about built-in kinds from the
//! published Go modules. It needs `go` and the module proxy; nothing else in the repository does.

mod facts;
mod tidy;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("facts") => facts::run(),
        Some("tidy") => tidy::run(),
        _ => bail!("usage: cargo run -p xtask -- facts|tidy"),
    }
}
