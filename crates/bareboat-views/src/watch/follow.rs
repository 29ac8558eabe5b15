//! The task of one watch.

use super::Begin;
use super::catch_up::CatchUp;
use super::judge::{Judge, Shown};
use crate::list::{Reading, version_of};
use crate::stream::Pipe;
use bareboat_api::{Map, Object, Status, Value, value};
use bareboat_server::Life;
use bareboat_server::request::negotiate::Transform;
use bareboat_server::tables;
use bareboat_shelf::{Event, EventType, Expired, Following, Position, Query, Replayed};
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How many changes are taken at once.
const AT_ONCE: usize = 200;
/// How many objects of the state are read at once.
const PAGE: usize = 500;
/// Changes are collected for this long, so that many small commits do not wake every watch each time.
const COLLECT: Duration = Duration::from_millis(10);
/// How often bookmarks are sent.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How often rights are checked again when no change of them was reported.
const RECHECK: Duration = Duration::from_secs(10);

/// A watch.
pub(super) struct Watching {
    /// Reads the state, and shows objects.
    pub(super) reading: Reading,
    pub(super) judge: Judge,
    /// The query without members and namespaces that were judged before.
    pub(super) open: Query,
    pub(super) begin: Begin,
    /// Whether the end of the state is marked.
    pub(super) marks_end: bool,
    pub(super) bookmarks: bool,
    pub(super) until: Instant,
    pub(super) life: Life,
    pub(super) commits: watch::Receiver<i64>,
    pub(super) out: Pipe,
    /// Whether the columns of a table were sent.
    pub(super) has_columns: bool,
    pub(super) _following: Following,
}

/// The client is gone, or was told why the watch ends.
struct Ended;

impl From<Status> for Ended {
    fn from(_: Status) -> Ended {
        Ended
    }
}

