//! The checker accepts a right history, and finds each of the bugs that are planted in it.
#![allow(clippy::unwrap_used)]

use bareboat_rig::history::{
    Epoch, Event, History, Operation, Outcome, Request, Row, Rule, Seen, Stream, Type, check,
};
use bareboat_rig::plan::Dice;

/// Makes the history of a server without bugs: three clients write five keys, read, list and watch.
struct Simulation {
    history: History,
    live: std::collections::BTreeMap<String, Seen>,
    dice: Dice,
    now: u64,
}

const START: u64 = 100;

impl Simulation {
    fn run(steps: u64) -> History {
        let mut simulation = Self {
            history: History {
                after: START,
                ..History::default()
            },
            live: std::collections::BTreeMap::new(),
            dice: Dice::new(7, 1),
            now: 0,
        };
        for n in 0..steps {
            simulation.step(n);
        }
        let last = simulation.last();
        for after in [START, START + 10] {
            let stream = simulation.watch(after, last);
            simulation.history.streams.push(stream);
        }
        simulation.history
    }

    fn last(&self) -> u64 {
        self.history.rows.last().map_or(START, |row| row.revision)
    }

    fn push(&mut self, client: usize, request: Request, outcome: Outcome) {
        self.now += 10;
        self.history.operations.push(Operation {
            client,
            ..operation(0, self.now, request, outcome)
        });
    }

    fn write(&mut self, key: &str, content: Option<String>) -> u64 {
        let revision = self.last() + 1;
        let prev = self.live.get(key).map_or(0, |seen| seen.revision);
        self.history.rows.push(Row {
            revision,
            prev,
            key: key.to_owned(),
            content: content.clone(),
        });
        match content {
            Some(content) => {
                let key = key.to_owned();
                let seen = Seen {
                    key: key.clone(),
                    revision,
                    content,
                };
                self.live.insert(key, seen);
            }
            None => drop(self.live.remove(key)),
        }
        revision
    }

    fn step(&mut self, n: u64) {
        let client = (n % 3) as usize;
        let key = format!("maps/k{}", self.dice.roll(5));
        let content = format!("c{n}");
        let found = self.live.get(&key).cloned();
        match (self.dice.roll(8), found) {
            (0, seen) => {
                let get = Request::Get {
                    key,
                    consistent: true,
                };
                self.push(client, get, Outcome::Found(seen));
            }
            (1, _) => {
                let listed = Outcome::Listed {
                    revision: self.last(),
                    objects: self.live.values().cloned().collect(),
                };
                let list = Request::List {
                    prefix: "maps/".to_owned(),
                    consistent: true,
                };
                self.push(client, list, listed);
            }
            (2, Some(seen)) => {
                self.write(&key, None);
                let delete = Request::Delete {
                    key,
                    found: seen.revision,
                };
                self.push(client, delete, Outcome::Written(None));
            }
            (3, Some(seen)) => {
                let stale = Request::Replace {
                    key: key.clone(),
                    content,
                    found: seen.revision - 1,
                };
                if self
                    .history
                    .rows
                    .iter()
                    .any(|row| row.revision == seen.revision - 1 && row.key == key)
                {
                    self.push(client, stale, Outcome::Conflict);
                }
            }
            (_, Some(seen)) => {
                let revision = self.write(&key, Some(content.clone()));
                let replace = Request::Replace {
                    key,
                    content,
                    found: seen.revision,
                };
                self.push(client, replace, Outcome::Written(Some(revision)));
            }
            (_, None) => {
                let revision = self.write(&key, Some(content.clone()));
                let create = Request::Create { key, content };
                self.push(client, create, Outcome::Written(Some(revision)));
            }
        }
    }

    fn watch(&self, after: u64, until: u64) -> Stream {
        let rows = &self.history.rows;
        let mut events = Vec::new();
        for row in rows.iter().filter(|row| row.revision > after) {
            let kind = match (&row.content, row.prev) {
                (None, _) => Type::Deleted,
                (_, 0) => Type::Added,
                _ => Type::Modified,
            };
            let before = rows.iter().find(|one| one.revision == row.prev);
            let content = row
                .content
                .clone()
                .or(before.and_then(|one| one.content.clone()));
            events.push(event(kind, &row.key, row.revision, &content.unwrap()));
            if row.revision % 7 == 0 {
                events.push(event(Type::Bookmark, "", row.revision, ""));
            }
        }
        Stream {
            prefix: "maps/".to_owned(),
            after,
            events,
            expired: false,
            until: Some(until),
        }
    }
}

fn event(kind: Type, key: &str, revision: u64, content: &str) -> Event {
    Event {
        kind,
        object: Seen {
            key: key.to_owned(),
            revision,
            content: content.to_owned(),
        },
    }
}

/// Returns the place of the `n`-th replacement that was done.
fn replaced(history: &History, n: usize) -> usize {
    let done = |one: &Operation| {
        matches!(one.request, Request::Replace { .. }) && matches!(one.outcome, Outcome::Written(_))
    };
    let all = history.operations.iter().enumerate();
    all.filter(|(_, one)| done(one)).nth(n).unwrap().0
}

