//! Files of events and their rotation.

#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::Str;
use bareboat_api::time::Timestamp;
use bareboat_audit::event::Request;
use bareboat_audit::{Level, Stage};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

pub(crate) fn event(id: &str) -> Arc<Event> {
    let at = Timestamp {
        seconds: 0,
        nanos: 0,
    };
    Arc::new(Event {
        request: Arc::new(Request {
            level: Level::Metadata,
            omit_managed_fields: false,
            audit_id: id.to_owned(),
            uri: "/version".to_owned(),
            verb: Str::const_new("get"),
            user: None,
            source_ips: Vec::new(),
            user_agent: String::new(),
            object: None,
            received: at,
        }),
        stage: Stage::ResponseComplete,
        time: at,
        impersonated: None,
        created_name: None,
        outcome: None,
        request_object: None,
        response_object: None,
        annotations: BTreeMap::new(),
    })
}

async fn write(log: &AuditLog, ids: impl Iterator<Item = usize>) {
    for id in ids {
        let events = vec![event(&format!("id-{id}"))];
        Writer::write(log, events).await.unwrap();
    }
}

/// Returns the names of the files in a directory, and all their lines by time.
fn files(directory: &Path) -> (Vec<String>, Vec<String>) {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // `audit.log` sorts behind its backups.
    names.sort();
    let lines = names.iter().flat_map(|name| {
        let text = fs::read_to_string(directory.join(name)).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    let lines = lines.collect();
    (names, lines)
}

#[tokio::test]
async fn a_full_file_is_renamed_and_no_event_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    let rotation = Rotation {
        max_bytes: 1000,
        ..Rotation::default()
    };
    let log = AuditLog::open(&path, rotation).unwrap();
    write(&log, 0..20).await;
    let (names, lines) = files(directory.path());
    assert!(names.len() > 3, "{names:?}");
    assert_eq!(lines.len(), 20);
    for (at, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("\"id-{at}\"")), "{at}: {line}");
    }
    for name in names {
        let found = fs::metadata(directory.path().join(&name)).unwrap();
        assert!(found.len() <= 1000, "{name}");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn old_files_are_deleted_when_they_are_too_many_or_too_old() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    for other in [
        "audit-2001-01-01T00-00-00.000.log",
        "audit-notes.log",
        "other-2001-01-01T00-00-00.000.log",
    ] {
        fs::write(directory.path().join(other), "").unwrap();
    }
    let rotation = Rotation {
        max_bytes: 1000,
        max_age: Some(Duration::from_secs(86_400)),
        max_backups: Some(2),
    };
    let log = AuditLog::open(&path, rotation).unwrap();
    write(&log, 0..30).await;
    let (names, _) = files(directory.path());
    let kept = names.iter().filter(|name| name.starts_with("audit-20"));
    assert_eq!(kept.count(), 2, "{names:?}");
    assert!(!names.contains(&"audit-2001-01-01T00-00-00.000.log".to_owned()));
    for left_alone in [
        "audit.log",
        "audit-notes.log",
        "other-2001-01-01T00-00-00.000.log",
    ] {
        assert!(names.contains(&left_alone.to_owned()), "{names:?}");
    }
}

#[tokio::test]
async fn a_file_that_vanishes_is_an_error_until_it_can_be_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let rotation = Rotation {
        max_bytes: 1,
        ..Rotation::default()
    };
    let log = AuditLog::open(&inner.join("audit.log"), rotation).unwrap();
    write(&log, 0..1).await;
    fs::remove_dir_all(&inner).unwrap();
    assert!(Writer::write(&log, vec![event("lost")]).await.is_err());
    fs::create_dir(&inner).unwrap();
    write(&log, 1..2).await;
    let (_, lines) = files(&inner);
    assert_eq!(lines.len(), 1);
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let error = AuditLog::open(Path::new("/nowhere/audit.log"), Rotation::default());
    let error = error.err().unwrap();
    assert!(error.to_string().contains("/nowhere/audit.log"), "{error}");
}
