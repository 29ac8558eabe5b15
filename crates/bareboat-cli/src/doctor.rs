//! `bareboat doctor`: examines a store, while servers use it, and says what looks wrong and what to do.

mod repair;
mod servers;

use crate::output::{self, Format, Table, shown};
use crate::store_flags::StoreFlags;
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat::storage::examine::{Examination, Share, examine};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// The help of the command.
pub(crate) const ABOUT: &str = "\
Reads a whole store and says what looks wrong, and what to do. Nothing is changed without --repair, and servers may go on.

It compares every batch of the history with its digest, looks for missing revisions, for objects that are there twice or replace what \
was not there, and for values that are damaged or not the object that their key names. It shows what each resource takes, how far the \
history reaches back, the servers that use the store, and the settings of the database that decide whether acknowledged writes survive a \
crash.

With --repair it deletes what compaction left behind, and makes an etcd release unused space, one member after another, the leader last. \
It never changes objects or history: for damage there are backups (bareboat restore), for a store that was restored by other means \
bareboat epoch. A state.db must not be in use by a server then.";

/// Examples of the command.
pub(crate) const AFTER: &str = "\
Examples:
  bareboat doctor                                    ./bareboat-data/state.db
  bareboat doctor --storage 'postgres://bareboat@db.example/bareboat'
  bareboat doctor --config bareboat.yaml -o json
  bareboat doctor --repair --storage 'etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/bareboat'

Exit codes:
  0  nothing looks wrong
  1  something looks wrong, or the store cannot be read; it was said what
  2  the command line makes no sense";

/// Flags of `bareboat doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorFlags {
    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// Delete what compaction left behind, and release unused space, before the store is read
    #[arg(long, env = "BAREBOAT_REPAIR")]
    pub(crate) repair: bool,

    /// How to print it
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) output: Format,
}

/// Examines a store and prints the result.
pub(crate) fn run(flags: &DoctorFlags) -> Result<()> {
    let place = flags.store.place()?;
    let repaired = match flags.repair {
        true => Some(repair::run(&place)?),
        false => None,
    };
    let log = place.open_to_read()?;
    let unreadable = || format!("{} cannot be read", place.name());
    let found = examine(&*log).with_context(unreadable)?;
    let servers = servers::of(&*log, found.end.last).with_context(unreadable)?;
    match flags.output {
        Format::Json => {
            let mut described = described(&place.name(), &found);
            if let Value::Object(map) = &mut described {
                map.insert("servers", servers::described(&servers));
                map.insert("leader", Value::from(servers.leader()));
                if let Some(repaired) = &repaired {
                    map.insert("repaired", Value::from(repaired.as_str()));
                }
            }
            output::json(&described)?;
        }
        Format::Text => {
            let mut text = text(&place.name(), &found);
            servers::insert(&servers, &mut text);
            if let Some(repaired) = &repaired {
                text.insert_str(0, &format!("repaired   {repaired}\n"));
            }
            crate::print(text.as_bytes())?;
        }
    }
    match found.findings.len() {
        0 => Ok(()),
        1 => bail!("one thing looks wrong"),
        more => bail!("{more} things look wrong"),
    }
}