fn rules(history: &History) -> Vec<Rule> {
    let mut rules: Vec<Rule> = check(history).into_iter().map(|one| one.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// Plants a bug and expects a rule to be broken.
fn finds(rule: Rule, plant: impl FnOnce(&mut History)) {
    let mut history = Simulation::run(200);
    plant(&mut history);
    let found = rules(&history);
    assert!(found.contains(&rule), "{rule:?} is not among {found:?}");
}

#[test]
fn a_right_history_is_accepted() {
    let history = Simulation::run(2000);
    assert_eq!(check(&history), Vec::new());
    let conflicts = history
        .operations
        .iter()
        .filter(|one| one.outcome == Outcome::Conflict);
    assert!(conflicts.count() > 10);
}

#[test]
fn lost_doubled_and_refused_writes_are_found() {
    finds(Rule::Kept, |history| {
        let at = replaced(history, 9);
        let Outcome::Written(Some(revision)) = history.operations[at].outcome else {
            unreachable!()
        };
        history.rows.retain(|row| row.revision != revision);
    });
    finds(Rule::Once, |history| {
        let mut again = history.rows[20].clone();
        again.revision = history.rows.last().unwrap().revision + 1;
        history.rows.push(again);
    });
    finds(Rule::RefusedIsAbsent, |history| {
        let at = replaced(history, 9);
        history.operations[at].outcome = Outcome::Refused;
    });
    finds(Rule::Consecutive, |history| {
        history.rows.remove(30);
    });
}

#[test]
fn a_broken_compare_and_swap_is_found() {
    finds(Rule::CompareAndSwap, |history| {
        let at = replaced(history, 12);
        let Request::Replace { found, .. } = &mut history.operations[at].request else {
            unreachable!()
        };
        *found -= 1;
    });
    // Two writers replaced the same version.
    finds(Rule::Chain, |history| {
        let at = history
            .rows
            .iter()
            .rposition(|row| row.prev > START)
            .unwrap();
        history.rows[at].prev -= 1;
    });
    finds(Rule::Conflict, |history| {
        // A creation is refused although the object never existed.
        let never = Request::Create {
            key: "maps/never".to_owned(),
            content: "never".to_owned(),
        };
        let refused = operation(0, 1_000_000, never, Outcome::Conflict);
        history.operations.push(refused);
    });
    finds(Rule::RealTime, |history| {
        let (early, late) = (replaced(history, 3), replaced(history, 20));
        let (begun, ended) = (
            history.operations[late].begun,
            history.operations[late].ended,
        );
        history.operations[early].begun = begun + 10;
        history.operations[early].ended = ended + 10;
    });
}

#[test]
fn stale_torn_and_future_reads_are_found() {
    let get = |history: &History| {
        let all = history.operations.iter().enumerate();
        let mut found = all.filter(|(_, one)| matches!(one.outcome, Outcome::Found(Some(_))));
        found.next_back().unwrap().0
    };
    finds(Rule::Read, |history| {
        // The version before the newest one.
        let at = get(history);
        let Request::Get { key, .. } = history.operations[at].request.clone() else {
            unreachable!()
        };
        let row = history.rows.iter().find(|row| row.key == key).unwrap();
        history.operations[at].outcome = Outcome::Found(Some(Seen {
            key,
            revision: row.revision,
            content: row.content.clone().unwrap(),
        }));
    });
    finds(Rule::Read, |history| {
        let at = get(history);
        history.operations[at].outcome = Outcome::Found(None);
    });
    finds(Rule::Read, |history| {
        let listed = |one: &&mut Operation| matches!(&one.outcome, Outcome::Listed { objects, .. } if objects.len() > 2);
        let list = history.operations.iter_mut().find(listed).unwrap();
        if let Outcome::Listed { objects, .. } = &mut list.outcome {
            objects.remove(1);
        }
    });
    finds(Rule::Read, |history| {
        // A state that was written after the answer.
        let at = get(history);
        history.operations[at].begun = 1;
        history.operations[at].ended = 2;
    });
    finds(Rule::Monotonic, |history| {
        let listed =
            |one: &&mut Operation| one.client == 0 && matches!(one.outcome, Outcome::Listed { .. });
        let list = history.operations.iter_mut().filter(listed).last().unwrap();
        if let Outcome::Listed { revision, .. } = &mut list.outcome {
            *revision = START;
        }
    });
}

#[test]
fn gaps_repetitions_and_disorder_of_watches_are_found() {
    let events = |history: &mut History| std::mem::take(&mut history.streams[0].events);
    finds(Rule::Complete, |history| {
        let mut all = events(history);
        all.remove(40);
        history.streams[0].events = all;
    });
    finds(Rule::Complete, |history| {
        // The watch stays silent at the end.
        history.streams[0].events.truncate(40);
    });
    finds(Rule::Ordered, |history| {
        let mut all = events(history);
        all.insert(41, all[40].clone());
        if all[41].kind == Type::Bookmark {
            all.insert(41, all[39].clone());
        }
        history.streams[0].events = all;
    });
    finds(Rule::Ordered, |history| {
        let mut all = events(history);
        all.retain(|one| one.kind != Type::Bookmark);
        all.swap(40, 41);
        history.streams[0].events = all;
    });
    finds(Rule::Event, |history| {
        let changed = |one: &&mut Event| one.kind == Type::Modified;
        let event = history.streams[0].events.iter_mut().find(changed).unwrap();
        event.kind = Type::Added;
    });
    finds(Rule::Event, |history| {
        let changed = |one: &&mut Event| one.kind == Type::Deleted;
        let event = history.streams[0].events.iter_mut().find(changed).unwrap();
        event.object.content = "another".to_owned();
    });
    finds(Rule::Bookmark, |history| {
        let mut all = events(history);
        let next = all[3].object.revision;
        all.insert(2, event(Type::Bookmark, "", next, ""));
        history.streams[0].events = all;
    });
}

/// Returns an operation of one client that takes little time.
fn operation(server: usize, begun: u64, request: Request, outcome: Outcome) -> Operation {
    Operation {
        client: 0,
        server,
        begun,
        ended: begun + 5,
        request,
        outcome,
    }
}

#[test]
fn epochs_end_streams_and_explain_lost_writes() {
    // The last five writes are lost by a declared promotion.
    let lose = |history: &mut History, declared: usize| {
        let lost = history.rows.split_off(history.rows.len() - 5);
        let (from, at) = (lost[0].revision - 1, lost[4].revision + (1 << 20));
        history.epochs.push(Epoch { at, from });
        history.declared_epochs = declared;
        history.rows.push(Row {
            revision: at,
            prev: 0,
            key: String::new(),
            content: Some("epoch".to_owned()),
        });
        for stream in &mut history.streams {
            stream.until = None;
            stream.expired = true;
        }
    };
    let mut history = Simulation::run(200);
    lose(&mut history, 1);
    assert_eq!(check(&history), Vec::new());
    finds(Rule::Undeclared, |history| lose(history, 0));
    finds(Rule::EpochEndsStreams, |history| {
        lose(history, 1);
        let at = history.epochs[0].at;
        let late = event(Type::Bookmark, "", at + 1, "");
        history.streams[0].events.push(late);
    });
    finds(Rule::Expired, |history| history.streams[0].expired = true);
    // A read of a lost version after the epoch was seen: wrong of any server, but a read that may be old is only wrong of a
    // server that has shown the epoch.
    let read = |history: &mut History, server, consistent| {
        let lost = history.rows.last().unwrap().clone();
        lose(history, 1);
        let at = history.epochs[0].at;
        let list = Request::List {
            prefix: "none/".to_owned(),
            consistent: true,
        };
        let listed = Outcome::Listed {
            revision: at,
            objects: Vec::new(),
        };
        let get = Request::Get {
            key: lost.key.clone(),
            consistent,
        };
        let seen = Seen {
            key: lost.key,
            revision: lost.revision,
            content: lost.content.unwrap_or_default(),
        };
        let got = Outcome::Found(Some(seen));
        for (server, begun, request, outcome) in
            [(0, 1_000_000, list, listed), (server, 2_000_000, get, got)]
        {
            let asked = operation(server, begun, request, outcome);
            history.operations.push(asked);
        }
    };
    finds(Rule::Read, |history| read(history, 0, true));
    finds(Rule::Read, |history| read(history, 1, true));
    finds(Rule::Read, |history| read(history, 0, false));
    let mut history = Simulation::run(200);
    read(&mut history, 1, false);
    assert_eq!(check(&history), Vec::new());
}

#[test]
fn a_deletion_that_was_lost_may_be_repeated() {
    let mut history = History {
        after: START,
        ..History::default()
    };
    let at = START + 2 + (1 << 20);
    let mut row = |revision, prev, key: &str, content: Option<&str>| {
        history.rows.push(Row {
            revision,
            prev,
            key: key.to_owned(),
            content: content.map(str::to_owned),
        });
    };
    row(START + 1, 0, "a", Some("1"));
    // The deletion of a is lost here.
    row(at, 0, "", Some("epoch"));
    row(at + 1, 0, "b", Some("2"));
    row(at + 2, START + 1, "a", None);
    let from = START + 1;
    history.epochs.push(Epoch { at, from });
    history.declared_epochs = 1;
    let create = |key: &str, content: &str| Request::Create {
        key: key.to_owned(),
        content: content.to_owned(),
    };
    let delete = || Request::Delete {
        key: "a".to_owned(),
        found: START + 1,
    };
    let steps = [
        (create("a", "1"), Outcome::Written(Some(START + 1))),
        (delete(), Outcome::Written(None)),
        (create("b", "2"), Outcome::Written(Some(at + 1))),
        (delete(), Outcome::Written(None)),
    ];
    for (n, (request, outcome)) in steps.into_iter().enumerate() {
        let begun = 10 * n as u64;
        let asked = operation(0, begun, request, outcome);
        history.operations.push(asked);
    }
    assert_eq!(check(&history), Vec::new());
    // Without an epoch between them, one of the two did not happen.
    history.operations[1].begun = 21;
    history.operations[1].ended = 26;
    assert!(rules(&history).contains(&Rule::Once));
}
