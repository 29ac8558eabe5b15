//! Runs the session of the README, on every store that `--storage` takes.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../crates/bareboat-etcd/tests/etcd/member.rs"]
mod etcd;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../crates/bareboat-sql/tests/mariadb/cluster.rs"]
mod mariadb;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../crates/bareboat-sql/tests/postgres/cluster.rs"]
mod postgres;

use bareboat_sessions::{Session, available, workspace_binary};

/// The machines that the session leaves in a database.
const STORED: &str =
    "SELECT count(*) FROM kubestack.live WHERE resource = 'kubestack.example.com/virtualmachines'";

/// Runs the session with a store instead of the SQLite file of the README.
fn session_on(storage: &str) {
    Session::new("README.md")
        .program("kubestack", env!("CARGO_BIN_EXE_kubestack"))
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .replace("sqlite:kubestack.db", storage)
        .run();
}

#[test]
fn the_readme_is_true() {
    if available("kubectl") {
        session_on("sqlite:kubestack.db");
    }
}

#[test]
fn the_readme_is_true_in_memory() {
    if available("kubectl") {
        session_on("memory:");
    }
}

#[test]
fn the_readme_is_true_on_mariadb() {
    if !available("kubectl") || !available("mariadbd") {
        return;
    }
    let mariadb = mariadb::Cluster::start(&[]).unwrap();
    session_on(&mariadb.url(mariadb.port, "kubestack"));
    assert_eq!(mariadb.ask(STORED).as_deref(), Some("2"));
}

#[test]
fn the_readme_is_true_on_postgresql() {
    if !available("kubectl") {
        return;
    }
    // Its programs are not in PATH.
    let Some(postgres) = postgres::Cluster::start(&[]) else {
        let strict = std::env::var("CI").as_deref() == Ok("true");
        assert!(!strict, "PostgreSQL is needed for this test");
        return;
    };
    session_on(&postgres.url(postgres.port, "kubestack"));
    assert_eq!(postgres.ask(STORED).as_deref(), Some("2"));
}

#[test]
fn the_readme_is_true_on_etcd() {
    if !available("kubectl") || !available("etcd") {
        return;
    }
    let etcd = etcd::Member::start(&[]).unwrap();
    session_on(&etcd.url(etcd.port, "kubestack"));
    let stored = etcd.paths("/kubestack/", "o/kubestack.example.com/virtualmachines/");
    assert_eq!(stored.len(), 2, "{stored:?}");
}
