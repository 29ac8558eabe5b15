//! The other client: it reads, writes and checks health continuously, and records how long it waits.

use crate::client::{Caller, Connection};
use crate::victim::Victim;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Shorter waits never fail a test: this is a debug build on a busy machine.
const FLOOR: Duration = Duration::from_millis(2500);
/// How many times its quiet 99th percentile the other client may wait.
const PATIENCE: u32 = 50;

const PATH: &str = "/api/v1/namespaces/default/configmaps/pulse";

/// The usual waits of the other client.
pub(crate) struct Pulse {
    usual: Duration,
}

/// The other client while it runs.
pub(crate) struct Beating {
    usual: Duration,
    stop: Arc<AtomicBool>,
    work: JoinHandle<Vec<Wait>>,
}

/// The duration of one request.
struct Wait {
    what: &'static str,
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
        let mut waits: Vec<_> = (0..100).flat_map(|beat| client.beat(beat)).collect();
        waits.sort_by_key(|wait| wait.took);
        Pulse {
            usual: waits[waits.len() * 99 / 100].took,
        }
    }

    /// Runs until `never_waited` is called.
    pub(crate) fn beats(self, victim: &Victim) -> Beating {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mut client) = (Arc::clone(&stop), Client::new(victim));
        let work = spawn(move || {
            let mut waits = Vec::new();
            let mut beat = 0;
            while !stopped.load(Ordering::Relaxed) {
                waits.extend(client.beat(beat));
                beat += 1;
                sleep(Duration::from_millis(5));
            }
            waits
        });
        Beating {
            usual: self.usual,
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
        let worst = waits.iter().max_by_key(|wait| wait.took).expect("it began");
        let bound = FLOOR.max(self.usual * PATIENCE);
        println!(
            "{} beats, usual {:?}, worst {:?} ({})",
            waits.len(),
            self.usual,
            worst.took,
            worst.what
        );
        assert!(
            worst.took <= bound,
            "another client waited {:?} for {}, at most {bound:?} is allowed (its usual 99th percentile is {:?})",
            worst.took,
            worst.what,
            self.usual
        );
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
        let mut waits = vec![self.timed("a read", "GET", b"")];
        if beat.is_multiple_of(5) {
            let patch = format!(r#"{{"data":{{"beat":"{beat}"}}}}"#);
            waits.push(self.timed("a write", "PATCH", patch.as_bytes()));
        }
        if beat.is_multiple_of(10) {
            let from = Instant::now();
            let health = self.stranger.get("/livez");
            assert_eq!(health.code, 200, "{}", health.text());
            waits.push(Wait {
                what: "health",
                took: from.elapsed(),
            });
        }
        waits
    }

    fn timed(&mut self, what: &'static str, method: &str, body: &[u8]) -> Wait {
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
                    assert!(tries < 3, "{what}: {error}");
                    self.connection = self.admin.connect().unwrap();
                }
            }
        };
        assert_eq!(answer.code, 200, "{what}: {}", answer.text());
        Wait {
            what,
            took: from.elapsed(),
        }
    }
}
