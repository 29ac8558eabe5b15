//! `bareboat fleet status`: the members, and how far their sync is.

use super::access::{CLUSTERS, HubFlags};
use super::join::no_fleet;
use crate::client::{Client, block_on};
use crate::discovery::items;
use crate::output::{Format, Table, json, shown};
use anyhow::{Result, bail};
use bareboat::api::Value;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// How long a first sync may take before the command gives up.
const PATIENCE: Duration = Duration::from_secs(600);

/// Flags of `bareboat fleet status`.
#[derive(clap::Args, Debug)]
pub(crate) struct StatusFlags {
    /// Only this member, with its types
    name: Option<String>,

    /// Wait until the member is synced
    #[arg(long, requires = "name")]
    wait: bool,

    /// How to print the answer
    #[arg(long, short, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubFlags,
}

/// Prints the members.
pub(super) fn run(flags: &StatusFlags) -> Result<()> {
    let hub = flags.hub.client()?;
    block_on(async {
        let Some(name) = &flags.name else {
            let list = hub
                .get(CLUSTERS, "application/json")
                .await
                .map_err(no_fleet)?;
            return match flags.output {
                Format::Json => json(&list),
                Format::Text => members(items(&list, "items")),
            };
        };
        if flags.wait {
            Progress::of(name).wait(&hub).await?;
        }
        let member = hub
            .get(&format!("{CLUSTERS}/{name}"), "application/json")
            .await?;
        match flags.output {
            Format::Json => json(&member),
            Format::Text => types(&member),
        }
    })?
}

fn text<'v>(value: &'v Value, path: &[&str]) -> &'v str {
    value.at(path).and_then(Value::as_str).unwrap_or("")
}

fn condition<'v>(member: &'v Value, kind: &str, key: &str) -> &'v str {
    let status = member.get("status").unwrap_or(&Value::Null);
    let mut conditions = items(status, "conditions").iter();
    let found = conditions.find(|one| text(one, &["type"]) == kind);
    found.map_or("", |one| text(one, &[key]))
}

/// The types of a member with how far they are: group, name, status, reason, message.
fn synced(member: &Value) -> Vec<[String; 5]> {
    let status = member.get("status").unwrap_or(&Value::Null);
    let mut all = Vec::new();
    for group in items(status, "syncResources") {
        for resource in items(group, "resources") {
            let none = Value::object();
            let condition = items(resource, "syncConditions").first().unwrap_or(&none);
            all.push([
                text(group, &["group"]).to_owned(),
                text(resource, &["name"]).to_owned(),
                text(condition, &["status"]).to_owned(),
                text(condition, &["reason"]).to_owned(),
                text(condition, &["message"]).to_owned(),
            ]);
        }
    }
    all
}

fn members(list: &[Value]) -> Result<()> {
    let mut table = Table::new(["NAME", "READY", "VERSION", "TYPES", "APISERVER", "REASON"]);
    for member in list {
        let types = synced(member);
        let done = types.iter().filter(|one| one[2] == "Syncing").count();
        let ready = condition(member, "Ready", "status");
        let reason = match ready {
            "True" => "",
            _ => condition(member, "Ready", "message"),
        };
        table.row([
            shown(text(member, &["metadata", "name"])),
            ready.to_owned(),
            shown(text(member, &["status", "version"])),
            format!("{done}/{}", types.len()),
            shown(text(member, &["status", "apiserver"])),
            shown(reason),
        ]);
    }
    crate::print(table.to_string().as_bytes())
}

fn types(member: &Value) -> Result<()> {
    let mut table = Table::new(["RESOURCE", "GROUP", "STATUS", "REASON", "MESSAGE"]);
    for [group, name, status, reason, message] in synced(member) {
        table.row([
            shown(&name),
            shown(&group),
            shown(&status),
            shown(&reason),
            shown(&message),
        ]);
    }
    crate::print(table.to_string().as_bytes())
}

/// Shows how far the sync of a member is.
pub(super) struct Progress {
    name: String,
    said: String,
}

impl Progress {
    pub(super) fn of(name: &str) -> Progress {
        Progress {
            name: name.to_owned(),
            said: String::new(),
        }
    }

    /// Waits until the member is ready and all its types are synced.
    pub(super) async fn wait(mut self, hub: &Client) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let path = format!("{CLUSTERS}/{}", self.name);
        loop {
            let member = hub.get(&path, "application/json").await.map_err(no_fleet)?;
            let types = synced(&member);
            let done = types.iter().filter(|one| one[2] == "Syncing").count();
            let ready = condition(&member, "Ready", "status") == "True";
            if ready && done == types.len() {
                self.say(&format!("{}: {done} types are synced", self.name));
                self.end();
                return Ok(());
            }
            if condition(&member, "Validated", "status") == "False" {
                let why = condition(&member, "Validated", "message");
                bail!("{} cannot be synced: {}", self.name, shown(why));
            }
            self.say(&describe(&self.name, &member, &types, done));
            if Instant::now() > until {
                self.end();
                bail!(
                    "the sync is not complete after {} minutes; it goes on, see bareboat fleet status {}",
                    PATIENCE.as_secs() / 60,
                    self.name
                );
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Prints a line; on a terminal it replaces the one before.
    fn say(&mut self, line: &str) {
        if self.said == line {
            return;
        }
        match std::io::stderr().is_terminal() {
            true => eprint!("\r\u{1b}[K{line}"),
            false => eprintln!("{line}"),
        }
        line.clone_into(&mut self.said);
    }

    fn end(&self) {
        if std::io::stderr().is_terminal() {
            eprintln!();
        }
    }
}

fn describe(name: &str, member: &Value, types: &[[String; 5]], done: usize) -> String {
    let ready = condition(member, "Ready", "message");
    if types.is_empty() {
        return match ready {
            "" => format!("{name}: waiting for the server with the fleet"),
            why => format!("{name}: {}", shown(why)),
        };
    }
    let mut line = format!("{name}: {done} of {} types are synced", types.len());
    let listing = types.iter().find(|one| one[3] == "Listing");
    let failing = types.iter().find(|one| one[2] == "Error");
    if let Some(one) = failing.or(listing) {
        line.push_str(&format!("; {}: {}", shown(&one[1]), shown(&one[4])));
    }
    line
}
