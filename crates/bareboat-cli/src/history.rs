//! `bareboat history`: shows objects as they were at a time or a resourceVersion.

use crate::encryption;
use crate::output::{self, Format, Table, shown};
use crate::store_flags::StoreFlags;
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat::encryption::EncryptedBackend;
use bareboat::storage::{Backend, BackendError, Record, Stop};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// The help of the command.
pub(crate) const ABOUT: &str = "\
Shows the objects of a resource as they were at an earlier time, straight from the store, while servers use it. How far it reaches back is \
set with --retain-for of bareboat serve.

A time is that of the database, or of this machine for a state.db; what was written before it counts. Objects are shown in the version they \
are stored in.";

/// Examples of the command.
pub(crate) const AFTER: &str = "\
Examples:
  bareboat history configmaps --at 5m                     all of them, as they were five minutes ago
  bareboat history deployments.apps web -n shop --at 2026-11-17T10:00:00Z -o json
  bareboat history boats.example.com --at 48213           at a resourceVersion
  bareboat history secrets --at 1h --encryption-provider-config encryption.yaml --storage URL

The same over the API, at a resourceVersion:
  kubectl get --raw '/api/v1/namespaces/shop/configmaps?resourceVersion=48213&resourceVersionMatch=Exact'

Exit codes:
  0  it was shown
  1  it was not: the history does not reach back so far, or there is no such object
  2  the command line makes no sense";

/// Flags of `bareboat history`.
#[derive(clap::Args, Debug)]
pub(crate) struct HistoryFlags {
    /// The resource, with its group: configmaps, deployments.apps
    #[arg(value_name = "RESOURCE")]
    pub(crate) resource: String,

    /// Only this object
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Only this namespace
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// When: a time (2026-11-17T10:00:00Z), how long ago (10m, 2h), or a resourceVersion
    #[arg(long, value_name = "WHEN", env = "BAREBOAT_AT", value_parser = When::parse)]
    pub(crate) at: When,

    /// Decrypt values with this EncryptionConfiguration
    #[arg(long, value_name = "FILE", env = "BAREBOAT_ENCRYPTION_PROVIDER_CONFIG")]
    pub(crate) encryption_provider_config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// How to print it
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) output: Format,
}

/// A moment in the past.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    /// A time.
    Time(SystemTime),
    /// A resourceVersion.
    Revision(u64),
}

impl When {
    fn parse(text: &str) -> Result<When, String> {
        if let Ok(revision) = text.parse() {
            return Ok(When::Revision(revision));
        }
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(When::Time(time.into()));
        }
        let ago = crate::settings::duration(text);
        let ago = ago.map_err(|_| {
            format!("{text} is neither a time (2026-11-17T10:00:00Z), nor how long ago (10m), nor a resourceVersion")
        })?;
        let time = SystemTime::now().checked_sub(ago);
        time.map(When::Time)
            .ok_or_else(|| "it is too long ago".to_owned())
    }
}

