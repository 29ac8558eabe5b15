//! Runs a program over a text: all threads at once, in the order of preference.
//!
//! The work is at most the length of the text times the length of the program. It is counted, so
//! that a caller can limit it.

use super::program::{Inst, Program};
use super::tree::Look;
use bareboat_api::interrupt;

/// The number of steps that searches may still take.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u64,
    /// Steps since the last check for an interrupt.
    unasked: u64,
}

/// The number of steps between two checks for an interrupt.
const ASK_AFTER: u64 = 1 << 16;

impl Steps {
    /// Returns unlimited steps.
    pub(crate) fn unlimited() -> Steps {
        Steps::limited(u64::MAX)
    }

    /// Returns a limited number of steps.
    pub(crate) fn limited(left: u64) -> Steps {
        Steps { left, unasked: 0 }
    }

    /// Returns the remaining steps.
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

/// The error of a search that exceeded its steps or was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManySteps;

/// The wanted result of a search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// Whether there is a match.
    Any,
    /// The position of the first match.
    Place,
}

/// The threads at one position, the preferred ones first.
struct Threads {
    /// The position of an instruction in `list`, valid if that entry names the instruction.
    places: Vec<u32>,
    /// Instructions, and the start of their match.
    list: Vec<(u32, usize)>,
}

impl Threads {
    fn new(instructions: usize) -> Threads {
        Threads {
            places: vec![0; instructions],
            list: Vec::new(),
        }
    }

    /// Adds an instruction unless it is present; returns whether it was added.
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
    /// Returns the first match at or after a position.
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
                        // The remaining threads are less preferred than this match.
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

    /// Adds an instruction and all instructions that are reached from it without reading a
    /// character.
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
