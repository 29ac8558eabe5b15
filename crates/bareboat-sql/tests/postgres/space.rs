//! Tests of a full disk.

use std::process::Command;

use bareboat_rig::checks::a_full_disk_fails_writes_and_not_reads;
use bareboat_rig::small_disk::SmallDisk;

use super::cluster::Cluster;
use super::open;

#[test]
fn a_full_disk_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 24, 8) else {
        return;
    };
    let cluster = Cluster::start(&[]).unwrap();
    // The tables are on the small disk, the log of the database is not.
    let place = folder.path().join("tables");
    std::fs::create_dir(&place).unwrap();
    let given = Command::new("chown").arg("postgres").arg(&place).status();
    assert!(given.unwrap().success());
    let place = format!("CREATE TABLESPACE small LOCATION '{}'", place.display());
    cluster.ask(&place).unwrap();
    cluster
        .ask("ALTER ROLE postgres SET default_tablespace TO small")
        .unwrap();
    let store = open(&cluster.url(cluster.port, "space"));
    a_full_disk_fails_writes_and_not_reads(&store, 200_000, || disk.make_space());
    drop(store);
    cluster.kill();
}