impl Watching {
    /// Runs until the client, the server or time ends it.
    pub(super) async fn run(mut self) {
        let (life, out, until) = (self.life.clone(), self.out.clone(), self.until);
        // Nothing is written to this shelf while another server has the members.
        let left = self.reading.views.members.left();
        tokio::select! {
            _ = self.follow() => {}
            () = life.ended() => {}
            () = left => {}
            () = out.closed() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    async fn follow(&mut self) -> Result<(), Ended> {
        let (rev, mut beyond) = match self.begin {
            Begin::State => (self.state().await?, None),
            Begin::After { rev, beyond } => (rev, beyond),
            Begin::Expired => return self.fail(&expired()).await,
        };
        let mut position = Position::from(rev);
        let mut replay = match self.begin {
            Begin::After { rev, beyond: None } => Some(CatchUp::new(rev)),
            _ => None,
        };
        let (mut marked, mut checked) = (Instant::now(), Instant::now());
        let mut bookmark = (rev, String::new());
        let (mut known, mut rechecks) = (0, false);
        loop {
            self.commits.mark_unchanged();
            let progress = self.progress().await?;
            let found = match self.changes(position).await? {
                Ok(found) => found,
                Err(Expired) => return self.fail(&expired()).await,
            };
            let more = !found.1.events.is_empty();
            if replay.is_none()
                && beyond.is_none()
                && found.1.events.iter().any(|it| it.is_merged())
            {
                // The watch was too slow for the changes in memory.
                replay = Some(CatchUp::new(position.rev));
            }
            for (event_type, event) in found.0 {
                let seen = |limit: u64| {
                    let version = event.narrow.member_version.parse::<u64>();
                    version.is_ok_and(|version| version <= limit)
                };
                if beyond.is_some_and(seen) {
                    continue;
                }
                let event_type = match &mut replay {
                    Some(replay) => replay.judge(event_type, &event.narrow),
                    None => event_type,
                };
                self.show(event_type, &event).await?;
            }
            position = found.1.next;
            let rev = position.rev;
            if more {
                continue;
            }
            // All that happened before the watch began was replayed, unless the shelf is behind what the client knows: so it is when
            // another server has begun to sync. A member that was restored from a backup goes backwards.
            let reached = progress
                .as_deref()
                .and_then(|text| text.parse::<u64>().ok());
            let behind = |limit: &u64| reached.is_some_and(|now| now < *limit && now >= known);
            beyond = beyond.filter(behind);
            known = known.max(reached.unwrap_or(0));
            replay = None;
            if self.bookmarks && marked.elapsed() >= BOOKMARKS {
                let version = progress.clone().unwrap_or_else(|| rev.to_string());
                if bookmark != (rev, version.clone()) {
                    self.bookmark(&version, false).await?;
                    bookmark = (rev, version);
                }
                marked = Instant::now();
            }
            if std::mem::take(&mut rechecks) || checked.elapsed() >= RECHECK {
                let members = self.reading.views.members.clone();
                if self.judge.changed(members.as_ref()).await {
                    return self.fail(&expired()).await;
                }
                checked = Instant::now();
            }
            tokio::select! {
                changed = self.commits.changed() => changed.map_err(|_| Ended)?,
                () = self.life.rights_changed() => rechecks = true,
                () = tokio::time::sleep(RECHECK) => {}
            }
            tokio::time::sleep(COLLECT).await;
        }
    }

    /// Sends the present state, and returns its version.
    async fn state(&mut self) -> Result<i64, Ended> {
        let (mut after, mut rev, mut version) = (None, 0, None);
        loop {
            let mut query = self.reading.query.clone();
            query.after = after;
            let page = match self.reading.page(query, PAGE).await {
                Ok(page) => page,
                Err(status) => {
                    self.fail(&status).await?;
                    return Err(Ended);
                }
            };
            if rev == 0 {
                (rev, version) = (page.rev, page.member_version);
            }
            let mut bytes = BytesMut::new();
            for item in page.items.iter() {
                let object = self.wrapped(item, "");
                frame(&mut bytes, "ADDED", &object);
            }
            self.send(bytes.freeze()).await?;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        if self.marks_end && self.bookmarks {
            let version = version.unwrap_or_else(|| rev.to_string());
            self.bookmark(&version, true).await?;
        }
        Ok(rev)
    }

    /// In one-member views, returns how far the member is synced, and notes it.
    async fn progress(&self) -> Result<Option<String>, Ended> {
        let Some((member, kind)) = self.reading.single else {
            return Ok(None);
        };
        let views = &self.reading.views;
        let (rev, shelf) = (views.shelf.visible(), views.shelf.clone());
        let version = views.workers.run(move || version_of(&shelf, member, kind));
        let version = version.await?;
        if let Ok(number) = version.parse() {
            views.marks.note(member, kind, number, rev);
        }
        Ok(Some(version))
    }

    /// Returns the changes after a position: those that the query shows, and all of them.
    async fn changes(
        &self,
        position: Position,
    ) -> Result<Result<(Vec<(EventType, Arc<Event>)>, Replayed), Expired>, Ended> {
        let shelf = self.reading.views.shelf.clone();
        let mut query = self.open.clone();
        if query.kinds.is_empty() {
            // The type was not synced when the watch began.
            query.kinds = self.judge.asked.kinds(&shelf.directory());
        }
        let look = move || {
            let replayed = match shelf.changes(&query, position, AT_ONCE)? {
                Ok(replayed) => replayed,
                Err(expired) => return Ok(Err(expired)),
            };
            let mut shown = Vec::new();
            for event in &replayed.events {
                if let Some(event_type) = shelf.seen_through(&query, event)? {
                    shown.push((event_type, event.clone()));
                }
            }
            Ok(Ok((shown, replayed)))
        };
        match self.reading.views.workers.run(look).await {
            Ok(found) => Ok(found),
            Err(status) => {
                self.fail(&status).await?;
                Err(Ended)
            }
        }
    }

    /// Sends a change, if the user may see it.
    async fn show(&mut self, event_type: EventType, event: &Event) -> Result<(), Ended> {
        let views = self.reading.views.clone();
        let directory = views.shelf.directory();
        let member = directory.member_name(event.narrow.member);
        let namespace = &event.narrow.namespace;
        let shown = self
            .judge
            .shows(views.members.as_ref(), member, namespace)
            .await;
        let mut item = event.item();
        match shown {
            Shown::Nothing => return Ok(()),
            // What is left is what the row says.
            Shown::Name => item.body = Bytes::new(),
            Shown::Whole => {}
        }
        let name = match event_type {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        };
        let item = self.reading.renderer.bytes(&item, &directory, None);
        let version = self.reading.renderer.version(&event.narrow);
        let object = self.wrapped(&item, &version);
        let mut bytes = BytesMut::new();
        frame(&mut bytes, name, &object);
        self.send(bytes.freeze()).await
    }

    /// Returns the object of an event: for tables, a table with one row.
    fn wrapped<'i>(&mut self, item: &'i [u8], version: &str) -> Cow<'i, [u8]> {
        let Transform::Table { beta } = self.reading.renderer.transform else {
            return Cow::Borrowed(item);
        };
        let row = bareboat_wire::json::parse(item);
        let row = row.map_or(Value::Null, |parsed| parsed.value);
        Cow::Owned(self.table(row, version, beta))
    }

    fn table(&mut self, row: Value, version: &str, beta: bool) -> Vec<u8> {
        let first = !std::mem::replace(&mut self.has_columns, true);
        let columns = first.then(|| self.reading.renderer.columns());
        let metadata = value!({"resourceVersion": version});
        let table = tables::table(columns, vec![row], metadata, beta);
        table.to_json()
    }

    async fn bookmark(&mut self, version: &str, initial_end: bool) -> Result<(), Ended> {
        let asked = &self.judge.asked;
        let mut metadata = Map::new();
        metadata.insert("resourceVersion", Value::string(version));
        if initial_end {
            let end = value!({"k8s.io/initial-events-end": "true"});
            metadata.insert("annotations", end);
        }
        let object = value!({
            "kind": (asked.kind.as_str()), "apiVersion": (asked.api_version()),
            "metadata": (Value::Object(metadata)),
        });
        let object: Bytes = match self.reading.renderer.transform {
            Transform::Whole => object.to_json().into(),
            Transform::Metadata { beta } => {
                let object = Object::try_from(object).unwrap_or_default();
                tables::partial(&object, beta).to_json().into()
            }
            Transform::Table { beta } => {
                let row = self.reading.renderer.formed(object, "");
                self.table(row, version, beta).into()
            }
        };
        let mut bytes = BytesMut::new();
        frame(&mut bytes, "BOOKMARK", &object);
        self.send(bytes.freeze()).await
    }

    /// Tells the client why the watch ends.
    async fn fail(&self, status: &Status) -> Result<(), Ended> {
        let mut bytes = BytesMut::new();
        frame(&mut bytes, "ERROR", &status.to_value().to_json());
        self.send(bytes.freeze()).await
    }

    async fn send(&self, bytes: Bytes) -> Result<(), Ended> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.send(Ok(bytes)).await.map_err(|_| Ended)
    }
}

fn expired() -> Status {
    Status::expired("too old resource version")
}

fn frame(out: &mut BytesMut, name: &str, object: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}
