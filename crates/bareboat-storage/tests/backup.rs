//! Tests of backups of the log in memory. The conformance suite tests backups of all engines.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use bareboat_storage::backup::*;
use bareboat_storage::{
    Backend, Batch, Mark, MemoryBackend, OpenError, Record, Refill, Store, Value,
};

fn record(revision: u64, prev: u64, key: &str, value: Option<&[u8]>) -> Record {
    Record {
        revision,
        prev,
        cluster: "".into(),
        resource: "core/pods".into(),
        key: key.into(),
        actor: Some(r#"{"user":"\"a\","value":"}"#.into()),
        value: value.map(|value| Value::new(value.to_vec().into())),
    }
}

/// Returns a log with a floor in its middle.
fn log() -> MemoryBackend {
    let log = MemoryBackend::starting_at(10);
    let records = vec![
        record(11, 0, "a/kept", Some(br#"{"value":1}"#)),
        record(12, 0, "a/changed", Some(br#"{"n":1}"#)),
        record(13, 0, "a/gone", Some(b"k8s:enc:\x00\xff\n")),
        record(14, 12, "a/changed", Some("{\"n\":\"\u{2028}\"}".as_bytes())),
        record(15, 13, "a/gone", None),
    ];
    append(&log, records);
    log.compact(13, usize::MAX).unwrap();
    log
}

fn append(log: &MemoryBackend, records: Vec<Record>) {
    let batch = Batch {
        id: 1,
        writer: 2,
        records,
    };
    log.append(&log.mark().unwrap(), &batch).unwrap();
}

fn backup(log: &dyn Backend) -> (File, Summary) {
    let mut file = tempfile::tempfile().unwrap();
    let summary = write(log, &mut file, &mut |_| {}).unwrap();
    (file, summary)
}

fn all(log: &dyn Backend) -> Vec<Record> {
    let mut all = Vec::new();
    let floor = log.compacted();
    log.load(floor, &mut |record| all.push(record)).unwrap();
    all
}

const NEXT: RestoreOptions = RestoreOptions {
    replace: false,
    epoch: Epoch::Next { beyond: 0 },
};
const KEEP: RestoreOptions = RestoreOptions {
    replace: false,
    epoch: Epoch::Keep,
};

#[test]
fn a_line_holds_every_record() {
    let values: [Option<&[u8]>; 7] = [
        None,
        Some(b""),
        Some(b"null"),
        Some(br#"{"a":1,"value":2,"base64":"x"}"#),
        Some(b"{\n}"),
        Some(b"\xff{}"),
        Some(br#"{"x":1}"#),
    ];
    let keys = ["a/b", r#"quote " and ,"value": in it"#];
    let pairs = values
        .iter()
        .flat_map(|value| keys.map(|key| (key, *value)));
    let records: Vec<Record> = (11..)
        .zip(pairs)
        .map(|(revision, (key, value))| Record {
            cluster: ["", "other"][revision as usize % 2].into(),
            actor: None,
            ..record(revision, 7, key, value)
        })
        .collect();
    let log = MemoryBackend::starting_at(10);
    append(&log, records.clone());
    let mut read = Vec::new();
    let backup = Backup::open(backup(&log).0).unwrap();
    let summary = backup.read(&mut |record| {
        read.push(record);
        Ok(())
    });
    assert_eq!(summary.unwrap().records, 14);
    assert_eq!(read, records);
}

#[test]
fn a_restored_log_equals_its_source() {
    let log = log();
    let (file, summary) = backup(&log);
    assert_eq!((summary.records, summary.last), (5, 15));
    assert_eq!(summary.objects["core/pods"], 2);
    let backup = Backup::open(file).unwrap();
    for shared in [false, true] {
        let kept = match shared {
            true => MemoryBackend::starting_at(1).shared(),
            false => MemoryBackend::starting_at(1),
        };
        let restored = restore(std::slice::from_ref(&backup), &kept, KEEP, &mut |_| {}).unwrap();
        assert_eq!((restored.end.last, kept.compacted()), (15, 13));
        assert_eq!(all(&kept), all(&log));
    }
    let moved = MemoryBackend::starting_at(1);
    let restored = restore(std::slice::from_ref(&backup), &moved, NEXT, &mut |_| {}).unwrap();
    assert_eq!(restored.end.last, 15 + (1 << 20));
    assert_eq!(
        (restored.end.epoch, moved.compacted()),
        (1, restored.end.last)
    );
    let revisions: Vec<u64> = all(&moved).iter().map(|record| record.revision).collect();
    assert_eq!(revisions, [11, 14]);
    // Copy the same content without a file.
    let copied = MemoryBackend::starting_at(1);
    assert_eq!(
        copy(&log, &copied, KEEP, &mut |_| {}).unwrap().summary,
        summary
    );
    assert_eq!(all(&copied), all(&log));
}

#[test]
fn a_target_with_objects_is_refused_unless_it_may_be_replaced() {
    let target = MemoryBackend::starting_at(1);
    append(&target, vec![record(2, 0, "a/old", Some(b"{}"))]);
    let (file, _) = backup(&log());
    let backup = Backup::open(file).unwrap();
    let refused = restore(std::slice::from_ref(&backup), &target, NEXT, &mut |_| {});
    assert!(matches!(refused, Err(BackupError::NotEmpty)));
    assert_eq!(all(&target).len(), 1);
    let replace = RestoreOptions {
        replace: true,
        epoch: Epoch::Next { beyond: 7_000_000 },
    };
    let restored = restore(std::slice::from_ref(&backup), &target, replace, &mut |_| {}).unwrap();
    assert_eq!(restored.end.last, 7_000_000 + (1 << 20));
    assert!(all(&target).iter().all(|record| *record.key != *"a/old"));
}

#[test]
fn a_log_that_was_not_filled_to_the_end_is_not_opened() {
    let log = MemoryBackend::starting_at(1);
    log.refill(Refill::Begin).unwrap();
    let start = Mark {
        last: 5,
        ..Mark::default()
    };
    log.refill(Refill::Start(start)).unwrap();
    let open = || Store::open(std::sync::Arc::new(log.clone()), Default::default());
    assert!(matches!(open(), Err(OpenError::Incomplete)));
    log.refill(Refill::Finish).unwrap();
    assert!(open().is_ok());
}

#[test]
fn every_flipped_byte_is_noticed() {
    let (mut file, _) = backup(&log());
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    for (at, byte) in bytes.iter().enumerate() {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[byte ^ 0x10]).unwrap();
        let opened = Backup::open(file.try_clone().unwrap());
        assert!(
            matches!(opened, Err(BackupError::Damaged | BackupError::NotABackup)),
            "byte {at}: {opened:?}"
        );
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[*byte]).unwrap();
    }
    assert!(Backup::open(file.try_clone().unwrap()).is_ok());
    for len in [0, 1, 60, bytes.len() as u64 - 1] {
        file.set_len(len).unwrap();
        assert!(Backup::open(file.try_clone().unwrap()).is_err());
    }
}

#[test]
fn the_text_is_what_other_tools_read() {
    let (mut file, summary) = backup(&log());
    let mut text = String::new();
    file.rewind().unwrap();
    // Decompress all members, including the seal.
    flate2::read::MultiGzDecoder::new(&file)
        .read_to_string(&mut text)
        .unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7);
    for line in &lines {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert_eq!(serde_json::from_str::<Summary>(lines[6]).unwrap(), summary);
}
