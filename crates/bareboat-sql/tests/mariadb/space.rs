//! Tests of a full disk.

use std::process::Command;

use bareboat_rig::checks::a_full_disk_fails_writes_and_not_reads;
use bareboat_rig::small_disk::SmallDisk;

use super::cluster::Cluster;
use super::open;

/// The tables are on the small disk, the log of the database is not.
///
/// Objects are small: InnoDB keeps large values in pages of their own, and MariaDB ends itself when there is no space for
/// such a page.
#[test]
fn a_full_disk_is_survived() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 24, 8) else {
        return;
    };
    let cluster = Cluster::start(&[]).unwrap();
    let url = cluster.url(cluster.port, "space");
    let place = folder.path().join("space");
    let tables = cluster.data().join("space");
    let moved = Command::new("mv").arg(&tables).arg(&place).status();
    assert!(moved.unwrap().success());
    std::os::unix::fs::symlink(&place, &tables).unwrap();
    let store = open(&url);
    a_full_disk_fails_writes_and_not_reads(&store, 1_500, || disk.make_space());
    drop(store);
    cluster.kill();
}
