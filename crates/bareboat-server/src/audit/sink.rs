//! A sink: a bounded buffer of events and a task that writes them.

use super::Unwritten;
use super::metrics::AuditMetrics;
use bareboat_api::kind::BoxFuture;
use bareboat_audit::Event;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum bytes of buffered events.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of buffered events, whatever the settings are.
const MOST_EVENTS: usize = 1 << 20;
/// Maximum bytes of events written at once.
const BATCH_BYTES: usize = 10 << 20;

/// Whether requests wait for their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Events are buffered and written later; events that do not fit in the buffer are dropped and counted.
    #[default]
    Batch,
    /// A request waits until its events are written. If writing fails, the request continues.
    Blocking,
    /// The same, but a request is refused if the event of its arrival cannot be written.
    BlockingStrict,
}

/// Settings of buffers and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Maximum number of buffered events.
    pub buffer: usize,
    /// Maximum number of events written at once.
    pub size: usize,
    /// The maximum time a batch is held for further events; zero writes at once. A batch that a request waits for is
    /// never held.
    pub wait: Duration,
}

impl Default for Batching {
    fn default() -> Batching {
        Batching {
            buffer: 10_000,
            size: 400,
            wait: Duration::ZERO,
        }
    }
}

/// Writes events. Retries temporary failures, and logs permanent ones.
pub(super) trait Writer: Send + Sync + 'static {
    fn write(&self, events: Vec<Arc<Event>>) -> BoxFuture<'_, Result<(), String>>;
}

/// A destination of events.
pub(super) struct Sink {
    name: &'static str,
    mode: Mode,
    to: Sender<Message>,
    /// Started with the first event, because that needs a runtime.
    worker: Mutex<Option<Worker>>,
    /// Limits the bytes of buffered events.
    bytes: Arc<Semaphore>,
    metrics: AuditMetrics,
}

enum Message {
    Event(Waiting),
    /// Answered when all earlier events are written.
    Flush(oneshot::Sender<()>),
}

/// A buffered event, and its share of the buffer.
struct Waiting {
    event: Arc<Event>,
    weight: usize,
    written: Option<oneshot::Sender<bool>>,
    _bytes: OwnedSemaphorePermit,
}

struct Worker {
    name: &'static str,
    from: Receiver<Message>,
    batching: Batching,
    writer: Arc<dyn Writer>,
    metrics: AuditMetrics,
}

impl Sink {
    pub(super) fn new(
        name: &'static str,
        mode: Mode,
        batching: Batching,
        writer: impl Writer,
        metrics: AuditMetrics,
    ) -> Sink {
        let (to, from) = channel(batching.buffer.clamp(1, MOST_EVENTS));
        let worker = Worker {
            name,
            from,
            batching,
            writer: Arc::new(writer),
            metrics: metrics.clone(),
        };
        Sink {
            name,
            mode,
            to,
            worker: Mutex::new(Some(worker)),
            bytes: Arc::new(Semaphore::new(MOST_BYTES)),
            metrics,
        }
    }

    fn start(&self) {
        let mut worker = self.worker.lock();
        if let (Some(_), Ok(runtime)) = (&*worker, tokio::runtime::Handle::try_current())
            && let Some(worker) = worker.take()
        {
            runtime.spawn(worker.run());
        }
    }

    /// Takes an event; waits until it is written in a blocking mode.
    pub(super) async fn take(&self, event: Arc<Event>) -> Result<(), Unwritten> {
        if self.mode == Mode::Batch {
            self.take_later(event);
            return Ok(());
        }
        self.start();
        let weight = event.weight().min(MOST_BYTES);
        let bytes = self.bytes.clone().acquire_many_owned(permits(weight));
        let Ok(bytes) = bytes.await else {
            return Ok(());
        };
        let (written, is_written) = oneshot::channel();
        let waiting = Waiting {
            event,
            weight,
            written: Some(written),
            _bytes: bytes,
        };
        let sent = self.to.send(Message::Event(waiting)).await.is_ok();
        let is_written = sent && is_written.await.unwrap_or(false);
        match is_written || self.mode == Mode::Blocking {
            true => Ok(()),
            false => Err(Unwritten),
        }
    }

    /// Takes an event without waiting; drops it if there is no room.
    pub(super) fn take_later(&self, event: Arc<Event>) {
        self.start();
        let weight = event.weight().min(MOST_BYTES);
        let bytes = self.bytes.clone().try_acquire_many_owned(permits(weight));
        let Ok(bytes) = bytes else {
            return self.metrics.failed(self.name, 1);
        };
        let waiting = Waiting {
            event,
            weight,
            written: None,
            _bytes: bytes,
        };
        if self.to.try_send(Message::Event(waiting)).is_err() {
            self.metrics.failed(self.name, 1);
        }
    }

    /// Waits until everything taken so far is written.
    pub(super) async fn flush(&self) {
        if self.worker.lock().is_some() {
            // There was no event yet.
            return;
        }
        let (done, is_done) = oneshot::channel();
        if self.to.send(Message::Flush(done)).await.is_ok() {
            let _ = is_done.await;
        }
    }
}

fn permits(weight: usize) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

impl Worker {
    async fn run(mut self) {
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(message) => Some(message),
                None => self.from.recv().await,
            };
            match first {
                None => return,
                Some(Message::Flush(done)) => drop(done.send(())),
                Some(Message::Event(first)) => {
                    let batch;
                    (batch, next) = self.collect(first).await;
                    self.write(batch).await;
                }
            }
        }
    }

    /// Returns the batch that starts with an event, and the message after it. A blocked request does not wait for a
    /// batch to fill.
    async fn collect(&mut self, first: Waiting) -> (Vec<Waiting>, Option<Message>) {
        let until = tokio::time::Instant::now() + self.batching.wait;
        let mut bytes = first.weight;
        let mut patient = first.written.is_none() && !self.batching.wait.is_zero();
        let mut batch = vec![first];
        while batch.len() < self.batching.size && bytes < BATCH_BYTES {
            let message = match self.from.try_recv() {
                Ok(message) => message,
                Err(_) if !patient => break,
                Err(_) => match tokio::time::timeout_at(until, self.from.recv()).await {
                    Ok(Some(message)) => message,
                    Ok(None) | Err(_) => break,
                },
            };
            match message {
                Message::Event(waiting) => {
                    bytes += waiting.weight;
                    patient &= waiting.written.is_none();
                    batch.push(waiting);
                }
                flush => return (batch, Some(flush)),
            }
        }
        (batch, None)
    }

    async fn write(&self, batch: Vec<Waiting>) {
        let events = batch.iter().map(|waiting| waiting.event.clone()).collect();
        let outcome = self.writer.write(events).await;
        if let Err(why) = &outcome {
            self.metrics.failed(self.name, batch.len());
            tracing::error!(
                sink = self.name,
                events = batch.len(),
                %why,
                "audit events could not be written"
            );
        }
        for written in batch.into_iter().filter_map(|waiting| waiting.written) {
            let _ = written.send(outcome.is_ok());
        }
    }
}

#[cfg(test)]
mod tests;
