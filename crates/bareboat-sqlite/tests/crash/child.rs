//! The child process: writes until it is killed or its log fails, and prints every request and
//! answer on its stdout.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bareboat_sqlite::{Sqlite, SqliteOptions};
use bareboat_storage::{CommitError, Expect, Store, Write};

use crate::check::options;

const FILE: &str = "BAREBOAT_CRASH_TEST_FILE";
const WRITERS: u64 = 16;

/// A running child.
pub(crate) struct Work {
    pub(crate) child: Child,
    pub(crate) lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Work {
    /// Starts a child on a file. `round` makes its writes differ from those of other rounds.
    pub(crate) fn start(path: &Path, round: u64, environment: &[(&str, String)]) -> Work {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child::child_that_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(FILE, format!("{}#{round}", path.display()))
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Work { child, lines }
    }

    /// Reads lines until `answers` writes were acknowledged, then kills the child while it works. Returns all lines of
    /// the child.
    pub(crate) fn killed_after(mut self, answers: u64) -> Vec<String> {
        let mut said = Vec::new();
        let mut seen = 0;
        while seen < answers {
            let line = self.lines.next().expect("it writes until it is killed");
            let line = line.unwrap();
            seen += u64::from(line.starts_with("put ") || line.starts_with("del "));
            said.push(line);
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        said.extend(self.lines.map_while(Result::ok));
        said
    }
}

fn object(key: &str, round: u64, n: u64) -> bytes::Bytes {
    let padding = "p".repeat(200 + (n as usize * 37) % 900);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{key}"}},"data":{{"w":"{round}.{n}","p":"{padding}"}}}}"#
    )
    .into()
}

#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var(FILE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    // The test harness may have printed the beginning of a line.
    println!();
    runtime.block_on(async {
        let (path, round) = path.rsplit_once('#').unwrap();
        let round: u64 = round.parse().unwrap();
        // Small limits, so that checkpoints and compaction always run.
        let file = SqliteOptions {
            checkpoint_bytes: 128 << 10,
            checkpoint_limit_bytes: 1 << 20,
            reserve_bytes: 256 << 10,
            ..SqliteOptions::default()
        };
        let backend = match Sqlite::open_with(path, file) {
            Ok(backend) => Arc::new(backend),
            Err(error) => return println!("not opened: {error:?}"),
        };
        let store = match Store::open(backend, options()) {
            Ok(store) => store,
            Err(error) => return println!("not loaded: {error:?}"),
        };
        println!("open");
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(store.clone(), writer, round)))
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        println!("over: {}", store.poison().unwrap_or_default());
    });
}

/// Runs one writer, which sends one request at a time.
async fn write(store: Store, writer: u64, round: u64) {
    let resource = store.resource("core/configmaps");
    for n in 0u64.. {
        let key = format!("w{writer}/k{}", n % 5);
        let n = n * WRITERS + writer;
        let found = resource.get(&key).filter(|_| n.is_multiple_of(7));
        let write = match &found {
            Some(found) => Write::delete(&resource, found),
            None => Write::create(&resource, &*key, object(&key, round, n)).expecting(Expect::Any),
        };
        // Print before the request: every state that is found later must have been requested.
        match &found {
            Some(_) => println!("ask {key} -"),
            None => println!("ask {key} {round}.{n}"),
        }
        match store.commit(write).await {
            Ok(done) if found.is_some() => println!("del {key} {}", done.revision),
            Ok(done) => println!("put {key} {} {round}.{n}", done.revision),
            Err(CommitError::Full | CommitError::ReadOnly | CommitError::Busy) => {
                println!("ref {key}");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Err(CommitError::Unknown(_)) => return println!("unk {key}"),
            Err(CommitError::Poisoned(_)) => return println!("ref {key}"),
            Err(error) => panic!("{error:?}"),
        }
    }
}
