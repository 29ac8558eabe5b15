//! A shelf, its writer and the task of one type, which can crash and start again.

use super::disk::Disk;
use super::model::{Key, Known, Model, ModelApi};
use crate::api::MemberApi;
use crate::discovery::ApiResource;
use crate::members::session::identify;
use crate::settings::FleetSettings;
use crate::sync::writer::{Clock, Writer};
use crate::sync::{Redaction, Report, Streaming, TypeSync};
use bareboat_shelf::{KindId, KindInfo, MemberId, Query, Settings, Shelf};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

pub(super) struct Rig {
    dir: TempDir,
    pub(super) shelf: Arc<Shelf>,
    writer: Writer,
    writing: JoinHandle<()>,
    member: MemberId,
    kind: KindId,
    task: Option<JoinHandle<()>>,
    pub(super) settings: FleetSettings,
    pub(super) reports: Arc<Mutex<Vec<Report>>>,
    pub(super) streaming: Arc<Streaming>,
    /// Marks which parts of objects are synced.
    pub(super) mark: String,
    pub(super) disk: Disk,
}

fn open(dir: &TempDir, settings: &FleetSettings, disk: &Disk) -> Arc<Shelf> {
    Arc::new(disk.shelf(&dir.path().join("fleet.db"), &settings.shelf))
}

fn start_writer(shelf: &Arc<Shelf>, settings: &FleetSettings) -> (Writer, JoinHandle<()>) {
    let clock: Clock = Arc::new(|| 1_000_000);
    let (writer, writing) = Writer::new(shelf.clone(), clock, settings.bookmark_interval);
    (writer, tokio::spawn(writing))
}

impl Rig {
    pub(super) fn new() -> Rig {
        Rig::with(FleetSettings {
            page: 3,
            shelf: Settings {
                readers: 1,
                pages: 1 << 20,
                ..Settings::default()
            },
            ..FleetSettings::default()
        })
    }

    pub(super) fn with(settings: FleetSettings) -> Rig {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let disk = Disk::default();
        let shelf = open(&dir, &settings, &disk);
        let (member, _) = shelf.add_member("c1", "").expect("a member can be added");
        let kind = shelf.add_kind(&KindInfo {
            group: String::new(),
            resource: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespaced: true,
        });
        let kind = kind.expect("a kind can be added");
        let (writer, writing) = start_writer(&shelf, &settings);
        Rig {
            dir,
            shelf,
            writer,
            writing,
            member,
            kind,
            task: None,
            settings,
            reports: Arc::default(),
            streaming: Arc::new(Streaming::new(true)),
            mark: "v1".to_owned(),
            disk,
        }
    }

    fn resource() -> ApiResource {
        ApiResource {
            version: "v1".to_owned(),
            resource: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespaced: true,
            ..ApiResource::default()
        }
    }

    /// Starts the task of the type, at the version that the shelf has.
    pub(super) fn start(&mut self, api: Arc<dyn MemberApi>) {
        let progress = self
            .shelf
            .progress(self.member)
            .expect("progress can be read");
        let saved = progress.into_iter().find(|(kind, _)| *kind == self.kind);
        let reports = self.reports.clone();
        let sync = TypeSync {
            member: self.member,
            kind: self.kind,
            member_name: Arc::from("c1"),
            resource: Rig::resource(),
            api,
            options: Arc::default(),
            namespaces: None,
            redaction: Redaction::None,
            writer: self.writer.clone(),
            refills: Arc::new(Semaphore::new(1)),
            streaming: self.streaming.clone(),
            settings: Arc::new(self.settings.clone()),
            report: Arc::new(move |report| reports.lock().push(report)),
            mark: self.mark.clone(),
        };
        let saved = saved.map(|(_, progress)| progress);
        self.task = Some(tokio::spawn(sync.run(saved)));
    }

    /// Follows a model, as a session does: first it looks whether the member is still the same.
    pub(super) fn follow(&mut self, model: &Arc<Model>) {
        let checked = identify(&self.shelf, "c1", self.member, "", Some(model.version()));
        checked.expect("the identity can be checked");
        self.start(Arc::new(ModelApi(model.clone())));
    }

    /// Ends the task.
    pub(super) async fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
    }

    /// Crashes: the task ends wherever it is, and the shelf is opened again without being closed.
    pub(super) async fn crash(&mut self) {
        self.stop().await;
        self.writing.abort();
        let _ = (&mut self.writing).await;
        // A transaction that has begun ends, here as in a process that is killed: as a whole, or not at all.
        while Arc::strong_count(&self.shelf) > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.shelf = open(&self.dir, &self.settings, &self.disk);
        (self.writer, self.writing) = start_writer(&self.shelf, &self.settings);
    }

    /// Ends the writer in order, and starts another.
    pub(super) async fn end(&mut self) {
        let (writer, writing) = start_writer(&self.shelf, &self.settings);
        drop(std::mem::replace(&mut self.writer, writer));
        let ended = std::mem::replace(&mut self.writing, writing);
        ended.await.expect("the writer ends");
    }

    /// Returns the rows of the member.
    pub(super) fn rows(&self) -> BTreeMap<Key, Known> {
        let query = Query {
            kinds: vec![self.kind],
            ..Query::default()
        };
        let page = self
            .shelf
            .page(&query, 100_000)
            .expect("the shelf can be read");
        let row = |item: &bareboat_shelf::Item| {
            let narrow = &item.narrow;
            let body = item.value("");
            let content = body
                .at(&["data", "content"])
                .and_then(|value| value.as_str());
            let content = content.and_then(|text| text.parse().ok()).unwrap_or(-1);
            let version = narrow.member_version.parse().unwrap_or(0);
            let key = (narrow.namespace.clone(), narrow.name.clone());
            (key, (narrow.uid.clone(), version, content))
        };
        page.items.iter().map(row).collect()
    }

    /// Returns the size of all objects.
    pub(super) fn bytes(&self) -> u64 {
        let query = Query {
            kinds: vec![self.kind],
            ..Query::default()
        };
        let page = self.shelf.page(&query, 100_000);
        let items = page.expect("the shelf can be read").items;
        items.iter().map(|item| item.body.len() as u64).sum()
    }

    /// Waits until the shelf equals a member. Only a failure waits long, and the clock is that of the test.
    pub(super) async fn settled(&self, model: &Model) {
        for _ in 0..40_000 {
            if self.rows() == model.objects() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(self.rows(), model.objects());
    }

    /// How many transactions with versions there were.
    pub(super) fn transactions(&self) -> u64 {
        self.writer.transactions.load(Ordering::Relaxed)
    }

    pub(super) fn last_failure(&self) -> Option<String> {
        let reports = self.reports.lock();
        reports.iter().rev().find_map(|report| match report {
            Report::Failed(failure) => Some(format!("{}: {}", failure.reason, failure.message)),
            _ => None,
        })
    }
}
