//! A database that goes away and comes back, and one that was a standby.

use crate::cluster::Cluster;
use crate::rig::{Rig, kind};
use crate::site::Site;
use bareboat_api::value;
use bareboat_shelf::{Query, Settings, ShelfError};

#[test]
fn a_server_that_restarts_is_used_again() {
    let cluster = Cluster::start(&[]).expect("the database is installed");
    let site = Site(cluster.fresh());
    let shelf = site.open(Settings::default());
    let pods = shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    let (member, _) = shelf.add_member("c1", "").unwrap();
    let query = Query {
        kinds: vec![pods],
        ..Query::default()
    };
    assert!(shelf.page(&query, 10).unwrap().items.is_empty());
    cluster.kill();
    for _ in 0..3 {
        let failed = shelf.page(&query, 10).unwrap_err();
        assert!(matches!(failed, ShelfError::Unreachable(_)), "{failed:?}");
        let failed = shelf.forget_progress(member).unwrap_err();
        assert!(matches!(failed, ShelfError::Unreachable(_)), "{failed:?}");
        assert!(shelf.lease("a", &[]).is_err());
    }
    cluster.run(&[]);
    assert!(shelf.page(&query, 10).unwrap().items.is_empty());
    shelf.forget_progress(member).unwrap();
    assert_eq!(shelf.lease("a", &[]).unwrap().len(), 1);
}

#[test]
fn after_a_promotion_versions_from_before_are_expired() {
    let mut rig = Rig::new();
    rig.put(0, "a", "p1", "u1", value!({}));
    let before = rig.shelf.visible();
    let leases = rig.shelf.lease("a", &[]).unwrap();
    rig.site.promote();
    rig.reopen(true);
    // What the old primary had last may be lost, so every member is listed again, by the server that takes it then.
    for (member, lease) in rig.members.iter().zip(&leases) {
        let progress = rig.shelf.progress(*member).unwrap();
        assert!(
            progress
                .iter()
                .all(|(_, it)| it.resource_version.is_empty())
        );
        assert_eq!(lease.holder, "a");
    }
    let again = rig.shelf.lease("a", &[]).unwrap();
    assert!(
        again
            .iter()
            .zip(&leases)
            .all(|(new, old)| new.term > old.term)
    );
    let after = rig.shelf.visible();
    assert!(after > before + 1000, "counting goes on far above");
    let changes = |rev| rig.shelf.changes(&rig.query(), rev, 10).unwrap();
    assert!(changes(before).is_err());
    assert!(changes(before + 1).is_err(), "a version that was lost");
    assert!(changes(after).is_ok());
    assert_eq!(rig.names(&rig.query()), ["c1/a/p1"]);
    rig.put(0, "a", "p2", "u2", value!({}));
    assert_eq!(rig.shelf.visible(), after + 1);
}
