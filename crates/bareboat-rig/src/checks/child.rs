//! Checks of writers that are killed or stopped: a child process, which is this test program, writes pairs of objects.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bareboat_storage::{Expect, Store, Write};

use super::{FRESH, RESOURCE, Shared, number, object, open, run};
use crate::plan;

/// The address of the store and the number of the round.
const WORK: &str = "BAREBOAT_RIG_CHILD";
/// The second resource of each pair.
const OTHER: &str = "core/secrets";

/// A child process that writes.
struct Writer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(url: &str, round: u64) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "checks::child_that_writes_until_it_is_killed"])
            .arg("--nocapture")
            .env(WORK, format!("{round} {url}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// Returns the next pair that was acknowledged: its key and its revision.
    fn next(&mut self) -> (String, u64) {
        loop {
            let line = self.lines.next().expect("it writes on").unwrap();
            if let Some(pair) = parse(&line) {
                return pair;
            }
        }
    }

    fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.args([format!("-{name}"), self.process.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }

    /// Kills the child; returns what it had still said.
    fn kill(mut self) -> Vec<(String, u64)> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let rest = self.lines.map_while(Result::ok);
        rest.filter_map(|line| parse(&line)).collect()
    }
}

fn parse(line: &str) -> Option<(String, u64)> {
    let (key, revision) = line.strip_prefix("pair ")?.split_once(' ')?;
    Some((key.to_owned(), revision.parse().ok()?))
}

/// What the child does: writes pairs in one transaction each, and prints each one that is acknowledged. Does nothing if
/// this process is not a child.
pub fn write_until_killed(database: &dyn Shared) {
    let Ok(work) = std::env::var(WORK) else {
        return;
    };
    let (round, url) = work.split_once(' ').unwrap();
    // The child ends with its parent.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        #[expect(
            clippy::disallowed_methods,
            reason = "a child that is killed closes nothing"
        )]
        std::process::exit(0);
    });
    // The test harness may have printed the beginning of a line.
    println!();
    run(async {
        let store = Store::open(database.open(url), Default::default()).unwrap();
        let (one, other) = (store.resource(RESOURCE), store.resource(OTHER));
        let mut tasks = Vec::new();
        for task in 0..4 {
            let (store, one, other) = (store.clone(), one.clone(), other.clone());
            let round = round.to_owned();
            tasks.push(tokio::spawn(async move {
                for n in 0.. {
                    let key = format!("{round}-{task}-{}", n % 40);
                    let pair = vec![
                        Write::create(&one, key.clone(), object(n)).expecting(Expect::Any),
                        Write::create(&other, key.clone(), object(n)).expecting(Expect::Any),
                    ];
                    let done = store.commit_many(pair).await.unwrap();
                    println!("pair {key} {}", done[1].revision);
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Checks that both objects of each pair have the same content, and that acknowledged pairs exist.
fn check_pairs(store: &Store, acknowledged: &BTreeMap<String, u64>) {
    let (one, other) = (store.resource(RESOURCE), store.resource(OTHER));
    assert_eq!(one.len(), other.len());
    for entry in one.snapshot().range("", None) {
        let twin = other.get(entry.key()).expect("both or none");
        assert_eq!(twin.revision(), entry.revision() + 1, "{}", entry.key());
        assert_eq!(number(twin.json()), number(entry.json()));
    }
    for (key, revision) in acknowledged {
        // A later write of the key may have been stored before its answer.
        let found = other.get(key).expect("acknowledged");
        assert!(found.revision() >= *revision, "{key} at {revision} is lost");
    }
}

/// A process that writes pairs in transactions is killed again and again.
pub fn a_killed_writer_leaves_whole_transactions(database: &dyn Shared) {
    let url = database.url(database.port(), "pairs");
    let open = || open(database, database.port(), "pairs");
    let store = (!database.is_exclusive()).then(open);
    let mut acknowledged = BTreeMap::new();
    let rounds = plan::count(4, 200);
    for round in 0..rounds {
        let mut writer = Writer::start(&url, round);
        for _ in 0..5 + round * 7 % 60 {
            acknowledged.extend([writer.next()]);
        }
        acknowledged.extend(writer.kill());
        run(async {
            match &store {
                Some(store) => {
                    assert!(store.freshen(FRESH).await.unwrap());
                    check_pairs(store, &acknowledged);
                }
                None => {
                    let store = open();
                    check_pairs(&store, &acknowledged);
                    store.close().await;
                }
            }
        });
    }
    println!("{rounds} kills, {} keys acknowledged", acknowledged.len());
    run(async {
        if let Some(store) = &store {
            store.close().await;
        }
        let again = open();
        check_pairs(&again, &acknowledged);
        again.close().await;
    });
}

/// A process is stopped in the middle of its writes. Meanwhile the log grows and is compacted above everything that the
/// process knows. When it continues, its writes are decided again.
pub fn a_stopped_writer_writes_nothing_into_the_past(database: &dyn Shared) {
    let url = database.url(database.port(), "stopped");
    let store = open(database, database.port(), "stopped");
    let mut writer = Writer::start(&url, 0);
    let mut acknowledged = BTreeMap::new();
    for _ in 0..plan::count(3, 50) {
        for _ in 0..20 {
            acknowledged.extend([writer.next()]);
        }
        writer.signal("STOP");
        // It may have held the log, which the database takes away from it after a while.
        run(async {
            let resource = store.resource("core/pods");
            for n in 0..30 {
                let write = Write::create(&resource, "a", object(n)).expecting(Expect::Any);
                store.commit(write).await.unwrap();
            }
            store.compact(store.visible()).await.unwrap();
        });
        let floor = store.floor();
        writer.signal("CONT");
        // What was printed before it was stopped comes first.
        let mut later = 0;
        while later < 10 {
            let (key, revision) = writer.next();
            later += u64::from(revision > floor);
            acknowledged.insert(key, revision);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    acknowledged.extend(writer.kill());
    run(async {
        assert!(store.freshen(FRESH).await.unwrap());
        check_pairs(&store, &acknowledged);
        let last = store.resource("core/pods").get("a").unwrap();
        assert_eq!(number(last.json()), 29);
        store.close().await;
        let again = open(database, database.port(), "stopped");
        check_pairs(&again, &acknowledged);
        again.close().await;
    });
}