fn text(name: &str, found: &Examination) -> String {
    let mut out = String::new();
    let history = found.end.last.saturating_sub(found.floor);
    let age = found.history_since.map_or(String::new(), |since| {
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        format!(", since {} ago", rough(age))
    });
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "store      {name}\n\
         end        resourceVersion {}, epoch {}, digest {:?}\n\
         history    {history} revisions above {}{age}\n\
         digests    {} batches compared\n\
         size       {} MiB, of which {} MiB are free\n",
        found.end.last,
        found.end.epoch,
        found.end.digest,
        found.floor,
        found.batches,
        found.stats.bytes >> 20,
        found.stats.free_bytes >> 20,
    );
    for setting in &found.settings {
        let _ = writeln!(
            out,
            "engine     {} = {}",
            setting.name,
            shown(&setting.value)
        );
    }
    let mut table = Table::new(["RESOURCE", "OBJECTS", "KiB", "HISTORY", "KiB OF HISTORY"]);
    for (resource, share) in &found.resources {
        table.row([
            shown(resource),
            share.objects.to_string(),
            (share.bytes >> 10).to_string(),
            share.history.to_string(),
            (share.history_bytes >> 10).to_string(),
        ]);
    }
    let _ = write!(out, "\n{table}");
    let mut table = Table::new(["NAMESPACE", "OBJECTS", "KiB", "HISTORY", "KiB OF HISTORY"]);
    for (namespace, share) in &found.namespaces {
        table.row([
            shown(namespace),
            share.objects.to_string(),
            (share.bytes >> 10).to_string(),
            share.history.to_string(),
            (share.history_bytes >> 10).to_string(),
        ]);
    }
    let _ = write!(out, "\n{table}");
    let mut busiest = Table::new(["MOST CHANGED", "REVISIONS"]);
    for (name, changes) in &found.busiest {
        busiest.row([shown(name), changes.to_string()]);
    }
    let _ = write!(out, "\n{busiest}");
    let mut largest = Table::new(["LARGEST OBJECTS", "BYTES"]);
    for (name, bytes) in &found.largest {
        largest.row([shown(name), bytes.to_string()]);
    }
    let _ = write!(out, "\n{largest}\n");
    if found.findings.is_empty() {
        out.push_str("Nothing looks wrong.\n");
    }
    for finding in &found.findings {
        let _ = writeln!(
            out,
            "WRONG: {}\n  {}",
            shown(&finding.problem),
            finding.advice
        );
    }
    if found.more_findings {
        out.push_str("More looks wrong than is listed.\n");
    }
    out
}

fn rough(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

fn described(name: &str, found: &Examination) -> Value {
    let number = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let share = |of: &str, name: &str, share: &Share| {
        let mut described = value!({
            "objects": (number(share.objects)),
            "bytes": (number(share.bytes)),
            "history": (number(share.history)),
            "historyBytes": (number(share.history_bytes)),
        });
        if let Value::Object(map) = &mut described {
            map.insert(of, Value::from(name));
        }
        described
    };
    let resources = found.resources.iter();
    let resources = resources.map(|(name, of)| share("resource", name, of));
    let namespaces = found.namespaces.iter();
    let namespaces = namespaces.map(|(name, of)| share("namespace", name, of));
    let numbered = |list: &[(String, u64)], unit: &str| {
        let each = list.iter().map(|(name, count)| {
            let mut described = value!({"name": (name.as_str())});
            if let Value::Object(map) = &mut described {
                map.insert(unit, number(*count));
            }
            described
        });
        Value::Array(each.collect())
    };
    let age = found.history_since.map(|since| {
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        number(age.as_secs())
    });
    let settings = found.settings.iter().map(
        |setting| value!({"name": (setting.name.as_str()), "value": (setting.value.as_str())}),
    );
    let findings = found.findings.iter().map(|finding| {
        value!({"problem": (finding.problem.as_str()), "advice": (finding.advice.as_str())})
    });
    value!({
        "store": name,
        "resourceVersion": (found.end.last.to_string()),
        "epoch": (number(found.end.epoch)),
        "digest": (format!("{:?}", found.end.digest)),
        "compactedResourceVersion": (found.floor.to_string()),
        "historySeconds": (age.unwrap_or(Value::Null)),
        "batches": (number(found.batches)),
        "bytes": (number(found.stats.bytes)),
        "freeBytes": (number(found.stats.free_bytes)),
        "resources": (Value::Array(resources.collect())),
        "namespaces": (Value::Array(namespaces.collect())),
        "largest": (numbered(&found.largest, "bytes")),
        "mostChanged": (numbered(&found.busiest, "revisions")),
        "settings": (Value::Array(settings.collect())),
        "findings": (Value::Array(findings.collect())),
        "moreFindings": (found.more_findings),
    })
}
