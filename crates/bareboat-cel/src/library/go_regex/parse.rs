//! Parses a pattern to a tree, with the rules and messages of Go's `regexp/syntax`.
//!
//! The parser has its own stack, so no pattern can exhaust that of the thread.

mod classes;

use super::class::Ranges;
use super::tree::{Id, Look, MAX_HEIGHT, MAX_RANGES, Node, Tree};
use std::sync::Arc;

/// The maximum repetition count, and the maximum product of nested counts.
const MAX_REPEAT: u64 = 1000;

/// Parses a pattern.
pub(super) fn parse(pattern: &str) -> Result<Tree, String> {
    let mut parser = Parser {
        whole: pattern,
        tree: Tree::default(),
        flags: Flags::default(),
        frames: Vec::new(),
        frame: Frame::default(),
    };
    parser.run()?;
    Ok(parser.tree)
}

/// The flags `i`, `m`, `s` and `U`.
#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    lines: bool,
    dot_newline: bool,
    lazy: bool,
}

/// An open group: its finished branches and the current one.
#[derive(Default)]
struct Frame {
    branches: Vec<Id>,
    sequence: Vec<Id>,
    /// The flags outside of the group.
    outside: Flags,
    captures: bool,
}

struct Parser<'p> {
    whole: &'p str,
    tree: Tree,
    flags: Flags,
    frames: Vec<Frame>,
    frame: Frame,
}

fn refuse<T>(why: &str, part: &str) -> Result<T, String> {
    Err(format!("error parsing regexp: {why}: `{part}`"))
}

/// Returns the text between two positions of one text.
fn between<'s>(begin: &'s str, after: &str) -> &'s str {
    &begin[..begin.len() - after.len()]
}

impl<'p> Parser<'p> {
    fn run(&mut self) -> Result<(), String> {
        let mut rest = self.whole;
        // The start of the last repetition, if it is the last item.
        let mut repeated: Option<&str> = None;
        while let Some(character) = rest.chars().next() {
            let begin = rest;
            let after = &rest[character.len_utf8()..];
            let mut repetition = None;
            rest = match character {
                '(' if after.starts_with('?') => self.open_special(rest)?,
                '(' => {
                    self.open(true)?;
                    after
                }
                '|' => {
                    let branch = self.sequence()?;
                    self.frame.branches.push(branch);
                    after
                }
                ')' => {
                    self.close()?;
                    after
                }
                '^' if self.flags.lines => self.look(Look::LineStart, after)?,
                '^' => self.look(Look::TextStart, after)?,
                '$' if self.flags.lines => self.look(Look::LineEnd, after)?,
                '$' => self.look(Look::TextEnd, after)?,
                '.' => {
                    let all = Ranges::new(match self.flags.dot_newline {
                        true => vec![(0, 0x10FFFF)],
                        false => vec![(0, 0x09), (0x0B, 0x10FFFF)],
                    });
                    self.class(Arc::new(all))?;
                    after
                }
                '[' => self.bracket(rest)?,
                '*' => self.repeat((0, None), false, begin, after, &mut repetition, repeated)?,
                '+' => self.repeat((1, None), false, begin, after, &mut repetition, repeated)?,
                '?' => self.repeat((0, Some(1)), false, begin, after, &mut repetition, repeated)?,
                '{' => match count(rest) {
                    Some((counts, after)) => {
                        let Some(counts) = counts else {
                            return refuse("invalid repeat count", between(begin, after));
                        };
                        self.repeat(counts, true, begin, after, &mut repetition, repeated)?
                    }
                    None => {
                        self.literal('{')?;
                        after
                    }
                },
                '\\' => self.escape(rest)?,
                other => {
                    self.literal(other)?;
                    after
                }
            };
            repeated = repetition;
        }
        let root = self.alternation()?;
        if !self.frames.is_empty() {
            return refuse("missing closing )", self.whole);
        }
        self.tree.root = root;
        Ok(())
    }

    fn too_large<T>(&self) -> Result<T, String> {
        refuse("expression too large", self.whole)
    }

    fn add(&mut self, node: Node) -> Result<Id, String> {
        match self.tree.push(node) {
            Some(id) if self.tree.fact(id).height <= MAX_HEIGHT => Ok(id),
            Some(_) => refuse("expression nests too deeply", self.whole),
            None => self.too_large(),
        }
    }

    fn push(&mut self, node: Node) -> Result<(), String> {
        let id = self.add(node)?;
        self.frame.sequence.push(id);
        Ok(())
    }

