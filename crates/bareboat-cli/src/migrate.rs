//! `bareboat migrate`: storage migration over a socket, with progress messages.

use crate::args::MigrateFlags;
use crate::client::{Client, block_on, find_kubeconfig};
use crate::encryption;
use anyhow::{Result, bail};
use bareboat::controllers::migration::{self, MigrateError, Options, Outcome, Progress};

/// Migrates the requested definitions; returns an error if any objects are left.
pub(crate) fn run(flags: &MigrateFlags) -> Result<()> {
    if let Some(config) = &flags.encryption_provider_config {
        return encryption::migrate(config, flags);
    }
    let client = Client::new(
        &find_kubeconfig(flags.kubeconfig.as_deref())?,
        flags.context.as_deref(),
        flags.server.as_deref(),
    )?;
    match flags.encryption {
        true => block_on(encryption::migrate_running(&client, flags.quiet))?,
        false => block_on(migrate(&client, flags))?,
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
            // With no definitions named, one without objects is not an error.
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
