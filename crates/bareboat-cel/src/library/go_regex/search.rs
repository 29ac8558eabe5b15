//! Runs a program over a text: all ways at once, in the order of their preference.
//!
//! The work is at most the length of the text times the length of the program. It is counted, so that a
//! caller can limit it.

use super::program::{Inst, Program};
use super::tree::Look;
use bareboat_api::interrupt;

/// How many steps searches may still take.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u64,
    /// Steps since the last check whether the work is still wanted.
    unasked: u64,
}

/// After how many steps a search asks whether its result is still wanted.
const ASK_AFTER: u64 = 1 << 16;

impl Steps {
    /// As many as it takes.
    pub(crate) fn unlimited() -> Steps {
        Steps::limited(u64::MAX)
    }

    /// So many and no more.
    pub(crate) fn limited(left: u64) -> Steps {
        Steps { left, unasked: 0 }
    }

    /// What is left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn take(&mut self, steps: u64) -> Result<(), TooManySteps> {
        self.left = self.left.checked_sub(steps).ok_or(TooManySteps)?;
        self.unasked += steps;
        if self.unasked >= ASK_AFTER {
            self.unasked = 0;
            if interrupt::requested() {
                return Err(TooManySteps);
            }
        }
        Ok(())
    }
}

/// A search took more steps than it was allowed, or its client has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManySteps;

/// Which match is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// Whether there is one.
    Any,
    /// Where the first one is.
    Place,
}

/// The ways that are followed at one position, the preferred ones first.
struct Threads {
    /// The place of an instruction in `list`, valid if that entry names the instruction.
    places: Vec<u32>,
    /// Instructions, and where the match began.
    list: Vec<(u32, usize)>,
}

impl Threads {
    fn new(instructions: usize) -> Threads {
        Threads {
            places: vec![0; instructions],
            list: Vec::new(),
        }
    }

    /// Adds an instruction unless it is there.
    fn add(&mut self, at: u32, start: usize) -> bool {
        let place = self.places[at as usize] as usize;
        if self.list.get(place).is_some_and(|(known, _)| *known == at) {
            return false;
        }
        self.places[at as usize] = self.list.len() as u32;
        self.list.push((at, start));
        true
    }
}

impl Program {
    /// The first match at or after a position.
    pub(super) fn find(
        &self,
        text: &str,
        from: usize,
        want: Want,
        steps: &mut Steps,
    ) -> Result<Option<(usize, usize)>, TooManySteps> {
        steps.take(1 + self.code.len() as u64 / 64)?;
        let mut current = Threads::new(self.code.len());
        let mut next = Threads::new(self.code.len());
        let mut stack = Vec::new();
        let mut found = None;
        let mut before = text[..from].chars().next_back();
        let mut rest = text[from..].chars();
        let mut at = from;
        loop {
            let character = rest.clone().next();
            let here = Here {
                before,
                after: character,
            };
            if found.is_none() && (at == 0 || !self.anchored) {
                self.follow(&mut current, &mut stack, 0, at, here);
            }
            if current.list.is_empty() && (found.is_some() || self.anchored) {
                return Ok(found);
            }
            steps.take(current.list.len() as u64 + 1)?;
            let end = character.map(|character| at + character.len_utf8());
            rest.next();
            let then = Here {
                before: character,
                after: rest.clone().next(),
            };
            for (instruction, start) in &current.list {
                let goes_on = match self.code[*instruction as usize] {
                    Inst::Match => {
                        found = Some((*start, at));
                        if want == Want::Any {
                            return Ok(found);
                        }
                        // What comes now is less preferred than this match.
                        break;
                    }
                    Inst::Char(expected) => character == Some(expected),
                    Inst::Class(class) => {
                        character.is_some_and(|found| self.classes[class as usize].contains(found))
                    }
                    _ => false,
                };
                if goes_on {
                    self.follow(&mut next, &mut stack, instruction + 1, *start, then);
                }
            }
            let Some(end) = end else {
                return Ok(found);
            };
            at = end;
            before = character;
            std::mem::swap(&mut current, &mut next);
            next.list.clear();
        }
    }

    /// Adds an instruction and everything that is reached from it without reading a character.
    fn follow(
        &self,
        threads: &mut Threads,
        stack: &mut Vec<u32>,
        first: u32,
        start: usize,
        here: Here,
    ) {
        stack.push(first);
        while let Some(at) = stack.pop() {
            if !threads.add(at, start) {
                continue;
            }
            let target = |distance: i32| at.wrapping_add_signed(distance);
            match self.code[at as usize] {
                Inst::Jump(distance) => stack.push(target(distance)),
                Inst::Try(distance) => stack.extend([target(distance), at + 1]),
                Inst::Skip(distance) => stack.extend([at + 1, target(distance)]),
                Inst::Look(look) if here.is(look) => stack.push(at + 1),
                _ => {}
            }
        }
    }
}

/// The characters on both sides of a position.
#[derive(Clone, Copy)]
struct Here {
    before: Option<char>,
    after: Option<char>,
}

impl Here {
    fn is(self, look: Look) -> bool {
        let word = |side: Option<char>| {
            side.is_some_and(|letter| letter == '_' || letter.is_ascii_alphanumeric())
        };
        match look {
            Look::TextStart => self.before.is_none(),
            Look::TextEnd => self.after.is_none(),
            Look::LineStart => self.before.is_none_or(|before| before == '\n'),
            Look::LineEnd => self.after.is_none_or(|after| after == '\n'),
            Look::WordBoundary => word(self.before) != word(self.after),
            Look::NoWordBoundary => word(self.before) == word(self.after),
        }
    }
}
