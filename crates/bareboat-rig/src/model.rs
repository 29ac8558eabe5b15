//! The protocol of appends as a state machine that is small enough to explore completely.
//!
//! Two writers append batches of one record to one key. Requests are delivered late and twice, answers are lost, writers
//! crash and load the log again, history is compacted, and a promotion loses the last batch. [`explore`] visits every
//! reachable state and checks that each batch is in the log at most once, that nothing is inserted into the past, and
//! that no revision ever means two things. With a part of the protocol taken away, it returns the steps to a state that
//! breaks a rule.

mod steps;

use std::collections::HashSet;
use std::rc::Rc;

use steps::successors;

/// The parts of the protocol that a test may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The log keeps a row of each batch, which outlives compaction. Without it, an append only fails if its revision
    /// exists.
    pub batches: bool,
    /// A promotion begins another epoch above all revisions. Without it, the log continues where it ends.
    pub epochs: bool,
    /// A batch that is in the log already under its id is answered as done.
    pub ids: bool,
    /// Whether a standby that lacks the last batch may be promoted.
    pub promotion: bool,
}

impl Protocol {
    /// The protocol as it is.
    pub const WHOLE: Self = Self {
        batches: true,
        epochs: true,
        ids: true,
        promotion: true,
    };
}

/// A batch in the log or on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Append {
    /// The writer and the number of its write.
    id: (u8, u8),
    /// The revision after which it must be appended.
    base: u16,
    epoch: u8,
    /// How often the request can still arrive.
    copies: u8,
}

/// What a writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Writer {
    /// The end of the log as the writer knows it.
    known: u16,
    epoch: u8,
    /// Its write that is not answered yet.
    pending: Option<(u8, u8)>,
    /// How many writes it has begun.
    begun: u8,
}

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The rows that exist, by revision.
    rows: Vec<(u16, (u8, u8))>,
    /// The rows of batches.
    batches: Vec<(u16, (u8, u8))>,
    /// The last revision of the log.
    last: u16,
    epoch: u8,
    writers: [Writer; 2],
    /// Requests that may arrive, sorted.
    flying: Vec<Append>,
    /// What revisions have meant to any client, whether or not they were lost, sorted.
    meant: Vec<(u16, (u8, u8))>,
    crashes: u8,
    compactions: u8,
    promotions: u8,
    broken: Option<&'static str>,
}

/// The revision counter jumps by this much when an epoch begins.
const JUMP: u16 = 100;
/// How many writes each writer makes.
const WRITES: u8 = 2;

impl State {
    fn first(protocol: Protocol) -> Self {
        let writer = Writer {
            known: 1,
            epoch: 1,
            pending: None,
            begun: 0,
        };
        Self {
            rows: Vec::new(),
            batches: Vec::new(),
            last: 1,
            epoch: 1,
            writers: [writer; 2],
            flying: Vec::new(),
            meant: Vec::new(),
            crashes: 1,
            compactions: 1,
            promotions: u8::from(protocol.promotion),
            broken: None,
        }
    }

    /// Notes the first rule that is broken.
    fn break_rule(&mut self, rule: &'static str) {
        self.broken.get_or_insert(rule);
    }
}

/// The result of a complete exploration.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The number of different states.
    pub states: usize,
    /// The rule that is broken, and the steps that lead to it.
    pub broken: Option<(&'static str, Vec<String>)>,
}

/// Visits all states, breadth first, and stops at the first one that breaks a rule: its steps are the fewest.
pub fn explore(protocol: Protocol) -> Explored {
    let first = Rc::new(State::first(protocol));
    // Each state, with the one before it.
    let mut states = vec![(first.clone(), 0)];
    let mut known = HashSet::from([first]);
    let mut at = 0;
    while at < states.len() {
        let state = states[at].0.clone();
        if let Some(rule) = state.broken {
            return Explored {
                states: states.len(),
                broken: Some((rule, path(&states, at, protocol))),
            };
        }
        for (_, after) in successors(&state, protocol) {
            let after = Rc::new(after);
            if known.insert(after.clone()) {
                states.push((after, at));
            }
        }
        at += 1;
    }
    Explored {
        states: states.len(),
        broken: None,
    }
}

/// Returns the steps that lead to a state.
fn path(states: &[(Rc<State>, usize)], mut at: usize, protocol: Protocol) -> Vec<String> {
    let mut steps = Vec::new();
    while at != 0 {
        let (state, before) = &states[at];
        let next = successors(&states[*before].0, protocol);
        let step = next.into_iter().find(|(_, after)| after == &**state);
        steps.extend(step.map(|(step, _)| step.to_string()));
        at = *before;
    }
    steps.reverse();
    steps
}
