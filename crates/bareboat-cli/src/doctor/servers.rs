//! The servers that use a store, by the Leases they keep in it.

use crate::output::{Table, shown};
use anyhow::Result;
use bareboat::api::{Value, value};
use bareboat::storage::{Backend, Stop};
use std::fmt::Write as _;

const LEASES: &str = "coordination.k8s.io/leases";
/// The Leases of servers that share a store.
const SERVER: &str = "kube-system/bareboat-endpoint-";
/// The Lease of the server whose controllers work.
const LEADER: &str = "kube-system/bareboat-controllers";

/// A server.
pub(super) struct Server {
    /// Its address.
    address: String,
    /// The release it runs, if it said so.
    version: String,
    /// How many seconds ago it renewed its Lease, by the clock of this machine.
    age: i64,
    /// The revision of its last renewal.
    revision: u64,
}

/// The servers of a store.
pub(super) struct Servers {
    all: Vec<Server>,
    /// The name of the server whose controllers work, `HOST_ID`; empty if there is none.
    leader: String,
}

impl Servers {
    /// Returns the name of the server whose controllers work.
    pub(super) fn leader(&self) -> &str {
        &self.leader
    }
}

/// Returns the servers that have a Lease at a revision.
pub(super) fn of(log: &dyn Backend, revision: u64) -> Result<Servers> {
    let (mut servers, mut leader) = (Vec::new(), String::new());
    log.read_at(
        LEASES,
        revision,
        &mut |record| {
            let is_leader = &*record.key == LEADER;
            if !is_leader && !record.key.starts_with(SERVER) {
                return;
            }
            let bytes = record.value.map(|value| value.to_bytes());
            // Encrypted values are not objects.
            let Some(Ok(parsed)) = bytes.map(|bytes| bareboat_wire::json::parse(&bytes)) else {
                return;
            };
            let text = |path: &[&str]| {
                let found = path.iter().try_fold(&parsed.value, |at, name| at.get(name));
                found.and_then(Value::as_str).unwrap_or("").to_owned()
            };
            let holder = text(&["spec", "holderIdentity"]);
            if is_leader {
                leader = holder;
                return;
            }
            let renewed = text(&["spec", "renewTime"]).parse::<jiff::Timestamp>();
            let now = jiff::Timestamp::now();
            servers.push(Server {
                address: holder,
                version: text(&["metadata", "annotations", "bareboat.dev/version"]),
                age: renewed.map_or(i64::MAX, |renewed| now.duration_since(renewed).as_secs()),
                revision: record.revision,
            });
        },
        &Stop::default(),
    )?;
    servers.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(Servers {
        all: servers,
        leader,
    })
}

/// Adds the servers to the text, before the table of resources.
pub(super) fn insert(servers: &Servers, text: &mut String) {
    let at = text.find("\nRESOURCE").unwrap_or(text.len());
    if !servers.leader.is_empty() {
        let line = format!("leader     {}\n", shown(&servers.leader));
        text.insert_str(at, &line);
    }
    if servers.all.is_empty() {
        return;
    }
    let mut table = Table::new(["SERVER", "VERSION", "SEEN", ""]);
    for server in &servers.all {
        let stale = match server.age > 15 {
            true => "gone, or its clock or this one is wrong",
            false => "",
        };
        table.row([
            shown(&server.address),
            shown(&server.version),
            format!("{} s ago", server.age),
            stale.to_owned(),
        ]);
    }
    let mut part = String::new();
    let _ = write!(part, "\n{table}");
    let at = text.find("\nRESOURCE").unwrap_or(text.len());
    text.insert_str(at, &part);
}

/// Returns the servers for programs.
pub(super) fn described(servers: &Servers) -> Value {
    let each = servers.all.iter().map(|server| {
        value!({
            "address": (server.address.as_str()),
            "version": (server.version.as_str()),
            "seenSecondsAgo": (server.age),
            "resourceVersion": (server.revision.to_string()),
        })
    });
    Value::Array(each.collect())
}