/// Prints objects as they were.
pub(crate) fn run(flags: &HistoryFlags) -> Result<()> {
    let place = flags.store.place()?;
    let mut log = place.open_to_read()?;
    // Without keys, encrypted values are shown as null.
    if let Some(path) = flags.encryption_provider_config.as_deref() {
        let rules = encryption::rules(Some(path))?;
        log = Arc::new(EncryptedBackend::new(log, rules));
    }
    let unreadable = || format!("{} cannot be read", place.name());
    let revision = match flags.at {
        When::Revision(revision) => revision,
        When::Time(time) => log.revision_before(time).with_context(unreadable)?,
    };
    let end = log.mark().with_context(unreadable)?.last;
    if revision > end {
        bail!("resourceVersion {revision} is not reached yet; the last one is {end}");
    }
    if let When::Time(time) = flags.at
        && reaches(&*log, time).with_context(unreadable)? == Some(false)
    {
        bail!(
            "the history does not reach back so far; keep more with --retain-for of bareboat serve"
        );
    }
    let resource = stored_name(&flags.resource);
    let mut found = Vec::new();
    let read = log.read_at(
        &resource,
        revision,
        &mut |record| found.push(record),
        &Stop::default(),
    );
    match read {
        Err(BackendError::Compacted { floor }) => bail!(
            "the history before resourceVersion {floor} is gone; keep more with --retain-for of bareboat serve"
        ),
        read => read.with_context(unreadable)?,
    }
    found.retain(|record| wanted(flags, &record.key));
    found.sort_by(|a, b| a.key.cmp(&b.key));
    if found.is_empty() && flags.name.is_some() {
        bail!("there was no such object at resourceVersion {revision}");
    }
    match flags.output {
        Format::Json => output::json(&described(revision, &found)),
        Format::Text => {
            let mut table = Table::new(["NAMESPACE", "NAME", "RESOURCEVERSION", "BYTES"]);
            for record in &found {
                let (namespace, name) = record.key.split_once('/').unwrap_or(("", &record.key));
                table.row([
                    shown(namespace),
                    shown(name),
                    record.revision.to_string(),
                    record
                        .value
                        .as_ref()
                        .map_or(0, |value| value.len())
                        .to_string(),
                ]);
            }
            let text = format!("at resourceVersion {revision}\n{table}");
            crate::print(text.as_bytes())
        }
    }
}

/// Returns whether the history reaches back to a time; `None` if it is not known.
fn reaches(log: &dyn Backend, time: SystemTime) -> Result<Option<bool>, BackendError> {
    // Without compaction, the log has everything.
    if log.compacted() <= 1 {
        return Ok(Some(true));
    }
    let mut first = None;
    log.history(&mut |part| {
        first.get_or_insert(part.at);
    })?;
    Ok(first.map(|first| first <= time))
}

/// Returns the name of a resource in the store: `deployments.apps` is `apps/deployments`.
fn stored_name(resource: &str) -> String {
    match resource.split_once('.') {
        Some((plural, group)) => format!("{group}/{plural}"),
        None => format!("core/{resource}"),
    }
}

fn wanted(flags: &HistoryFlags, key: &str) -> bool {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    flags
        .namespace
        .as_deref()
        .is_none_or(|wanted| wanted == namespace)
        && flags.name.as_deref().is_none_or(|wanted| wanted == name)
}

/// Returns the objects as a list, with their resourceVersions. A value that is not an object, such as an encrypted one, is
/// null.
fn described(revision: u64, found: &[Record]) -> Value {
    let each = found.iter().map(|record| {
        let bytes = record.value.as_ref().map(|value| value.to_bytes());
        let parsed = bytes.and_then(|bytes| bareboat_wire::json::parse(&bytes).ok());
        let mut object = parsed.map_or(Value::Null, |parsed| parsed.value);
        if let Value::Object(map) = &mut object
            && let Some(Value::Object(metadata)) = map.get_mut("metadata")
        {
            metadata.insert("resourceVersion", Value::from(record.revision.to_string()));
        }
        object
    });
    value!({
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": (revision.to_string())},
        "items": (Value::Array(each.collect())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_times_ages_or_versions() {
        assert_eq!(When::parse("48213"), Ok(When::Revision(48213)));
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
        assert_eq!(When::parse("1970-01-02T00:00:00Z"), Ok(When::Time(at)));
        let Ok(When::Time(time)) = When::parse("10m") else {
            panic!("an age is a time");
        };
        let age = SystemTime::now().duration_since(time).unwrap_or_default();
        assert!(age >= Duration::from_secs(600) && age < Duration::from_secs(700));
        assert!(When::parse("yesterday").is_err());
    }

    #[test]
    fn resources_have_their_group_first() {
        assert_eq!(stored_name("configmaps"), "core/configmaps");
        assert_eq!(stored_name("deployments.apps"), "apps/deployments");
        assert_eq!(stored_name("boats.example.com"), "example.com/boats");
    }
}
