//! Servers that share a shelf: each member is written by one of them, and all see the same.

use crate::rig::{change_to, kind, progress};
use crate::site::Site;
use bareboat_api::value;
use bareboat_shelf::{Batch, KindId, MemberId, Path, Position, Query, Settings, Shelf, ShelfError};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

struct Hub {
    name: &'static str,
    shelf: Arc<Shelf>,
}

impl Hub {
    fn open(site: &Site, name: &'static str) -> Hub {
        let shelf = Arc::new(site.open(Settings::default()));
        Hub { name, shelf }
    }

    /// Renews the leases, and returns the members that the hub has.
    fn lease(&self) -> Vec<String> {
        let leases = self
            .shelf
            .lease(self.name, &[])
            .expect("leases are renewed");
        let own = leases.into_iter().filter(|one| one.holder == self.name);
        own.map(|one| one.name).collect()
    }

    fn put(&self, member: (&str, MemberId), kind: KindId, name: &str) -> Result<(), ShelfError> {
        let object = value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": "1"},
            "spec": {"nodeName": "n1"},
        });
        let batch = Batch {
            member: member.1,
            kind,
            changes: vec![change_to(member.0, object)],
            progress: Some(progress("7")),
        };
        self.shelf.apply(&[batch], 1).map(drop)
    }
}

#[test]
fn members_are_shared_out_and_taken_over() {
    let site = Site::new();
    let (a, b) = (Hub::open(&site, "a"), Hub::open(&site, "b"));
    let pods = a.shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    let names = ["c1", "c2", "c3", "c4", "c5"];
    let members = names.map(|name| (name, a.shelf.add_member(name, "").unwrap().0));
    assert_eq!(a.lease(), names, "the only server has all members");
    a.put(members[4], pods, "p1").unwrap();
    assert_eq!(b.lease(), Vec::<String>::new(), "nothing is free yet");
    assert_eq!(a.lease(), names[..3], "the second server gets its share");
    assert_eq!(b.lease(), names[3..]);
    assert_eq!((a.lease().len(), b.lease().len()), (3, 2), "it stays so");
    // The fence: what a server does not hold it cannot write.
    assert!(matches!(
        a.put(members[4], pods, "p2"),
        Err(ShelfError::NotHeld)
    ));
    b.put(members[4], pods, "p2").unwrap();
    assert!(matches!(
        b.put(members[0], pods, "p1"),
        Err(ShelfError::NotHeld)
    ));
    a.put(members[0], pods, "p1").unwrap();
    // A server that is silent loses its members; it notices when it writes.
    site.silence("b");
    assert_eq!(a.lease(), names);
    assert!(matches!(
        b.put(members[4], pods, "p3"),
        Err(ShelfError::NotHeld)
    ));
    let resumed = a.shelf.progress(members[4].1).unwrap();
    assert_eq!(resumed[0].1.resource_version, "7", "the next one resumes");
    a.put(members[4], pods, "p3").unwrap();
    // It comes back, and takes members with new terms.
    assert_eq!(b.lease(), Vec::<String>::new());
    assert_eq!(a.lease().len(), 3);
    assert_eq!(b.lease(), names[3..]);
    a.shelf.release("a").unwrap();
    assert!(matches!(
        a.put(members[0], pods, "p9"),
        Err(ShelfError::NotHeld)
    ));
    assert_eq!(b.lease(), names);
}

#[test]
fn versions_of_one_server_are_good_at_another() {
    let site = Site::new();
    let (a, b) = (Hub::open(&site, "a"), Hub::open(&site, "b"));
    let member = ("c1", a.shelf.add_member("c1", "").unwrap().0);
    let pods = a.shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    let query = Query {
        kinds: vec![pods],
        ..Query::default()
    };
    let following = b.shelf.follow();
    a.put(member, pods, "p1").unwrap();
    let first = a.shelf.visible();
    assert!(b.shelf.visible() < first, "no news have arrived yet");
    assert!(b.shelf.gave(first));
    assert_eq!(b.shelf.visible(), first);
    a.put(member, pods, "p2").unwrap();
    let second = a.shelf.visible();
    let told = Arc::new(AtomicI64::new(0));
    let tell = told.clone();
    b.shelf
        .on_commit(move |rev| tell.store(rev, Ordering::SeqCst));
    b.shelf.refresh().unwrap();
    assert_eq!(told.load(Ordering::SeqCst), second);
    // Names that another server added are known as well.
    assert_eq!(b.shelf.directory().member("c1"), Some(member.1));
    b.put(member, pods, "p3").unwrap();
    a.put(member, pods, "p4").unwrap();
    for hub in [&a, &b] {
        let replayed = hub.shelf.changes(&query, first, 10).unwrap().unwrap();
        let names: Vec<&str> = replayed
            .events
            .iter()
            .map(|event| event.narrow.name.as_str())
            .collect();
        assert_eq!(names, ["p2", "p3", "p4"], "{}", hub.name);
        assert_eq!(replayed.next.rev, a.shelf.visible());
        let page = hub.shelf.page(&query, 10).unwrap();
        assert_eq!(page.items.len(), 4);
    }
    let last = a.shelf.visible();
    assert!(b.shelf.changes(&query, last + 1, 10).unwrap().is_err());
    drop(following);
}

#[test]
fn a_field_that_one_server_declares_is_written_by_all() {
    let site = Site::new();
    let (a, b) = (Hub::open(&site, "a"), Hub::open(&site, "b"));
    let member = ("c1", a.shelf.add_member("c1", "").unwrap().0);
    let pods = a.shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    b.shelf.refresh().unwrap();
    b.put(member, pods, "p1").unwrap();
    let path = Path::parse("spec.nodeName").unwrap();
    a.shelf.declare(pods, &[path], 1).unwrap();
    // It does not know of the field yet.
    b.put(member, pods, "p2").unwrap();
    for name in ["p1", "p2"] {
        let found = b.shelf.get(member.1, pods, "a", name).unwrap().unwrap();
        assert_eq!(
            found.narrow.fields.replace(' ', ""),
            r#"{"spec.nodeName":"n1"}"#
        );
    }
}

#[test]
fn writes_of_two_servers_do_not_lose_versions() {
    let site = Site::new();
    let hubs = ["a", "b"].map(|name| Hub::open(&site, name));
    let pods = hubs[0].shelf.add_kind(&kind("", "pods", "Pod")).unwrap();
    let members = ["c1", "c2"].map(|name| (name, hubs[0].shelf.add_member(name, "").unwrap().0));
    let query = Query {
        kinds: vec![pods],
        ..Query::default()
    };
    let begin = hubs[0].shelf.visible();
    std::thread::scope(|scope| {
        for (hub, member) in hubs.iter().zip(members) {
            scope.spawn(move || {
                for number in 0..60 {
                    hub.put(member, pods, &format!("p{number}")).unwrap();
                }
            });
        }
        // A reader that follows meets every change once, in order.
        let (mut position, mut seen) = (Position::from(begin), 0);
        let reader = &hubs[0].shelf;
        while seen < 120 {
            reader.refresh().unwrap();
            let replayed = reader.changes(&query, position, 7).unwrap().unwrap();
            let revs: Vec<i64> = replayed
                .events
                .iter()
                .map(|event| event.narrow.rev)
                .collect();
            assert!(revs.is_sorted() && revs.first().is_none_or(|first| *first > position.rev));
            seen += revs.len();
            position = replayed.next;
        }
        assert_eq!(seen, 120);
    });
}
