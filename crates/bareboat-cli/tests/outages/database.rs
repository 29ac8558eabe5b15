//! The databases that servers share, and what can happen to them.

use crate::etcd::Member;
use crate::{mariadb, postgres};

/// A running database.
pub(crate) enum Database {
    Postgres(postgres::Cluster),
    Mariadb(mariadb::Cluster),
    /// The members of a cluster.
    Etcd(Vec<Member>),
}

/// Returns a database, or says that it is missing.
fn present<T>(database: Option<T>, name: &str) -> Option<T> {
    if database.is_none() {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "{name} is missing"
        );
        eprintln!("skipped: {name} is missing");
    }
    database
}

impl Database {
    pub(crate) fn postgres() -> Option<Self> {
        present(
            postgres::Cluster::start(&[]).map(Self::Postgres),
            "PostgreSQL",
        )
    }

    pub(crate) fn mariadb() -> Option<Self> {
        present(mariadb::Cluster::start(&[]).map(Self::Mariadb), "MariaDB")
    }

    /// A cluster of one member in `make test`, of three in `make torture`.
    pub(crate) fn etcd() -> Option<Self> {
        let first = present(Member::start(&[]), "etcd")?;
        Some(Self::Etcd(match bareboat_rig::plan::torture() {
            Some(_) => Member::cluster(3),
            None => vec![first],
        }))
    }

    /// Returns the port of the database, or of its first member.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Postgres(cluster) => cluster.port,
            Self::Mariadb(cluster) => cluster.port,
            Self::Etcd(members) => members[0].port,
        }
    }

    /// Returns the address of the store, with `port` in place of the first one.
    pub(crate) fn url(&self, port: u16) -> String {
        match self {
            Self::Postgres(cluster) => cluster.url(port, "faults"),
            Self::Mariadb(cluster) => cluster.url(port, "faults"),
            Self::Etcd(members) => {
                let others = members[1..]
                    .iter()
                    .map(|one| format!(",127.0.0.1:{}", one.port));
                let others: String = others.collect();
                format!("etcd://127.0.0.1:{port}{others}/faults")
            }
        }
    }

    /// Kills the database, or one member, and starts it again.
    pub(crate) fn crash(&self, dice: u64) {
        match self {
            Self::Postgres(cluster) => {
                cluster.kill();
                cluster.run(&[]);
            }
            Self::Mariadb(cluster) => {
                cluster.kill();
                cluster.run(&[]);
            }
            Self::Etcd(members) => {
                let member = &members[dice as usize % members.len()];
                member.kill();
                member.run(&[]);
            }
        }
    }

    /// Sends a signal to all processes of the database, or of one member.
    pub(crate) fn signal(&self, name: &str, dice: u64) {
        let pid = match self {
            Self::Postgres(cluster) => cluster.pid(),
            Self::Mariadb(cluster) => cluster.pid(),
            Self::Etcd(members) => members[dice as usize % members.len()].pid(),
        };
        for pid in family(pid) {
            // A child may have ended in the meantime.
            send(name, pid);
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn send(name: &str, pid: u32) {
    let mut kill = std::process::Command::new("kill");
    kill.args([format!("-{name}"), pid.to_string()]);
    let _ = kill.stderr(std::process::Stdio::null()).status();
}

/// Returns a process and its children.
fn family(parent: u32) -> Vec<u32> {
    let mut found = vec![parent];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name of the program is in parentheses; its state and its parent follow.
        let after = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let of = after.split(' ').nth(1).and_then(|pid| pid.parse().ok());
        if of == Some(parent) {
            found.extend(
                entry
                    .file_name()
                    .to_str()
                    .and_then(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    found
}