    fn look(&mut self, look: Look, after: &'p str) -> Result<&'p str, String> {
        self.push(Node::Look(look))?;
        Ok(after)
    }

    /// Counts collected ranges, which take work and memory.
    fn spend(&mut self, ranges: u64) -> Result<(), String> {
        self.tree.ranges = self.tree.ranges.saturating_add(ranges);
        if self.tree.ranges > MAX_RANGES {
            return self.too_large();
        }
        Ok(())
    }

    fn class(&mut self, ranges: Arc<Ranges>) -> Result<(), String> {
        if let [(low, high)] = ranges.as_slice()
            && low == high
            && let Some(character) = char::from_u32(*low)
        {
            return self.push(Node::Char(character));
        }
        let known = self.tree.classes.last();
        if known.is_none_or(|last| !Arc::ptr_eq(last, &ranges)) {
            self.tree.classes.push(ranges);
        }
        let index = self.tree.classes.len() as u32 - 1;
        self.push(Node::Class(index))
    }

    fn literal(&mut self, character: char) -> Result<(), String> {
        if self.flags.fold {
            let point = u32::from(character);
            let ranges = Ranges::new(vec![(point, point)]).folded();
            self.spend(1 + ranges.as_slice().len() as u64)?;
            return self.class(Arc::new(ranges));
        }
        self.push(Node::Char(character))
    }

    /// Adds a character by its code point; surrogates match no text.
    fn point(&mut self, point: u32) -> Result<(), String> {
        match char::from_u32(point) {
            Some(character) => self.literal(character),
            None => self.class(Arc::new(Ranges::default())),
        }
    }

    fn open(&mut self, captures: bool) -> Result<(), String> {
        if self.frames.len() >= MAX_HEIGHT as usize {
            return refuse("expression nests too deeply", self.whole);
        }
        let inner = Frame {
            outside: self.flags,
            captures,
            ..Frame::default()
        };
        self.frames.push(std::mem::replace(&mut self.frame, inner));
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let group = self.alternation()?;
        let Some(outer) = self.frames.pop() else {
            return refuse("unexpected )", self.whole);
        };
        let inner = std::mem::replace(&mut self.frame, outer);
        self.flags = inner.outside;
        if inner.captures {
            // Captures are not recorded, but a capturing group is one level in Go.
            let height = &mut self.tree.facts[group as usize].height;
            *height += 1;
            if *height > MAX_HEIGHT {
                return refuse("expression nests too deeply", self.whole);
            }
        }
        self.frame.sequence.push(group);
        Ok(())
    }

    /// Joins the items since the last `(` or `|` to one node.
    fn sequence(&mut self) -> Result<Id, String> {
        let sequence = std::mem::take(&mut self.frame.sequence);
        match *sequence {
            [] => self.add(Node::Empty),
            [only] => Ok(only),
            _ => self.add(Node::Concat(sequence.into())),
        }
    }

    /// Joins the branches since the last `(` to one node.
    fn alternation(&mut self) -> Result<Id, String> {
        let last = self.sequence()?;
        let mut branches = std::mem::take(&mut self.frame.branches);
        if branches.is_empty() {
            return Ok(last);
        }
        branches.push(last);
        self.add(Node::Alternate(branches.into()))
    }

    fn repeat(
        &mut self,
        (min, max): (u32, Option<u32>),
        counted: bool,
        begin: &'p str,
        mut after: &'p str,
        repetition: &mut Option<&'p str>,
        repeated: Option<&'p str>,
    ) -> Result<&'p str, String> {
        let mut greedy = !self.flags.lazy;
        if let Some(rest) = after.strip_prefix('?') {
            after = rest;
            greedy = !greedy;
        }
        if let Some(first) = repeated {
            return refuse("invalid nested repetition operator", between(first, after));
        }
        let Some(sub) = self.frame.sequence.pop() else {
            return refuse(
                "missing argument to repetition operator",
                between(begin, after),
            );
        };
        let id = self.add(Node::Repeat {
            sub,
            min,
            max,
            greedy,
        })?;
        if counted {
            let repeats = match max {
                Some(0) => 1,
                most => u64::from(most.unwrap_or(min).max(1)) * self.tree.fact(sub).repeats,
            };
            if repeats > MAX_REPEAT {
                return refuse("invalid repeat count", between(begin, after));
            }
            self.tree.facts[id as usize].repeats = repeats;
        }
        self.frame.sequence.push(id);
        *repetition = Some(begin);
        Ok(after)
    }

    /// Parses a group that begins with `(?`: flags, a name, or a non-capturing group.
    fn open_special(&mut self, begin: &'p str) -> Result<&'p str, String> {
        let named = begin.starts_with("(?P<") && begin.len() > 4;
        if named || (begin.starts_with("(?<") && begin.len() > 3) {
            let Some(end) = begin.find('>') else {
                return refuse("invalid named capture", begin);
            };
            let name = &begin[if named { 4 } else { 3 }..end];
            let valid = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
            if name.is_empty() || !name.bytes().all(valid) {
                return refuse("invalid named capture", &begin[..=end]);
            }
            self.open(true)?;
            return Ok(&begin[end + 1..]);
        }
        let mut flags = self.flags;
        let (mut on, mut seen) = (true, false);
        let mut rest = &begin[2..];
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            match letter {
                'i' => flags.fold = on,
                'm' => flags.lines = on,
                's' => flags.dot_newline = on,
                'U' => flags.lazy = on,
                '-' if on => {
                    (on, seen) = (false, false);
                    continue;
                }
                ':' | ')' if on || seen => {
                    if letter == ':' {
                        self.open(false)?;
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => break,
            }
            seen = true;
        }
        refuse("invalid or unsupported Perl syntax", between(begin, rest))
    }
}

/// A count such as `{2,5}` and the rest of the text: `None` for the numbers if they are invalid.
type Counts<'p> = (Option<(u32, Option<u32>)>, &'p str);

fn count(text: &str) -> Option<Counts<'_>> {
    let (min, rest) = number(&text[1..])?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = number(rest)?;
            (Some(max), rest)
        }
    };
    let after = rest.strip_prefix('}')?;
    let fits =
        u64::from(min.max(max.unwrap_or(0))) <= MAX_REPEAT && max.is_none_or(|max| min <= max);
    Some((fits.then_some((min, max)), after))
}

/// Parses a number without leading zeros; a number that is too large becomes the maximum.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if number.is_empty() || (digits > 1 && number.starts_with('0')) {
        return None;
    }
    Some((number.parse().unwrap_or(u32::MAX), rest))
}
