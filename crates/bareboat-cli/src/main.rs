//! The binary: arguments in, a server out. All logic is in the library.

mod account_keys;
mod args;
mod certificates;
mod client;
mod config;
mod keys;
mod kubeconfig;
mod migrate;
mod restore;
mod serve;

use anyhow::Context as _;
use args::{Args, Command};
use clap::{CommandFactory, Parser};
use std::io::Write as _;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let started = std::time::Instant::now();
    let outcome = match Args::parse().command {
        Command::Serve(flags) => serve::run(*flags, started),
        Command::Migrate(flags) => migrate::run(&flags),
        Command::Restore(flags) => restore::run(&flags),
        Command::Version => {
            let version = env!("CARGO_PKG_VERSION");
            print(format!("bareboat {version} (serves the API of Kubernetes v1.36)\n").as_bytes())
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "bareboat", &mut script);
            print(&script)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  because: {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output; a reader who has seen enough and left is no error.
fn print(text: &[u8]) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("standard output cannot be written"),
    }
}
