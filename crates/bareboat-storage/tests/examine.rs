//! Tests of examinations: planted defects are found, and a healthy log has no findings.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bareboat_storage::examine::{Examination, Setting, Share, examine};
use bareboat_storage::{
    Appended, Backend, BackendError, Batch, Digest, Mark, MemoryBackend, Record, Refill, Value,
};

fn record(revision: u64, prev: u64, key: &str, value: Option<&str>) -> Record {
    Record {
        revision,
        prev,
        cluster: "".into(),
        resource: "core/pods".into(),
        key: key.into(),
        actor: None,
        value: value.map(|value| Value::new(value.to_owned().into())),
    }
}

fn pod(namespace: &str, name: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"{namespace}"}}}}"#
    )
}

/// Returns a log with two batches above its floor.
fn healthy() -> MemoryBackend {
    let log = MemoryBackend::starting_at(10).shared();
    let (a, b) = (pod("x", "a"), pod("x", "b"));
    append(&log, vec![record(11, 0, "x/a", Some(&a))]);
    log.compact(11, usize::MAX).unwrap();
    append(
        &log,
        vec![
            record(12, 0, "x/b", Some(&b)),
            record(13, 11, "x/a", Some(&a)),
        ],
    );
    append(&log, vec![record(14, 12, "x/b", None)]);
    log
}

fn append(log: &MemoryBackend, records: Vec<Record>) {
    let batch = Batch {
        id: u128::from(records[0].revision),
        writer: 2,
        records,
    };
    let done = log.append(&log.mark().unwrap(), &batch).unwrap();
    assert!(matches!(done, Appended::Done(_)));
}

/// A log whose records are read differently from what was written.
struct Damaged {
    inner: MemoryBackend,
    damage: Box<dyn Fn(Record) -> Vec<Record> + Send + Sync>,
}

impl Backend for Damaged {
    bareboat_storage::delegate_backend!(inner: append read_since read_at compact compacted mark places);

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.inner.load(after, &mut |record| {
            (self.damage)(record).into_iter().for_each(&mut *visit);
        })
    }
}

fn with(damage: impl Fn(Record) -> Vec<Record> + Send + Sync + 'static) -> Examination {
    let log: Arc<dyn Backend> = Arc::new(Damaged {
        inner: healthy(),
        damage: Box::new(damage),
    });
    examine(&*log).unwrap()
}

fn problems(found: &Examination) -> String {
    let problems = found
        .findings
        .iter()
        .map(|finding| finding.problem.as_str());
    problems.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_healthy_log_has_no_findings() {
    let found = with(|record| vec![record]);
    assert_eq!(problems(&found), "");
    assert_eq!((found.floor, found.end.last, found.batches), (11, 14, 2));
    let share = found.resources["core/pods"];
    assert_eq!((share.objects, share.history), (1, 3));
    assert_eq!(found.largest.len(), 1);
}

#[test]
fn planted_defects_are_found() {
    let at = |revision: u64, change: fn(&mut Record)| {
        with(move |mut record| {
            if record.revision == revision {
                change(&mut record);
            }
            vec![record]
        })
    };
    let another = |record: &mut Record| {
        let text = pod("x", "a").replace("v1", "v2");
        record.value = Some(Value::new(text.into()));
    };
    let digest = at(13, another);
    assert!(problems(&digest).contains("ends at revision 13 does not match its digest"));
    let named = at(13, |record| {
        record.value = Some(Value::new(pod("y", "a").into()));
    });
    assert!(problems(&named).contains("contains another name"));
    let broken = at(11, |record| record.value = Some(Value::new("{]".into())));
    assert!(problems(&broken).contains("is not an object in JSON"));
    let damaged = at(11, |record| record.value = Some(Value::damaged("x/a")));
    assert!(problems(&damaged).contains("does not match its checksum"));
    let prev = at(13, |record| record.prev = 9);
    assert!(problems(&prev).contains("replaces revision 9, but 11 was found"));
    let key = at(14, |record| record.key = "x/c".into());
    assert!(problems(&key).contains("replaces revision 12, but 0 was found"));
    let gap = with(|record| match record.revision {
        12 => Vec::new(),
        _ => vec![record],
    });
    assert!(problems(&gap).contains("revisions 12 to 12 are missing"));
    let end = with(|record| match record.revision {
        14 => Vec::new(),
        _ => vec![record],
    });
    assert!(problems(&end).contains("ends before revision 14"));
    let twice = with(|record| match record.revision {
        11 => vec![
            record.clone(),
            Record {
                revision: 10,
                ..record
            },
        ],
        _ => vec![record],
    });
    assert!(problems(&twice).contains("exists more than once"));
    let again = with(|record| match record.revision {
        13 => vec![record.clone(), record],
        _ => vec![record],
    });
    assert!(problems(&again).contains("revision 13 exists more than once"));
    // Every finding has advice.
    assert!(
        again
            .findings
            .iter()
            .all(|finding| !finding.advice.is_empty())
    );
}

#[test]
fn a_restore_that_did_not_end_is_found() {
    let log = MemoryBackend::starting_at(1);
    log.refill(Refill::Begin).unwrap();
    let found = examine(&log).unwrap();
    assert!(problems(&found).contains("was interrupted"));
    let start = Mark {
        last: 5,
        epoch: 0,
        digest: Digest::default(),
    };
    log.refill(Refill::Start(start)).unwrap();
    log.refill(Refill::Finish).unwrap();
    assert_eq!(problems(&examine(&log).unwrap()), "");
}

#[test]
fn namespaces_and_objects_that_change_often_are_counted() {
    let log = healthy();
    let c = pod("y", "c");
    append(&log, vec![record(15, 0, "y/c", Some(&c))]);
    append(&log, vec![record(16, 15, "y/c", Some(&c))]);
    append(&log, vec![record(17, 16, "y/c", Some(&c))]);
    append(&log, vec![record(18, 0, "alone", None)]);
    let found = examine(&log).unwrap();
    let busiest = [("core/pods y/c".to_owned(), 3), ("core/pods x/b".into(), 2)];
    assert_eq!(found.busiest, busiest);
    let [(y, of_y), (x, of_x)] = &found.namespaces[..] else {
        panic!("{:?}", found.namespaces)
    };
    assert_eq!((y.as_str(), x.as_str()), ("y", "x"));
    let len = (c.len() + 3) as u64;
    let expected = Share {
        objects: 1,
        bytes: len,
        history: 3,
        history_bytes: 3 * len,
    };
    assert_eq!(*of_y, expected);
    // A creation, a change and a deletion; one object is left.
    assert_eq!((of_x.objects, of_x.history), (1, 3));
}

#[test]
fn compaction_that_is_stuck_is_reported() {
    assert_eq!(Setting::swept(7, 0).value, "up to revision 7");
    assert_eq!(Setting::swept(7, 100_000).advice, None);
    let stuck = Setting::swept(7, 100_001);
    assert!(stuck.advice.unwrap().contains("--repair"));
}
