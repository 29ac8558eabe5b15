//! The binary: arguments in, a server out. All logic is in the library.

mod args;
mod certificates;
mod config;
mod kubeconfig;
mod serve;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let started = std::time::Instant::now();
    let outcome = match Args::parse().command {
        Command::Serve(flags) => serve::run(flags, started),
        Command::Version => {
            println!(
                "bareboat {} (serves the API of Kubernetes v1.36)",
                env!("CARGO_PKG_VERSION")
            );
            Ok(())
        }
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Args::command(),
                "bareboat",
                &mut std::io::stdout(),
            );
            Ok(())
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
