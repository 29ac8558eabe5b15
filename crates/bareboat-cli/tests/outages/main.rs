//! Several servers on one database, under load, while servers and the database are killed, stopped and cut off. A
//! checker compares everything that clients and watchers saw with the log.
//!
//! `make test` runs each engine for a few seconds; `make torture` as long as it is asked to.
#![allow(clippy::unwrap_used)]

mod balanced;
mod cut_off;
mod database;
mod defects;
mod disturb;
mod fleet;
mod leader;
mod load;
mod log;
mod negatives;
mod partition;
mod promotion;
mod rolling;
mod run;
mod stopped;
mod watchers;

#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../bareboat-etcd/tests/etcd/member.rs"]
mod etcd;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../bareboat-sql/tests/mariadb/cluster.rs"]
mod mariadb;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../bareboat-sql/tests/postgres/cluster.rs"]
mod postgres;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "../e2e/process.rs"]
mod process;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "../e2e/server.rs"]
mod server;

#[allow(dead_code, reason = "other suites use more of it")]
#[path = "../e2e/tools.rs"]
mod tools;

use database::Database;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_on_postgresql() {
    if let Some(database) = Database::postgres() {
        run::faults("PostgreSQL", database, 3).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_on_etcd() {
    if let Some(database) = Database::etcd() {
        run::faults("etcd", database, 3).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_mariadb() {
    if let Some(database) = Database::mariadb() {
        run::faults("MariaDB", database, 2).await;
    }
}
