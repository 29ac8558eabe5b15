//! The order in which the writer does its work.

use crate::sync::writer::{Clock, Writer};
use bareboat_api::value;
use bareboat_shelf::{Batch, Change, Draft, KindId, KindInfo, MemberId, Shelf};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many objects a page has: more than are written at once while there are events.
const PAGE: usize = 100;

struct Rig {
    _dir: tempfile::TempDir,
    shelf: Arc<Shelf>,
    member: MemberId,
    kind: KindId,
}

impl Rig {
    fn new() -> Rig {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let shelf = Shelf::open(dir.path().join("fleet.db"), Default::default());
        let shelf = Arc::new(shelf.expect("a shelf can be opened"));
        let (member, _) = shelf.add_member("c1", "").expect("a member can be added");
        let kind = shelf.add_kind(&KindInfo {
            group: String::new(),
            resource: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespaced: true,
        });
        Rig {
            _dir: dir,
            shelf,
            member,
            kind: kind.expect("a kind can be added"),
        }
    }

    fn batch(&self, prefix: &str, objects: usize) -> Batch {
        let change = |number: usize| {
            let name = format!("{prefix}-{number}");
            let object = value!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": (name.as_str()), "namespace": "a", "uid": (name.as_str()), "resourceVersion": "1"},
            });
            let draft = Draft::new("c1", object).expect("the object is well formed");
            Change::Put(Box::new(draft))
        };
        Batch {
            member: self.member,
            kind: self.kind,
            changes: (0..objects).map(change).collect(),
            progress: None,
        }
    }
}

/// Everything is in the queues before the writer begins, so its order is its own choice.
#[tokio::test(start_paused = true)]
async fn events_do_not_wait_for_pages_and_other_work_does() {
    let rig = Rig::new();
    let clock: Clock = Arc::new(|| 1);
    let (writer, work) = Writer::new(rig.shelf.clone(), clock, Duration::from_secs(60));
    let first = Cell::new("");
    let note = |what: &'static str| {
        if first.get().is_empty() {
            first.set(what);
        }
    };
    let pages = async {
        let one = writer.fill(rig.batch("one", PAGE));
        let two = writer.fill(rig.batch("two", PAGE));
        let (one, two) = tokio::join!(one, two);
        assert_eq!(one.expect("it is written").rows.len(), PAGE);
        assert_eq!(two.expect("it is written").changed, PAGE);
        note("pages");
    };
    let event = async {
        let written = writer.apply(rig.batch("event", 1)).await;
        assert_eq!(written.expect("it is written").changed, 1);
        note("event");
    };
    let removal = async {
        let member = rig.member;
        let removed = writer.call(move |shelf, now| shelf.remove_member(member, now));
        let rows = removed.await.expect("the member is removed");
        assert_eq!(rows, 2 * PAGE + 1, "nothing is written afterwards");
    };
    let all = async { tokio::join!(pages, event, removal) };
    tokio::select! {
        biased;
        _ = all => {}
        () = work => unreachable!("it ends when there is no writer"),
    }
    assert_eq!(first.get(), "event");
    // One for the event, and three for each page, which are written in parts while there are events.
    let transactions = writer.transactions.load(Ordering::Relaxed);
    assert_eq!(transactions, 7);
}
