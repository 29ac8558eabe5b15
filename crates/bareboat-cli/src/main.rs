//! The binary: parses arguments and runs a command. All logic is in the library.

// Doc comments of settings are their help texts, which print URLs without brackets.
#![allow(rustdoc::bare_urls)]

mod account_keys;
mod aggregation;
mod args;
mod audit;
mod backup;
mod certificates;
mod client;
mod discovery;
mod doctor;
mod encryption;
mod epoch;
mod fleet;
mod history;
mod identity;
mod init_shared;
mod kubeconfig;
mod log;
mod memory;
mod migrate;
mod output;
mod plugin;
#[cfg(test)]
mod reference;
mod reloads;
mod restore;
mod scaffold;
mod serve;
mod settings;
mod shared_identity;
mod store_flags;
mod who_can;

use anyhow::Context as _;
use args::{Args, CertificatesCommand, Command, KubeconfigCommand, PluginCommand};
use clap::CommandFactory as _;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let started = std::time::Instant::now();
    let arguments = match settings::parse(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        // Help and command line errors: clap prints them and chooses the exit code.
        Err(error) => match error.downcast::<clap::Error>() {
            Ok(error) => error.exit(),
            Err(error) => return failure(&error),
        },
    };
    store_flags::warn_of_password(std::env::args_os().filter_map(|text| text.into_string().ok()));
    let outcome = match arguments.command {
        Command::Serve(settings) => serve::run(&settings, started),
        Command::Migrate(flags) => migrate::run(&flags),
        Command::Backup(flags) => backup::run(&flags),
        Command::Restore(flags) => restore::run(&flags),
        Command::Epoch(flags) => epoch::run(&flags),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::History(flags) => history::run(&flags),
        Command::InitShared(flags) => init_shared::run(&flags),
        Command::Kubeconfig { command } => match command {
            KubeconfigCommand::Create(flags) => kubeconfig::create(&flags),
            KubeconfigCommand::Credential(flags) => kubeconfig::credential(&flags),
        },
        Command::Certificates { command } => run_certificates(&command),
        Command::New(flags) => scaffold::new(&flags),
        Command::Add(flags) => scaffold::add(&flags),
        Command::Plugin { command } => match command {
            PluginCommand::Create(flags) => plugin::create(&flags),
        },
        Command::Fleet { command } => fleet::run(&command),
        Command::WhoCan(flags) => who_can::run(&flags),
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
        Err(error) => failure(&error),
    }
}

fn run_certificates(command: &CertificatesCommand) -> anyhow::Result<()> {
    match command {
        CertificatesCommand::List { data_dir, output } => certificates::list(data_dir, *output),
        CertificatesCommand::Rotate {
            parts,
            keep,
            data_dir,
            output,
        } => {
            let parts = match parts.is_empty() {
                true => &certificates::Part::ALL[..],
                false => parts,
            };
            for part in parts {
                certificates::rotate(data_dir, *part, *keep)
                    .with_context(|| format!("{} cannot be rotated", part.name()))?;
                if *output == output::Format::Text {
                    print(format!("{}: rotated\n", part.name()).as_bytes())?;
                }
            }
            match output {
                output::Format::Text => Ok(()),
                output::Format::Json => certificates::list(data_dir, *output),
            }
        }
    }
}

/// Prints an error and its causes.
fn failure(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
    ExitCode::FAILURE
}

/// Writes to standard output; a closed pipe is not an error.
fn print(text: &[u8]) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("standard output cannot be written"),
    }
}
