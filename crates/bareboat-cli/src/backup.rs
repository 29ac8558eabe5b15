//! `bareboat backup`: writes everything in a store to a file, while servers use it.

use crate::output::{self, Format};
use crate::store_flags::{StoreFlags, progress};
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat::storage::backup::{self, Backup, Summary};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The help of the command.
pub(crate) const ABOUT: &str = "\
Writes all objects and the history of a store to one file. Servers go on meanwhile: the backup is the state of one moment.

The file has what the store has, as it is stored: values that are encrypted stay encrypted, and restoring them needs the same keys. \
It does not have the keys and certificates of the data directory. Everyone who can read the file can read all secrets that are not \
encrypted; it is made readable by its owner only.

The file is compressed text, one JSON object a line, with a checksum over all of it: zcat FILE | head shows it.";

/// Examples of the command.
pub(crate) const AFTER: &str = "\
Examples:
  bareboat backup monday.backup                      of ./bareboat-data/state.db
  bareboat backup --data-dir /var/lib/bareboat /backup/monday.backup
  bareboat backup --storage 'postgres://bareboat@db.example/bareboat' monday.backup
  bareboat backup --since monday.backup tuesday.backup     only what changed since monday.backup
  bareboat restore --from monday.backup --storage URL      the way back, into any store
  bareboat restore --from monday.backup --from tuesday.backup --storage URL

Exit codes:
  0  the file is complete and on the disk
  1  there is no file; it was said why
  2  the command line makes no sense";

/// Flags of `bareboat backup`.
#[derive(clap::Args, Debug)]
pub(crate) struct BackupFlags {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write only what changed since this backup, which restoring then needs, too. The history since then must be there: see
    /// --retain-for of bareboat serve
    #[arg(long, value_name = "FILE", env = "BAREBOAT_SINCE")]
    pub(crate) since: Option<PathBuf>,

    /// Print nothing but errors
    #[arg(long, short, env = "BAREBOAT_QUIET")]
    pub(crate) quiet: bool,

    /// How to print what is in the backup
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) output: Format,
}

/// Makes a backup and prints what is in it.
pub(crate) fn run(flags: &BackupFlags) -> Result<()> {
    let path = &flags.file;
    if path.exists() {
        bail!("{} exists; choose another name", path.display());
    }
    let before = flags.since.as_deref().map(earlier).transpose()?;
    let place = flags.store.place()?;
    let log = place.open_to_read()?;
    if !log.is_complete()? {
        bail!(
            "a restore into {} did not end; run it again, then make a backup",
            place.name()
        );
    }
    let partial = beside(path, ".partial");
    let unwritable = || format!("{} cannot be written", path.display());
    let mut file = create(&partial).with_context(unwritable)?;
    let mut report = progress(flags.quiet);
    let written = match &before {
        None => backup::write(&*log, &mut file, &mut report),
        Some(before) => backup::write_since(&*log, before, &mut file, &mut report),
    };
    let written = written
        .with_context(|| format!("{} cannot be backed up", place.name()))
        .and_then(|summary| {
            put_in_place(&file, &partial, path).with_context(unwritable)?;
            Ok(summary)
        })
        .inspect_err(|_| drop(fs::remove_file(&partial)))?;
    for name in &written.damaged {
        eprintln!(
            "warning: {} is damaged in the store, and so it is in the backup",
            output::shown(name)
        );
    }
    match flags.output {
        Format::Json => output::json(&described(&written)),
        Format::Text if flags.quiet => Ok(()),
        Format::Text => {
            let has = match before.is_some() {
                true => format!(
                    "{} changes up to resourceVersion {}",
                    written.records, written.last
                ),
                false => sentence(&written),
            };
            let text = format!("{} has {has}\n", path.display());
            crate::print(text.as_bytes())
        }
    }
}

/// Opens an earlier backup.
fn earlier(path: &Path) -> Result<Backup> {
    let unusable = || format!("{} cannot be used", path.display());
    let file = File::open(path).with_context(unusable)?;
    Backup::open(file).with_context(unusable)
}

/// What is in a backup, in words.
pub(crate) fn sentence(summary: &Summary) -> String {
    let objects: u64 = summary.objects.values().sum();
    format!(
        "{objects} objects of {} resources at resourceVersion {}, content digest {}",
        summary.objects.len(),
        summary.last,
        summary.content
    )
}

/// What is in a backup, for programs.
pub(crate) fn described(summary: &Summary) -> Value {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut objects = value!({});
    if let Value::Object(map) = &mut objects {
        for (resource, count) in &summary.objects {
            map.insert(resource.as_str(), Value::from(number(*count)));
        }
    }
    value!({
        "resourceVersion": (summary.last.to_string()),
        "records": (number(summary.records)),
        "objects": objects,
        "damaged": (Value::Array(summary.damaged.iter().map(|name| Value::from(name.as_str())).collect())),
        "content": (summary.content.as_str()),
    })
}

/// Creates a file that only its owner may read.
fn create(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// Makes a file durable under its name.
fn put_in_place(file: &File, partial: &Path, path: &Path) -> std::io::Result<()> {
    file.sync_all()?;
    fs::rename(partial, path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the path with something behind its name.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
