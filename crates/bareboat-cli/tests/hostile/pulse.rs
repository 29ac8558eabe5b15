//! The other client: it reads, writes and checks health continuously, and records how long it waits.

use crate::client::{Caller, Connection};
use crate::victim::Victim;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Other clients wait at most this long, unless their quiet waits are long as well. Most requests take less than ten
/// milliseconds; of all attacks but those named below, also on one core beside a busy loop, the worst wait was 0.3 s.
/// The stalls that this suite was made for took 2.1 s and more. Each is a single wait of a client that sends one request
/// after the other, so the worst one counts: no quantile would show it.
const FLOOR: Duration = Duration::from_millis(1500);
/// A write to a disk also waits for whatever else writes there, and the attack itself may fill the disk's queue.
const DISK_FLOOR: Duration = Duration::from_millis(2500);
/// A new connection also waits for the silent ones before it, where few files make few places: each batch of them keeps
/// its places for 100 ms. The system may drop the first attempt, too, which is repeated after a second.
const QUEUE_FLOOR: Duration = Duration::from_millis(2500);
/// How many times its quiet 99th percentile a request may take, where this is more than the floor: then the machine is
/// slow, because the quiet waits were measured on it just before.
const PATIENCE: u32 = 25;
/// The median may be this part of the longest allowed wait, so that many shorter waits do not pass as harmless.
const MEDIAN: u32 = 4;

const PATH: &str = "/api/v1/namespaces/default/configmaps/pulse";

/// A type of request of the other client; each is judged by its own quiet waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// Needs no disk.
    Read,
    Write,
    /// A health check without credentials over a new connection, so that it includes a handshake.
    Health,
}

/// The waits of one type of request, sorted.
struct Waits(Vec<Duration>);

impl Waits {
    fn of(what: What, all: &[Wait]) -> Waits {
        let mut found: Vec<_> = all
            .iter()
            .filter(|wait| wait.what == what)
            .map(|wait| wait.took)
            .collect();
        found.sort_unstable();
        Waits(found)
    }

    fn quantile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

/// The usual waits of the other client.
pub(crate) struct Pulse {
    quiet: Vec<Wait>,
    on_disk: bool,
    few_files: bool,
}

/// The other client while it runs.
pub(crate) struct Beating {
    usual: Pulse,
    stop: Arc<AtomicBool>,
    work: JoinHandle<Vec<Wait>>,
}

/// The duration of one request.
struct Wait {
    what: What,
    took: Duration,
}

impl Pulse {
    /// Measures the usual waits while no other client calls.
    pub(crate) fn quiet(victim: &Victim) -> Pulse {
        let object = json!({"metadata": {"name": "pulse"}, "data": {"beat": "0"}});
        let made = victim
            .admin
            .post("/api/v1/namespaces/default/configmaps", &object);
        assert!([201, 409].contains(&made.code), "{}", made.text());
        let mut client = Client::new(victim);
        Pulse {
            quiet: (0..200).flat_map(|beat| client.beat(beat)).collect(),
            on_disk: victim.on_disk,
            few_files: victim.few_files,
        }
    }

    /// Runs until `never_waited` is called.
    pub(crate) fn beats(self, victim: &Victim) -> Beating {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut client) = (Arc::clone(&stop), Client::new(victim));
        let work = spawn(move || {
            let mut waits = Vec::new();
            let mut beat = 0;
            // One beat has every type of request.
            while beat == 0 || !stopped.load(Ordering::Relaxed) {
                waits.extend(client.beat(beat));
                beat += 1;
                sleep(Duration::from_millis(5));
            }
            waits
        });
        Beating {
            usual: self,
            stop,
            work,
        }
    }
}

impl Beating {
    /// Stops, and fails if any request waited too long.
    pub(crate) fn never_waited(self) {
        self.stop.store(true, Ordering::Relaxed);
        let waits = self.work.join().expect("the other client is answered");
        for what in [What::Read, What::Write, What::Health] {
            let usual = Waits::of(what, &self.usual.quiet).quantile(99);
            let waits = Waits::of(what, &waits);
            let (median, worst) = (waits.quantile(50), waits.quantile(100));
            let floor = match what {
                What::Write if self.usual.on_disk => DISK_FLOOR,
                What::Health if self.usual.few_files => QUEUE_FLOOR,
                _ => FLOOR,
            };
            let bound = floor.max(usual * PATIENCE);
            println!(
                "{what:?}: {} waits, usual {usual:?}, median {median:?}, worst {worst:?}",
                waits.0.len()
            );
            assert!(
                worst <= bound && median <= bound / MEDIAN,
                "another client waited {worst:?} for a {what:?} and half of the times {median:?}; {bound:?} and a \
                 fourth of it are allowed (its quiet 99th percentile is {usual:?})"
            );
        }
    }
}

struct Client {
    admin: Caller,
    stranger: Caller,
    connection: Connection,
}

impl Client {
    fn new(victim: &Victim) -> Client {
        Client {
            admin: victim.admin.clone(),
            stranger: victim.stranger.clone(),
            connection: victim.admin.connect().unwrap(),
        }
    }

    /// Sends a read; now and then also a write, and a health check on a new connection.
    fn beat(&mut self, beat: usize) -> Vec<Wait> {
        let mut waits = vec![self.timed(What::Read, "GET", b"")];
        if beat.is_multiple_of(5) {
            let patch = format!(r#"{{"data":{{"beat":"{beat}"}}}}"#);
            waits.push(self.timed(What::Write, "PATCH", patch.as_bytes()));
        }
        if beat.is_multiple_of(10) {
            let from = Instant::now();
            let health = self.stranger.get("/livez");
            assert_eq!(health.code, 200, "{}", health.text());
            waits.push(Wait {
                what: What::Health,
                took: from.elapsed(),
            });
        }
        waits
    }

    fn timed(&mut self, what: What, method: &str, body: &[u8]) -> Wait {
        let from = Instant::now();
        let mut tries = 0;
        let answer = loop {
            let sent = self
                .connection
                .send(method, PATH, "application/merge-patch+json", body);
            match sent.and_then(|()| self.connection.receive()) {
                Ok(answer) => break answer,
                // A connection may fail once; the next one must not.
                Err(error) => {
                    tries += 1;
                    assert!(tries < 3, "{what:?}: {error}");
                    self.connection = self.admin.connect().unwrap();
                }
            }
        };
        assert_eq!(answer.code, 200, "{what:?}: {}", answer.text());
        Wait {
            what,
            took: from.elapsed(),
        }
    }
}
