//! Members that lie, never end, say nothing or send too much harm only themselves.

use super::model::{Whole, document, query};
use super::rig::Rig;
use crate::api::{Answer, MemberApi, MemberError, Pieces};
use crate::settings::FleetSettings;
use crate::sync::Report;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Value, value};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A member that answers lists and watches by two functions.
struct Liar<L, W> {
    list: L,
    watch: W,
    asked: Arc<AtomicUsize>,
}

impl<L, W> MemberApi for Liar<L, W>
where
    L: Fn(usize, Option<&str>) -> Answer + Send + Sync,
    W: Fn() -> Answer + Send + Sync,
{
    // It refuses to send the present state in watches.
    fn get<'a>(
        &'a self,
        target: &'a str,
        _: &'a str,
        _: Duration,
    ) -> BoxFuture<'a, Result<Answer, MemberError>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let query = query(target);
        let answer = match query.get("watch") {
            Some(_) if query.contains_key("sendInitialEvents") => {
                document(400, &value!({"message": "no"}))
            }
            Some(_) => (self.watch)(),
            None => (self.list)(asked, query.get("continue").map(String::as_str)),
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// A stream that says nothing.
struct Silence;

impl Pieces for Silence {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(std::future::pending())
    }
}

/// A stream of the same piece without an end.
struct Endless(Bytes);

impl Pieces for Endless {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(std::future::ready(Some(Ok(self.0.clone()))))
    }
}

fn stream(body: impl Pieces + 'static) -> Answer {
    Answer {
        code: 200,
        body: Box::new(body),
    }
}

fn page(names: &[&str], next: &str) -> Answer {
    let item = |name: &&str| value!({"metadata": {"name": (*name), "namespace": "default", "uid": (format!("u-{name}")), "resourceVersion": "5"}});
    let items: Vec<Value> = names.iter().map(item).collect();
    document(
        200,
        &value!({"metadata": {"resourceVersion": "10", "continue": next}, "items": (Value::Array(items))}),
    )
}

