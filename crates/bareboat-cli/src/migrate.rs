//! `bareboat migrate`: storage migration over a socket, with words about it.

use crate::args::MigrateFlags;
use crate::client::Client;
use anyhow::{Context as _, Result, bail};
use bareboat::controllers::migration::{self, MigrateError, Options, Outcome, Progress};
use std::path::PathBuf;

/// Migrates what was asked for; an error if anything is left.
pub(crate) fn run(flags: &MigrateFlags) -> Result<()> {
    let client = Client::new(
        &kubeconfig(flags)?,
        flags.context.as_deref(),
        flags.server.as_deref(),
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    runtime.block_on(migrate(&client, flags))
}

/// The kubeconfig that was named, or the first that is there.
fn kubeconfig(flags: &MigrateFlags) -> Result<PathBuf> {
    if let Some(path) = &flags.kubeconfig {
        return Ok(path.clone());
    }
    let own = PathBuf::from("bareboat-data/admin.kubeconfig");
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    let found = [Some(own), home].into_iter().flatten();
    match found.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("there is no kubeconfig; name one with --kubeconfig"),
    }
}

async fn migrate(client: &Client, flags: &MigrateFlags) -> Result<()> {
    let all = flags.definitions.is_empty();
    let names = match all {
        true => migration::definitions(client).await?,
        false => flags.definitions.clone(),
    };
    let options = Options {
        dry_run: flags.dry_run,
    };
    let say = |text: String| {
        if !flags.quiet {
            println!("{text}");
        }
    };
    let mut left = Vec::new();
    for name in &names {
        let tell = |progress: Progress<'_>| match progress {
            Progress::Started { stored, storage } => {
                let stored = stored.join(", ");
                say(format!(
                    "{name}: storage version {storage}, stored versions {stored}"
                ));
            }
            Progress::Looked { objects, rewritten } if !flags.dry_run => {
                say(format!("{name}: {objects} objects, {rewritten} rewritten"));
            }
            Progress::Looked { objects, .. } => {
                say(format!("{name}: {objects} objects, nothing is written"));
            }
            Progress::Failed { object, why } => eprintln!("{name}: {object}: {why}"),
            _ => {}
        };
        match migration::migrate(client, name, options, &tell).await {
            Ok(Outcome::UpToDate) => say(format!("{name}: up to date")),
            Ok(Outcome::Migrated { .. }) if flags.dry_run => {
                say(format!("{name}: can be migrated"));
            }
            Ok(Outcome::Migrated { .. }) => {
                say(format!("{name}: migrated, storedVersions is trimmed"));
            }
            Ok(Outcome::Incomplete { failed, .. }) => {
                eprintln!("{name}: {failed} objects could not be rewritten, storedVersions stays");
                left.push(name.as_str());
            }
            // Nobody asked for this one in particular, and it has no objects to speak of.
            Err(MigrateError::NotInUse) if all => {
                say(format!("{name}: left out, {}", MigrateError::NotInUse));
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                left.push(name.as_str());
            }
            Ok(_) => {}
        }
    }
    if !left.is_empty() {
        bail!("not migrated: {}", left.join(", "));
    }
    Ok(())
}
