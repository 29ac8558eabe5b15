//! The body of a watch: frames for events, bookmarks, and the end.
//!
//! There are many idle watches, so state that is only needed while events arrive is boxed or dropped.

use super::coalesced::Coalesced;
use super::frame::{Frames, Quick};
use super::start::{Start, watch_error};
use crate::bell::Bell;
use crate::flow::Seat;
use crate::request::body::BodyError;
use crate::server::state::Ending;
use crate::work::{self, Pace};
use bareboat_api::Status;
use bareboat_api::kind::BoxFuture;
use bareboat_storage::{Event, Snapshot, WatchError, Watcher};
use bytes::Bytes;
use http_body::Frame;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Target size of what is sent at once; coalescing events reduces the cost of each delivery.
pub(super) const FRAME: usize = 16 * 1024;
/// How many events are taken at once.
const BATCH: usize = 64;
/// Interval of bookmarks on an idle watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long before its end a watch sends a last bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// The body of a watch.
pub(super) struct WatchBody {
    frames: Arc<Frames>,
    stage: Stage,
    bookmarks: bool,
    until: Instant,
    /// Timer and shutdown are polled behind it, not at every event.
    bell: Bell,
    timer: Pin<Box<Sleep>>,
    ending: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether the columns of a table were sent; they are sent once.
    columns_told: bool,
    /// The seat that the watch began on, to charge its flow for the rest of the state.
    seat: Option<Arc<Seat>>,
}

enum Stage {
    /// Sending the initial state.
    Initial(Box<Initial>),
    /// Sending finished frames before going on.
    Queued(Box<Queued>),
    /// Making a frame that waits for a converter.
    Rendering(BoxFuture<'static, Rendered>),
    /// Waiting for events.
    Live(Watcher),
    /// Sending an ERROR event, then ending.
    Failed(Bytes),
    Ended,
}

struct Initial {
    snapshot: Snapshot,
    prefix: String,
    after: Option<String>,
    announce_end: bool,
    watcher: Watcher,
}

struct Queued {
    frames: VecDeque<Bytes>,
    next: Stage,
}

/// The result of a rendering: frames, and the next stage.
struct Rendered {
    frames: VecDeque<Bytes>,
    next: Stage,
    columns_told: bool,
}

impl WatchBody {
    pub(super) fn new(
        frames: Frames,
        start: Start,
        bookmarks: bool,
        until: Instant,
        ending: Ending,
    ) -> WatchBody {
        let mut retired = frames.served.retirement();
        let ending = Box::pin(async move {
            tokio::select! {
                () = ending.begun() => {}
                _ = retired.wait_for(|retired| *retired) => {}
            }
        });
        let stage = match start {
            Start::After(watcher) => Stage::Live(watcher),
            Start::Failed(status) => Stage::Failed(frames.error(&status)),
            Start::State {
                snapshot,
                prefix,
                announce_end,
                watcher,
            } => Stage::Initial(Box::new(Initial {
                snapshot,
                prefix,
                after: None,
                announce_end,
                watcher,
            })),
        };
        let mut body = WatchBody {
            frames: Arc::new(frames),
            stage,
            bookmarks,
            until,
            bell: Bell::new(),
            timer: Box::pin(tokio::time::sleep_until(until.into())),
            ending,
            columns_told: false,
            seat: None,
        };
        body.arm_timer(Instant::now());
        body
    }

    /// Makes the beginning of the state while the watch has its seat, then leaves the seat; says how many bytes wait to be
    /// sent. The rest is made as the client reads, and charged for.
    pub(super) async fn begin(&mut self, seat: Option<Arc<Seat>>) -> usize {
        let Some(seat) = seat else {
            return 0;
        };
        let mut held = 0;
        if matches!(self.stage, Stage::Initial(_))
            && let Stage::Initial(initial) = std::mem::replace(&mut self.stage, Stage::Ended)
        {
            let first = initial_frames(self.frames.clone(), initial, !self.columns_told).await;
            self.columns_told = first.columns_told;
            held = first.frames.iter().map(Bytes::len).sum();
            self.stage = Stage::Queued(Box::new(Queued {
                frames: first.frames,
                next: first.next,
            }));
        }
        seat.retire();
        // A watch that has sent its state has nothing to be charged for, and keeps nothing.
        let more = matches!(&self.stage, Stage::Queued(queued) if matches!(queued.next, Stage::Initial(_)));
        self.seat = more.then_some(seat);
        held
    }

