//! The steps of the model: what can happen next in a state.

use super::{Append, JUMP, Protocol, State, WRITES};

/// Something that can happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Sends(Append),
    Arrives(Append),
    ArrivesUnanswered(Append),
    Follows(usize),
    Crashes(usize),
    Compaction,
    Promotion,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sends(append) => write!(f, "a writer sends {append:?}"),
            Self::Arrives(append) => write!(f, "{append:?} arrives"),
            Self::ArrivesUnanswered(append) => write!(f, "{append:?} arrives, its answer is lost"),
            Self::Follows(writer) => write!(f, "writer {writer} reads what was written"),
            Self::Crashes(writer) => write!(f, "writer {writer} crashes"),
            Self::Compaction => f.write_str("history is compacted"),
            Self::Promotion => f.write_str("a standby without the last batch is promoted"),
        }
    }
}

pub(super) fn successors(state: &State, protocol: Protocol) -> Vec<(Step, State)> {
    let mut next = Vec::new();
    for writer in 0..2 {
        begin(state, writer, &mut next);
        follow(state, writer, &mut next);
        crash(state, writer, &mut next);
    }
    for at in 0..state.flying.len() {
        deliver(state, at, protocol, &mut next);
    }
    compact(state, &mut next);
    promote(state, protocol, &mut next);
    next
}

/// A writer sends a batch; or sends it again, because no answer arrived.
fn begin(state: &State, writer: usize, next: &mut Vec<(Step, State)>) {
    let mut after = state.clone();
    let own = &mut after.writers[writer];
    if own.pending.is_some() || own.begun == WRITES {
        return;
    }
    own.begun += 1;
    let id = (writer as u8, own.begun);
    own.pending = Some(id);
    let append = Append {
        id,
        base: own.known,
        epoch: own.epoch,
        copies: 2,
    };
    after.flying.push(append);
    after.flying.sort_unstable_by_key(|one| one.id);
    next.push((Step::Sends(append), after));
}

/// A request arrives. Its answer arrives or is lost; without an answer the writer repeats the request, which is one of
/// the copies.
fn deliver(state: &State, at: usize, protocol: Protocol, next: &mut Vec<(Step, State)>) {
    let mut after = state.clone();
    let append = after.flying[at];
    after.flying[at].copies -= 1;
    if after.flying[at].copies == 0 {
        after.flying.remove(at);
    }
    let revision = append.base + 1;
    let known = match protocol.batches {
        true => &state.batches,
        false => &state.rows,
    };
    let is_own = known.contains(&(revision, append.id));
    let done = if protocol.ids && is_own {
        true
    } else if fits(state, &append, protocol) {
        put(&mut after, revision, append.id);
        true
    } else {
        false
    };
    let mut lost = after.clone();
    // The answer tells a waiting writer that it is done, or that it must catch up and decide again.
    let own = &mut after.writers[append.id.0 as usize];
    if own.pending == Some(append.id) {
        own.pending = None;
        if done {
            own.known = own.known.max(revision);
            mean(&mut after, revision, append.id);
        } else {
            // A refused write that is in the log is a write that happened although the answer says that it did not.
            if state.rows.iter().any(|(_, id)| *id == append.id) {
                after.broken = Some("a refused write is in the log");
            }
            own.begun = own.begun.min(WRITES);
        }
    }
    if lost.flying.iter().all(|one| one.id != append.id) {
        // No copy is left: the answer is that the outcome is not known.
        let own = &mut lost.writers[append.id.0 as usize];
        if own.pending == Some(append.id) {
            own.pending = None;
        }
    }
    next.push((Step::ArrivesUnanswered(append), lost));
    next.push((Step::Arrives(append), after));
}

/// Returns whether the log accepts an append.
fn fits(state: &State, append: &Append, protocol: Protocol) -> bool {
    match protocol.batches {
        true => append.base == state.last && (!protocol.epochs || append.epoch == state.epoch),
        // The primary key of the rows alone.
        false => state.rows.iter().all(|(at, _)| *at != append.base + 1),
    }
}

fn put(state: &mut State, revision: u16, id: (u8, u8)) {
    if revision <= state.last {
        state.break_rule("a batch was inserted into the past");
    }
    if state.batches.iter().any(|(_, one)| *one == id) {
        state.break_rule("a batch was written twice");
    }
    state.rows.push((revision, id));
    state.batches.push((revision, id));
    state.last = state.last.max(revision);
}

/// Notes what a revision means to clients.
fn mean(state: &mut State, revision: u16, id: (u8, u8)) {
    let other = state
        .meant
        .iter()
        .any(|(at, one)| *at == revision && *one != id);
    if other {
        state.break_rule("a revision means two things");
    }
    if !state.meant.contains(&(revision, id)) {
        state.meant.push((revision, id));
        state.meant.sort_unstable();
    }
}

/// A writer without a pending write reads what others wrote, and shows it to its clients.
fn follow(state: &State, writer: usize, next: &mut Vec<(Step, State)>) {
    let own = state.writers[writer];
    if own.pending.is_some() || (own.known == state.last && own.epoch == state.epoch) {
        return;
    }
    let mut after = state.clone();
    for (revision, id) in &state.rows {
        if *revision > own.known {
            mean(&mut after, *revision, *id);
        }
    }
    after.writers[writer].known = state.last;
    after.writers[writer].epoch = state.epoch;
    next.push((Step::Follows(writer), after));
}

fn crash(state: &State, writer: usize, next: &mut Vec<(Step, State)>) {
    if state.crashes == 0 || state.writers[writer].pending.is_none() {
        return;
    }
    let mut after = state.clone();
    after.crashes -= 1;
    after.writers[writer].pending = None;
    after.writers[writer].known = state.last;
    after.writers[writer].epoch = state.epoch;
    next.push((Step::Crashes(writer), after));
}

/// All rows but the newest are replaced, and deleted. The rows of batches stay.
fn compact(state: &State, next: &mut Vec<(Step, State)>) {
    if state.compactions == 0 || state.rows.len() < 2 {
        return;
    }
    let mut after = state.clone();
    after.compactions -= 1;
    let last = state.last;
    after.rows.retain(|(at, _)| *at == last);
    next.push((Step::Compaction, after));
}

/// A standby that has all but the last batch becomes the log.
fn promote(state: &State, protocol: Protocol, next: &mut Vec<(Step, State)>) {
    if state.promotions == 0 || state.rows.is_empty() {
        return;
    }
    let mut after = state.clone();
    after.promotions -= 1;
    after.rows.pop();
    after.batches.pop();
    if protocol.epochs {
        after.last = state.last + JUMP;
        after.epoch += 1;
    } else {
        after.last = after.batches.last().map_or(1, |(at, _)| *at);
    }
    next.push((Step::Promotion, after));
}