/// Runs a member for a while, and returns the last failure.
async fn suffer<L, W>(rig: &mut Rig, list: L, watch: W) -> Option<String>
where
    L: Fn(usize, Option<&str>) -> Answer + Send + Sync + 'static,
    W: Fn() -> Answer + Send + Sync + 'static,
{
    let asked = Arc::new(AtomicUsize::new(0));
    rig.start(Arc::new(Liar {
        list,
        watch,
        asked: asked.clone(),
    }));
    tokio::time::sleep(Duration::from_secs(30)).await;
    rig.stop().await;
    // Whatever it does, it is not asked without pauses.
    assert!(asked.load(Ordering::Relaxed) < 2000, "{asked:?}");
    rig.last_failure()
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_that_does_not_move_is_an_error() {
    let mut rig = Rig::new();
    let failure = suffer(&mut rig, |_, _| page(&["a"], "same"), || stream(Silence)).await;
    assert_eq!(
        failure.as_deref(),
        Some("InvalidAnswer: the continue token of the list does not move")
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_is_an_error() {
    let mut rig = Rig::new();
    let empty = suffer(
        &mut rig,
        |asked, _| page(&[], &asked.to_string()),
        || stream(Silence),
    )
    .await;
    assert_eq!(empty.as_deref(), Some("InvalidAnswer: the list has no end"));
    let mut settings = FleetSettings::default();
    settings.shelf.rows_per_member = 50;
    let mut rig = Rig::with(settings);
    let full = suffer(
        &mut rig,
        |asked, _| page(&["a", "b", "c"], &asked.to_string()),
        || stream(Silence),
    )
    .await;
    assert_eq!(
        full.as_deref(),
        Some("InvalidAnswer: the list has more than 50 objects")
    );
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_too_large_are_cut_off() {
    let mut rig = Rig::new();
    rig.settings.page_bytes = 1 << 20;
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    let body = piece.clone();
    let failure = suffer(
        &mut rig,
        move |_, _| stream(Endless(body.clone())),
        || stream(Silence),
    )
    .await;
    assert_eq!(
        failure.as_deref(),
        Some("TooLarge: the answer has more than 1048576 bytes")
    );
    let mut rig = Rig::new();
    let failure = suffer(
        &mut rig,
        |_, _| page(&["a"], ""),
        move || stream(Endless(piece.clone())),
    )
    .await;
    assert_eq!(
        failure.as_deref(),
        Some("TooLarge: the answer has more than 16777216 bytes")
    );
    assert_eq!(rig.rows().len(), 1, "rows stay");
}

#[tokio::test(start_paused = true)]
async fn garbage_is_an_error_and_rows_stay() {
    let mut rig = Rig::new();
    let garbage = || stream(Whole(Some(Bytes::from_static(b"<html>\n"))));
    let failure = suffer(&mut rig, |_, _| page(&["a", "b"], ""), garbage).await;
    assert_eq!(
        failure.as_deref(),
        Some("InvalidAnswer: an event of the watch is not JSON")
    );
    assert_eq!(rig.rows().len(), 2);
    let failure = suffer(
        &mut rig,
        |_, _| stream(Whole(Some(Bytes::from_static(b"{}")))),
        || {
            stream(Whole(Some(Bytes::from_static(
                b"{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n",
            ))))
        },
    )
    .await;
    assert_eq!(
        failure.as_deref(),
        Some("InvalidAnswer: a list has no resourceVersion")
    );
    assert_eq!(rig.rows().len(), 2, "a list that fails removes nothing");
}

#[tokio::test(start_paused = true)]
async fn bad_objects_are_left_out() {
    let mut rig = Rig::new();
    let bad = || {
        let good = value!({"metadata": {"name": "good", "namespace": "default", "uid": "u", "resourceVersion": "5"}});
        let nameless = value!({"metadata": {"uid": "u", "resourceVersion": "5"}});
        let forged = value!({"metadata": {"name": "a/b", "uid": "u", "resourceVersion": "5"}});
        let list = value!({"metadata": {"resourceVersion": "10"}, "items": [(good), (nameless), (forged), 7]});
        document(200, &list)
    };
    let failure = suffer(&mut rig, move |_, _| bad(), || stream(Silence)).await;
    assert_eq!(failure, None);
    assert_eq!(rig.rows().len(), 1);
    assert!(rig.reports.lock().contains(&Report::Skipped(3)));
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_opened_again() {
    let mut rig = Rig::new();
    let watches = Arc::new(AtomicUsize::new(0));
    let count = watches.clone();
    let asked = Arc::new(AtomicUsize::new(0));
    let list = |_: usize, _: Option<&str>| page(&["a"], "");
    let watch = move || {
        count.fetch_add(1, Ordering::Relaxed);
        stream(Silence)
    };
    rig.start(Arc::new(Liar { list, watch, asked }));
    tokio::time::sleep(Duration::from_secs(1000)).await;
    rig.stop().await;
    let opened = watches.load(Ordering::Relaxed);
    assert!((4..=7).contains(&opened), "{opened}");
}

#[tokio::test(start_paused = true)]
async fn events_that_go_backwards_lead_to_a_list() {
    let mut rig = Rig::new();
    let event = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"z\",\"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"3\"}}}\n";
    let backwards = move || stream(Whole(Some(Bytes::from_static(event.as_bytes()))));
    suffer(&mut rig, |_, _| page(&["a"], ""), backwards).await;
    assert!(rig.reports.lock().contains(&Report::Refilled));
    assert_eq!(rig.rows().len(), 1, "the event is not believed");
}

/// A member that sends the same stream whenever it is asked for the present state, and has one object in its lists.
struct Streamer<S> {
    stream: S,
    lists: AtomicUsize,
    streams: AtomicUsize,
}

impl<S: Fn() -> Answer + Send + Sync> MemberApi for Streamer<S> {
    fn get<'a>(
        &'a self,
        target: &'a str,
        _: &'a str,
        _: Duration,
    ) -> BoxFuture<'a, Result<Answer, MemberError>> {
        let query = query(target);
        let answer = match (
            query.contains_key("watch"),
            query.contains_key("sendInitialEvents"),
        ) {
            (_, true) => {
                self.streams.fetch_add(1, Ordering::Relaxed);
                (self.stream)()
            }
            (true, false) => stream(Silence),
            (false, false) => {
                self.lists.fetch_add(1, Ordering::Relaxed);
                page(&["a"], "")
            }
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Lines, and then nothing more.
struct Then(Vec<Bytes>, bool);

impl Pieces for Then {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        match self.0.is_empty() {
            false => {
                let piece = self.0.remove(0);
                Box::pin(std::future::ready(Some(Ok(piece))))
            }
            true if self.1 => Box::pin(std::future::ready(None)),
            true => Box::pin(std::future::pending()),
        }
    }
}

fn added(name: &str) -> Bytes {
    let object = value!({"metadata": {"name": name, "namespace": "default", "uid": (format!("u-{name}")), "resourceVersion": "5"}});
    line(&value!({"type": "ADDED", "object": object}))
}

fn line(event: &Value) -> Bytes {
    let mut line = event.to_json();
    line.push(b'\n');
    line.into()
}

#[tokio::test(start_paused = true)]
async fn a_state_whose_end_is_not_marked_is_listed() {
    let bookmark =
        line(&value!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}));
    let wrong = line(
        &value!({"type": "BOOKMARK", "object": {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}}),
    );
    let lies: [(Vec<Bytes>, bool); 5] = [
        (vec![added("x")], false),
        (vec![added("x")], true),
        (vec![added("x"), bookmark], false),
        (vec![added("x"), wrong], false),
        (vec![Bytes::from_static(b"<html>\n")], true),
    ];
    for (number, (lines, ends)) in lies.into_iter().enumerate() {
        let mut rig = Rig::new();
        let api = Arc::new(Streamer {
            stream: move || stream(Then(lines.clone(), ends)),
            lists: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        });
        rig.start(api.clone());
        tokio::time::sleep(Duration::from_secs(30)).await;
        rig.stop().await;
        assert_eq!(api.streams.load(Ordering::Relaxed), 1, "{number}");
        assert_eq!(api.lists.load(Ordering::Relaxed), 1, "{number}");
        let names: Vec<String> = rig.rows().into_keys().map(|key| key.1).collect();
        assert_eq!(names, ["a"], "{number}: what was not listed is removed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_without_an_end_is_an_error() {
    let mut settings = FleetSettings::default();
    settings.shelf.rows_per_member = 50;
    let mut rig = Rig::with(settings);
    let api = Arc::new(Streamer {
        stream: || stream(Endless(added("x"))),
        lists: AtomicUsize::new(0),
        streams: AtomicUsize::new(0),
    });
    rig.start(api.clone());
    tokio::time::sleep(Duration::from_secs(30)).await;
    rig.stop().await;
    assert_eq!(
        rig.last_failure().as_deref(),
        Some("InvalidAnswer: the list has more than 50 objects")
    );
    assert_eq!(api.lists.load(Ordering::Relaxed), 0);
    assert!(api.streams.load(Ordering::Relaxed) < 20, "there are pauses");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_drips_is_an_error() {
    /// One object every nine seconds.
    struct Drip(usize);
    impl Pieces for Drip {
        fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
            self.0 += 1;
            let name = format!("n{}", self.0);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(9)).await;
                Some(Ok(added(&name)))
            })
        }
    }
    let mut rig = Rig::with(FleetSettings::default());
    rig.start(Arc::new(Streamer {
        stream: || stream(Drip(0)),
        lists: AtomicUsize::new(0),
        streams: AtomicUsize::new(0),
    }));
    tokio::time::sleep(Duration::from_secs(100)).await;
    rig.stop().await;
    assert_eq!(
        rig.last_failure().as_deref(),
        Some("Unreachable: the member sends its objects too slowly")
    );
}