    /// Sets the timer to the next bookmark or the end, whichever is first.
    fn arm_timer(&mut self, now: Instant) {
        let mut at = self.until;
        if self.bookmarks {
            let last = self
                .until
                .checked_sub(BOOKMARK_BEFORE_END)
                .unwrap_or(self.until);
            let next = now + BOOKMARK_EVERY;
            at = at.min(if now < last {
                next.min(last)
            } else {
                self.until
            });
        }
        self.timer.as_mut().reset(at.into());
    }

    /// Polls timer and shutdown; pending while neither is due.
    fn poll_clock(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(waker) = self.bell.rung(cx) else {
            return Poll::Pending;
        };
        let cx = &mut Context::from_waker(&waker);
        if !matches!(self.stage, Stage::Ended) && self.ending.as_mut().poll(cx).is_ready() {
            self.stage = Stage::Ended;
            return Poll::Ready(self.frames.farewell());
        }
        let mut struck = false;
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if now >= self.until {
                return Poll::Ready(None);
            }
            self.arm_timer(now);
            struck = true;
        }
        if struck
            && let Stage::Live(watcher) = &self.stage
            && let Ok(bytes) = (self.frames).bookmark(watcher.progress(), false, !self.columns_told)
        {
            self.columns_told = true;
            return Poll::Ready(Some(bytes));
        }
        Poll::Pending
    }

    /// Returns due events as bytes; falls back to a rendering that may wait.
    fn poll_live(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Stage::Live(watcher) = &mut self.stage else {
            return Poll::Pending;
        };
        let mut due: Vec<Arc<Event>> = Vec::new();
        loop {
            match watcher.poll_batch(cx, &mut due, BATCH) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(self.give_up(error)),
            }
            match quick_frames(&self.frames, &due) {
                Made::One(bytes) => return Poll::Ready(Some(bytes)),
                Made::Several(frames) => {
                    let next = std::mem::replace(&mut self.stage, Stage::Ended);
                    self.stage = Stage::Queued(Box::new(Queued { frames, next }));
                    return Poll::Ready(Some(Bytes::new()));
                }
                Made::Nothing => due.clear(),
                Made::Later => break,
            }
        }
        if let Stage::Live(watcher) = std::mem::replace(&mut self.stage, Stage::Ended) {
            let with_columns = !self.columns_told;
            let rendering = slow_frames(self.frames.clone(), due, with_columns, watcher);
            self.stage = self.frames.rendering(Box::pin(rendering));
        }
        Poll::Ready(Some(Bytes::new()))
    }

    /// Ends the watch. Slow clients get no message; other errors are sent as an ERROR event.
    fn give_up(&mut self, error: WatchError) -> Option<Bytes> {
        self.stage = Stage::Ended;
        match error {
            WatchError::Lagged | WatchError::Closed => None,
            other => Some(self.frames.error(&watch_error(other, 0))),
        }
    }
}

impl Frames {
    /// Returns a stage that makes frames, on another thread if that takes long.
    fn rendering(&self, rendering: BoxFuture<'static, Rendered>) -> Stage {
        let threads = self.threads.clone();
        Stage::Rendering(Box::pin(async move {
            threads.carry_out_boxed(None, rendering).await
        }))
    }
}

/// The result of making frames without waiting.
enum Made {
    /// One frame.
    One(Bytes),
    /// Several frames.
    Several(VecDeque<Bytes>),
    /// No event matches this watch.
    Nothing,
    /// An object must be converted.
    Later,
}

/// Encodes all events as frames, if none must be converted.
fn quick_frames(frames: &Frames, due: &[Arc<Event>]) -> Made {
    if let [event] = due {
        return match frames.quick(event) {
            Quick::Bytes(bytes) => {
                frames.meter.events.inc();
                Made::One(bytes)
            }
            Quick::Nothing => Made::Nothing,
            Quick::Later => Made::Later,
        };
    }
    let mut out = Coalesced::default();
    let mut sent = 0;
    for event in due {
        match frames.quick(event) {
            Quick::Bytes(bytes) => {
                sent += 1;
                out.push(bytes);
            }
            Quick::Nothing => {}
            Quick::Later => return Made::Later,
        }
    }
    frames.meter.events.inc_by(sent);
    let mut frames = out.finish();
    match frames.len() {
        0 => Made::Nothing,
        1 => Made::One(frames.pop_front().unwrap_or_default()),
        _ => Made::Several(frames),
    }
}

async fn slow_frames(
    frames: Arc<Frames>,
    due: Vec<Arc<Event>>,
    mut with_columns: bool,
    watcher: Watcher,
) -> Rendered {
    let mut out = Coalesced::default();
    let mut pace = Pace::new();
    for event in due {
        if pace.spend(event.entry.json().len()) {
            work::turn().await;
        }
        match frames.slow(&event, with_columns).await {
            Ok(Some(bytes)) => {
                with_columns = false;
                frames.meter.events.inc();
                out.push(bytes);
            }
            Ok(None) => {}
            // An event that cannot be rendered must not be skipped: the client's view would stay wrong.
            Err(status) => return failed(&frames, out, &status),
        }
    }
    Rendered {
        frames: out.finish(),
        next: Stage::Live(watcher),
        columns_told: !with_columns,
    }
}

