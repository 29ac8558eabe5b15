//! Compares Bareboat with kube-apiserver + etcd.
//!
//! One load generator starts both servers in turn on the loopback interface and sends the same load to each. For each
//! quantity it prints both values, their ratio and the target. Processor time of the server per request is the most
//! stable value on a shared machine.

mod against;
mod args;
mod attack;
mod bench;
mod credentials;
mod engines;
mod extension;
mod http1;
mod http2;
mod load;
mod neighbour;
mod objects;
mod process;
mod quiet;
mod report;
mod rows;
mod server;
mod watchers;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Args, Side};
use crate::report::{Saved, Settings};
use crate::server::{Programs, Server};

/// One thread: the generator must leave the machine to the server.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    // An interrupt drops the run and every server that it started.
    let ended = tokio::select! {
        ended = run(&args) => ended,
        () = interrupted() => return ExitCode::from(130),
    };
    match ended {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("bench: {missed} targets were missed");
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Waits for SIGINT or SIGTERM.
async fn interrupted() {
    let mut terminate =
        signal(SignalKind::terminate()).expect("signals can be listened to within a runtime");
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

async fn run(args: &Args) -> Result<usize> {
    if let (Some(attack), Some(kubeconfig)) = (args.attack, &args.kubeconfig) {
        attack::run(attack, kubeconfig).await?;
        return Ok(0);
    }
    if let Some(folder) = &args.backend {
        extension::run(folder, args.groups).await?;
        return Ok(0);
    }
    if !args.engines.is_empty() {
        return engines::run(args).await;
    }
    if args.hold {
        return hold(args).await;
    }
    if let Some(other) = &args.against {
        return against::run(args, other).await;
    }
    let settings = Settings {
        objects: args.objects,
        watchers: args.watchers,
        quick: args.quick,
    };
    let mut saved = Saved {
        settings: settings.clone(),
        ..Saved::default()
    };
    if let Some(path) = &args.theirs_from {
        saved.theirs = Saved::read(path, &settings)?.theirs;
    } else if args.only != Some(Side::Ours) {
        saved.theirs = bench::measure(args, Side::Theirs).await?;
    }
    if let Some(path) = &args.ours_from {
        saved.ours = Saved::read(path, &settings)?.ours;
    } else if args.only != Some(Side::Theirs) {
        saved.ours = bench::measure(args, Side::Ours).await?;
    }
    if let Some(path) = &args.save {
        saved.write(path)?;
    }
    Ok(report::print(&saved))
}

/// Starts a server for manual use and waits for an interrupt.
async fn hold(args: &Args) -> Result<usize> {
    let side = args.only.unwrap_or(Side::Theirs);
    let programs = Programs::find(args, side)?;
    let dir = bench::folder(args)?;
    let server = Server::start(side, &programs, dir.path(), &args.flags).await?;
    let _manager = match side {
        Side::Theirs if args.controller_manager => Some(server.controller_manager(&programs)?),
        _ => None,
    };
    println!("{}", server.kubeconfig.display());
    std::future::pending().await
}
