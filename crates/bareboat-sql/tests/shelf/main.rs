//! The shelf in PostgreSQL, on a private server: the tests of every shelf, those of servers that share one, and a comparison of all
//! databases.
#![allow(clippy::unwrap_used)]

#[path = "../postgres/cluster.rs"]
#[allow(dead_code, reason = "other suites need more of it")]
mod cluster;
#[path = "../../../bareboat-shelf/tests/it/indexes.rs"]
mod indexes;
mod leases;
#[path = "../mariadb/cluster.rs"]
#[allow(dead_code, reason = "other suites need more of it")]
mod maria;
#[path = "../../../bareboat-shelf/tests/it/model.rs"]
mod model;
mod outages;
#[path = "../../../bareboat-shelf/tests/it/pages.rs"]
mod pages;
#[path = "../../../bareboat-shelf/tests/it/queries.rs"]
mod queries;
#[path = "../../../bareboat-shelf/tests/it/quotas.rs"]
mod quotas;
#[path = "../../../bareboat-shelf/tests/it/replay.rs"]
mod replay;
#[path = "../../../bareboat-shelf/tests/it/rig.rs"]
mod rig;
mod same;
mod site;
#[path = "../../../bareboat-shelf/tests/it/versions.rs"]
mod versions;