async fn initial_frames(
    frames: Arc<Frames>,
    mut initial: Box<Initial>,
    mut with_columns: bool,
) -> Rendered {
    let mut out = Coalesced::default();
    let mut pace = Pace::new();
    loop {
        let after = initial.after.take();
        let batch: Vec<_> = initial
            .snapshot
            .range(&initial.prefix, after.as_deref())
            .take(BATCH)
            .cloned()
            .collect();
        let Some(last) = batch.last() else {
            break;
        };
        initial.after = Some(last.key().to_owned());
        if pace.spend(batch.len() * work::STEP) {
            work::turn().await;
        }
        for entry in batch {
            if frames.selection.matches_entry(&entry) {
                if pace.spend(frames.effort(&entry)) {
                    work::turn().await;
                }
                match frames.initial(&entry, with_columns).await {
                    Ok(Some(bytes)) => {
                        with_columns = false;
                        frames.meter.events.inc();
                        out.push(bytes);
                    }
                    Ok(None) => {}
                    Err(status) => return failed(&frames, out, &status),
                }
            }
            // Bounds what a client that does not read holds, however large the objects are.
            if out.size >= FRAME {
                initial.after = Some(entry.key().to_owned());
                return Rendered {
                    frames: out.finish(),
                    next: Stage::Initial(initial),
                    columns_told: !with_columns,
                };
            }
        }
    }
    if initial.announce_end {
        match frames.bookmark(initial.snapshot.revision(), true, with_columns) {
            Ok(bytes) => {
                with_columns = false;
                frames.meter.initial_sent();
                out.push(bytes);
            }
            Err(status) => return failed(&frames, out, &status),
        }
    }
    Rendered {
        frames: out.finish(),
        next: Stage::Live(initial.watcher),
        columns_told: !with_columns,
    }
}

/// Charges the flow of a watch for what it takes to make frames.
async fn charged(seat: Option<Arc<Seat>>, rendering: impl Future<Output = Rendered>) -> Rendered {
    let begun = Instant::now();
    let rendered = rendering.await;
    if let Some(seat) = seat {
        seat.charge(begun);
    }
    rendered
}

fn failed(frames: &Frames, mut out: Coalesced, status: &Status) -> Rendered {
    out.push(frames.error(status));
    Rendered {
        frames: out.finish(),
        next: Stage::Ended,
        columns_told: true,
    }
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            let bytes = match &mut this.stage {
                Stage::Ended => return Poll::Ready(None),
                Stage::Failed(bytes) => {
                    let bytes = std::mem::take(bytes);
                    this.stage = Stage::Ended;
                    Some(bytes)
                }
                Stage::Initial(_) => {
                    if let Stage::Initial(initial) =
                        std::mem::replace(&mut this.stage, Stage::Ended)
                    {
                        let with_columns = !this.columns_told;
                        let rendering = initial_frames(this.frames.clone(), initial, with_columns);
                        let rendering = charged(this.seat.clone(), rendering);
                        this.stage = this.frames.rendering(Box::pin(rendering));
                    }
                    continue;
                }
                Stage::Queued(queued) => {
                    let bytes = queued.frames.pop_front();
                    if queued.frames.is_empty() {
                        this.stage = std::mem::replace(&mut queued.next, Stage::Ended);
                    }
                    Some(bytes.unwrap_or_default())
                }
                Stage::Rendering(rendering) => match rendering.as_mut().poll(cx) {
                    Poll::Ready(Rendered {
                        frames,
                        next,
                        columns_told,
                    }) => {
                        this.columns_told = columns_told;
                        if !matches!(next, Stage::Initial(_)) {
                            this.seat = None;
                        }
                        this.stage = Stage::Queued(Box::new(Queued { frames, next }));
                        continue;
                    }
                    Poll::Pending => match this.poll_clock(cx) {
                        Poll::Ready(bytes) => bytes,
                        Poll::Pending => return Poll::Pending,
                    },
                },
                Stage::Live(_) => match this.poll_live(cx) {
                    Poll::Ready(bytes) => bytes,
                    Poll::Pending => match this.poll_clock(cx) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(bytes) => bytes,
                    },
                },
            };
            match bytes {
                None => {
                    this.stage = Stage::Ended;
                    return Poll::Ready(None);
                }
                Some(bytes) if bytes.is_empty() => continue,
                Some(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
            }
        }
    }
}
