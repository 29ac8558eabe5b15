//! A parsed pattern: nodes in one arena, each with its compiled size.

use super::PatternSize;
use super::class::Ranges;
use std::sync::Arc;

/// The index of a node in the arena.
pub(super) type Id = u32;

/// The maximum number of instructions of a pattern. Go's own limit is 3.3 million.
pub(super) const MAX_INSTRUCTIONS: u64 = 1 << 17;
/// The maximum number of ranges collected for the classes of a pattern.
pub(super) const MAX_RANGES: u64 = 1 << 18;
/// The maximum nesting of a pattern, as in Go.
pub(super) const MAX_HEIGHT: u32 = 1000;

/// A condition on a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// A part of a pattern.
#[derive(Debug)]
pub(super) enum Node {
    Empty,
    Char(char),
    Class(u32),
    Look(Look),
    Concat(Box<[Id]>),
    Alternate(Box<[Id]>),
    Repeat {
        sub: Id,
        min: u32,
        max: Option<u32>,
        greedy: bool,
    },
}

/// Facts about a node and its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The number of instructions of our own program.
    pub(super) instructions: u64,
    /// The approximate number of states of a byte automaton.
    pub(super) states: u64,
    pub(super) height: u32,
    /// The product of nested counts.
    pub(super) repeats: u64,
    /// Whether the node may match the empty text.
    pub(super) nullable: bool,
}

/// A parsed pattern.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) facts: Vec<Facts>,
    pub(super) classes: Vec<Arc<Ranges>>,
    pub(super) root: Id,
    /// The number of collected ranges.
    pub(super) ranges: u64,
}

impl Tree {
    pub(super) fn size(&self) -> PatternSize {
        PatternSize {
            instructions: self.fact(self.root).instructions + 1,
            ranges: self.ranges,
        }
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub(super) fn fact(&self, id: Id) -> Facts {
        self.facts[id as usize]
    }

    /// Adds a node; `None` when the pattern becomes too large.
    pub(super) fn push(&mut self, node: Node) -> Option<Id> {
        let facts = self.judge(&node);
        if facts.instructions > MAX_INSTRUCTIONS || self.nodes.len() as u64 > 2 * MAX_INSTRUCTIONS {
            return None;
        }
        self.nodes.push(node);
        self.facts.push(facts);
        Some(self.nodes.len() as Id - 1)
    }

    fn judge(&self, node: &Node) -> Facts {
        let leaf = |instructions, states| Facts {
            instructions,
            states,
            height: 1,
            repeats: 1,
            nullable: instructions == 0,
        };
        match node {
            Node::Empty => leaf(0, 1),
            Node::Char(character) => leaf(1, character.len_utf8() as u64),
            Node::Class(class) => leaf(1, self.classes[*class as usize].byte_states()),
            Node::Look(_) => Facts {
                nullable: true,
                ..leaf(1, 1)
            },
            Node::Concat(parts) => {
                let mut sum = leaf(0, 0);
                for part in parts.iter().map(|id| self.fact(*id)) {
                    sum.add(part);
                    sum.nullable &= part.nullable;
                }
                sum
            }
            Node::Alternate(parts) => {
                let jumps = 2 * (parts.len() as u64 - 1);
                let mut sum = Facts {
                    nullable: false,
                    ..leaf(jumps, jumps)
                };
                for part in parts.iter().map(|id| self.fact(*id)) {
                    sum.add(part);
                    sum.nullable |= part.nullable;
                }
                sum
            }
            Node::Repeat { sub, min, max, .. } => {
                let sub = self.fact(*sub);
                let copies = u64::from(max.unwrap_or((*min).max(1)));
                let splits = match max {
                    Some(max) => u64::from(max - min),
                    None => 2,
                };
                Facts {
                    instructions: sub
                        .instructions
                        .saturating_mul(copies)
                        .saturating_add(splits),
                    states: sub.states.saturating_mul(copies).saturating_add(splits),
                    height: sub.height + 1,
                    repeats: sub.repeats,
                    nullable: *min == 0 || sub.nullable,
                }
            }
        }
    }
}

impl Facts {
    fn add(&mut self, part: Facts) {
        self.instructions = self.instructions.saturating_add(part.instructions);
        self.states = self.states.saturating_add(part.states);
        self.height = self.height.max(part.height + 1);
        self.repeats = self.repeats.max(part.repeats);
    }
}
