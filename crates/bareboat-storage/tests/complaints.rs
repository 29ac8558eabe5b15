//! What a store logs about rejected batches. The only test of its program, because it collects the log of all threads.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::sync::Arc;

use bareboat_storage::faults::{Fault, Faulty};
use bareboat_storage::{CommitError, MemoryBackend, Store, StoreOptions, Write};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Collects the lines at the level ERROR.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn refused_batches_give_few_lines() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    let backend = Arc::new(Faulty::new(Arc::new(MemoryBackend::new())));
    let store = Store::open(backend.clone(), StoreOptions::default()).unwrap();
    let resource = store.resource("core/configmaps");
    backend.set(Some(Fault::Full));
    let object =
        bytes::Bytes::from_static(br#"{"apiVersion":"v1","kind":"X","metadata":{"name":"x"}}"#);
    let started = std::time::Instant::now();
    for n in 0..2_000 {
        let write = Write::create(&resource, format!("k{n}"), object.clone());
        let refused = store.commit(write).await;
        assert!(matches!(refused, Err(CommitError::Full)));
    }
    // One at once, then one in ten seconds.
    let most = 1 + started.elapsed().as_secs() / 10;
    let lines = lines.0.lock();
    assert!(!lines.is_empty() && lines.len() as u64 <= most, "{lines:?}");
    assert!(lines[0].contains("batches=1 "), "{lines:?}");
}
