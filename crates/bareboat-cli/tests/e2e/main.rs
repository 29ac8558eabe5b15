//! The program as its users meet it: a process of its own, real sockets, and clients that nobody
//! here wrote. What a client does inside one process is tested in the crates below.
#![allow(clippy::unwrap_used)]

mod access;
mod cli;
mod clients;
mod controller_manager;
mod conversion;
mod crash;
mod data_directory;
mod helm;
mod informers;
mod java;
mod javascript;
mod kube_rs;
mod kubectl;
mod logs;
mod process;
mod python;
mod sample_controller;
mod server;
mod storage;
mod suite;
mod tools;
