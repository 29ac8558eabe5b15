//! Tests of the program as its users run it: a separate process, real sockets, and published clients. In-process
//! behaviour is tested in the library crates.
#![allow(clippy::unwrap_used)]

mod access;
mod accounts;
mod aggregation;
mod audit;
mod backups;
mod book;
mod cli;
mod clients;
mod controller_manager;
mod conversion;
mod crash;
mod credentials;
mod data_directory;
mod encryption;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../bareboat-etcd/tests/etcd/member.rs"]
mod etcd;
mod fleet;
mod front_proxy;
mod helm;
mod identity;
mod informers;
mod java;
mod javascript;
mod kube_rs;
mod kubectl;
mod logs;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../bareboat-sql/tests/mariadb/cluster.rs"]
mod mariadb;
mod pairs;
mod past;
mod planted;
mod plugin;
mod pod_security;
#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../bareboat-sql/tests/postgres/cluster.rs"]
mod postgres;
mod process;
mod prometheus;
mod python;
mod reloads;
mod replicas;
mod rotation;
mod sample_controller;
mod scaffold;
mod server;
mod storage;
mod streams;
mod suite;
mod tools;
mod tracing;
