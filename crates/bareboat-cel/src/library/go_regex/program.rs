//! A pattern as a program of a few kinds of instructions over characters.
//!
//! Counted repetitions are expanded, but a class is one instruction for any number of characters.

use super::class::Ranges;
use super::tree::{Id, Look, Node, Tree};
use std::sync::Arc;

/// An instruction. Targets are relative, so that parts of a program can be copied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inst {
    Char(char),
    Class(u32),
    Look(Look),
    /// Continues at the target.
    Jump(i32),
    /// Continues with the next instruction, and at the target if that fails.
    Try(i32),
    /// Continues at the target, and with the next instruction if that fails.
    Skip(i32),
    Match,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) code: Box<[Inst]>,
    pub(super) classes: Box<[Arc<Ranges>]>,
    /// Whether matches begin only at the start of the text.
    pub(super) anchored: bool,
    /// The approximate number of ranges that only this program uses.
    ranges: u64,
}

/// A step that the writer still has to do; `Writer::tasks` is a stack of them.
enum Task {
    Node(Id),
    /// A branch is written: point the split before it to the next branch.
    Branch {
        id: Id,
        next: usize,
        split: usize,
        ends: Vec<usize>,
    },
    /// The last branch is written: point the ends of the others here.
    End(Vec<usize>),
    /// The first copy of a repeated node is written.
    Repeat {
        id: Id,
        start: usize,
    },
}

impl Program {
    pub(super) fn new(tree: &Tree) -> Program {
        let mut writer = Writer {
            tree,
            code: Vec::with_capacity(tree.size().instructions as usize),
            tasks: vec![Task::Node(tree.root)],
        };
        while let Some(task) = writer.tasks.pop() {
            writer.step(task);
        }
        let mut code = writer.code;
        code.push(Inst::Match);
        Program {
            anchored: matches!(code.first(), Some(Inst::Look(Look::TextStart))),
            code: code.into(),
            classes: tree.classes.clone().into(),
            ranges: tree.ranges,
        }
    }

    /// Returns the memory of the program.
    pub(super) fn bytes(&self) -> usize {
        self.code.len() * size_of::<Inst>()
            + self.classes.len() * size_of::<Arc<Ranges>>()
            + self.ranges as usize * 8
    }
}

struct Writer<'t> {
    tree: &'t Tree,
    code: Vec<Inst>,
    tasks: Vec<Task>,
}

impl Writer<'_> {
    fn step(&mut self, task: Task) {
        match task {
            Task::Node(id) => self.node(id),
            Task::Branch {
                id,
                next,
                split,
                mut ends,
            } => {
                ends.push(self.code.len());
                self.code.push(Inst::Jump(0));
                self.code[split] = Inst::Try(distance(split, self.code.len()));
                self.branch(id, next, ends);
            }
            Task::End(ends) => {
                for end in ends {
                    self.code[end] = Inst::Jump(distance(end, self.code.len()));
                }
            }
            Task::Repeat { id, start } => self.repeat(id, start),
        }
    }

    fn node(&mut self, id: Id) {
        match self.tree.node(id) {
            Node::Empty | Node::Repeat { max: Some(0), .. } => {}
            Node::Char(character) => self.code.push(Inst::Char(*character)),
            Node::Class(class) => self.code.push(Inst::Class(*class)),
            Node::Look(look) => self.code.push(Inst::Look(*look)),
            Node::Concat(parts) => {
                let parts = parts.iter().rev();
                self.tasks.extend(parts.map(|part| Task::Node(*part)));
            }
            Node::Alternate(_) => self.branch(id, 0, Vec::new()),
            Node::Repeat {
                sub, min, greedy, ..
            } => {
                let start = self.code.len();
                if *min == 0 {
                    self.code.push(split(*greedy, 0));
                }
                self.tasks.push(Task::Repeat { id, start });
                self.tasks.push(Task::Node(*sub));
            }
        }
    }

    fn branch(&mut self, id: Id, index: usize, ends: Vec<usize>) {
        let Node::Alternate(parts) = self.tree.node(id) else {
            return;
        };
        if index + 1 == parts.len() {
            self.tasks.push(Task::End(ends));
        } else {
            self.tasks.push(Task::Branch {
                id,
                next: index + 1,
                split: self.code.len(),
                ends,
            });
            self.code.push(Inst::Try(0));
        }
        self.tasks.push(Task::Node(parts[index]));
    }

    fn repeat(&mut self, id: Id, start: usize) {
        let Node::Repeat {
            min, max, greedy, ..
        } = *self.tree.node(id)
        else {
            return;
        };
        let body = self.code[start + usize::from(min == 0)..].to_vec();
        for _ in 1..min {
            self.code.extend_from_slice(&body);
        }
        let mut splits = Vec::new();
        if min == 0 {
            splits.push(start);
        }
        match max {
            Some(max) => {
                for _ in min.max(1)..max {
                    splits.push(self.code.len());
                    self.code.push(split(greedy, 0));
                    self.code.extend_from_slice(&body);
                }
            }
            None => {
                let back = -(body.len() as i32);
                self.code.push(split(!greedy, back));
            }
        }
        for at in splits {
            self.code[at] = split(greedy, distance(at, self.code.len()));
        }
    }
}

/// Returns a choice between the next instruction and another; a greedy one prefers the next.
fn split(greedy: bool, distance: i32) -> Inst {
    match greedy {
        true => Inst::Try(distance),
        false => Inst::Skip(distance),
    }
}

fn distance(from: usize, to: usize) -> i32 {
    to as i32 - from as i32
}
