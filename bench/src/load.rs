//! The load: a number of clients, each on its own connection, send a number of requests. The server's processor time is
//! read before and after. `rows` decides about the requests.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures_util::future::try_join_all;

use crate::credentials::Access;
use crate::http1::{self, Connection};
use crate::http2;
use crate::server::Server;

/// Size of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Concurrent clients.
    pub(crate) clients: usize,
    /// Total number of requests.
    pub(crate) operations: usize,
    /// No request starts after this time.
    pub(crate) limit: Duration,
    /// Size of each client's read buffer.
    pub(crate) buffer: usize,
}

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Number of successful requests.
    pub(crate) operations: usize,
    /// Time from the first request to the last response.
    pub(crate) elapsed: Duration,
    /// The server's processor time.
    pub(crate) cpu: Duration,
    /// Total size of all bodies.
    pub(crate) bytes: u64,
    latencies: Vec<Duration>,
}

impl Outcome {
    /// Returns microseconds of the server's processor time per request.
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations.max(1) as f64
    }

    /// Returns requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the latency percentile in microseconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.latencies
            .get(at)
            .map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
    }
}

/// State shared by the clients of one load; all run on one thread.
struct Progress {
    load: Load,
    begun: Instant,
    next: Cell<usize>,
    bytes: Cell<u64>,
    latencies: RefCell<Vec<Duration>>,
}

impl Progress {
    fn new(load: Load) -> Self {
        let latencies = RefCell::new(Vec::with_capacity(load.operations.min(1 << 20)));
        Self {
            load,
            begun: Instant::now(),
            next: Cell::new(0),
            bytes: Cell::new(0),
            latencies,
        }
    }

    /// Returns the number of the next request, if there is one.
    fn claim(&self) -> Option<usize> {
        let at = self.next.get();
        self.next.set(at + 1);
        (at < self.load.operations && self.begun.elapsed() < self.load.limit).then_some(at)
    }

    fn done(&self, begun: Instant, length: u64) {
        self.latencies.borrow_mut().push(begun.elapsed());
        self.bytes.set(self.bytes.get() + length);
    }

    fn outcome(self, cpu: Duration) -> Outcome {
        let elapsed = self.begun.elapsed();
        let mut latencies = self.latencies.into_inner();
        latencies.sort_unstable();
        Outcome {
            operations: latencies.len(),
            elapsed,
            cpu,
            bytes: self.bytes.get(),
            latencies,
        }
    }
}

impl Load {
    /// Sends `request(0)`, `request(1)`… over HTTP/1.1; an error response ends the load.
    pub(crate) async fn run(
        self,
        server: &Server,
        request: impl Fn(usize) -> Vec<u8>,
    ) -> Result<Outcome> {
        self.run_as(server, &server.access, request).await
    }

    /// Sends them over connections with other credentials than the administrator's.
    pub(crate) async fn run_as(
        self,
        server: &Server,
        access: &Access,
        request: impl Fn(usize) -> Vec<u8>,
    ) -> Result<Outcome> {
        let hello = http1::request(access, "GET", "/version", "", b"");
        let mut connections = try_join_all((0..self.clients).map(|_| async {
            let mut connection = Connection::open(access, self.buffer).await?;
            connection.send(&hello).await?;
            anyhow::Ok(connection)
        }))
        .await?;
        let before = server.cpu()?;
        let progress = Progress::new(self);
        let client = async |connection: &mut Connection| -> Result<()> {
            while let Some(at) = progress.claim() {
                let bytes = request(at);
                let begun = Instant::now();
                let answer = connection.send(&bytes).await?;
                if !(200..300).contains(&answer.status) {
                    bail!(
                        "status {}: {}",
                        answer.status,
                        String::from_utf8_lossy(&answer.body)
                    );
                }
                progress.done(begun, answer.length);
            }
            Ok(())
        };
        try_join_all(connections.iter_mut().map(client)).await?;
        let cpu = server.cpu()?.since(before);
        Ok(progress.outcome(cpu))
    }

    /// Repeats GET `path` over HTTP/2.
    pub(crate) async fn run_h2(self, server: &Server, path: &str) -> Result<Outcome> {
        let mut connections = try_join_all((0..self.clients).map(|_| async {
            let mut connection = http2::Connection::open(&server.access).await?;
            connection.get("/version").await?;
            anyhow::Ok(connection)
        }))
        .await?;
        let before = server.cpu()?;
        let progress = Progress::new(self);
        let client = async |connection: &mut http2::Connection| -> Result<()> {
            while progress.claim().is_some() {
                let begun = Instant::now();
                let (status, length) = connection.get(path).await?;
                if status != 200 {
                    bail!("status {status}");
                }
                progress.done(begun, length);
            }
            Ok(())
        };
        try_join_all(connections.iter_mut().map(client)).await?;
        let cpu = server.cpu()?.since(before);
        Ok(progress.outcome(cpu))
    }
}
