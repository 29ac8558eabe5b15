//! Character classes: ranges, negation, case folding.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// The last code point.
const LAST: u32 = 0x10FFFF;
/// The range of all characters that have another case.
const FOLDED: (u32, u32) = (0x41, 0x1E943);

/// Sorted code point ranges without overlaps. They may include surrogates, which no text contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(Box<[(u32, u32)]>);

impl Ranges {
    /// Sorts and joins ranges.
    pub(super) fn new(mut ranges: Vec<(u32, u32)>) -> Ranges {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Ranges(merged.into())
    }

    pub(super) fn as_slice(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(super) fn negated(&self) -> Ranges {
        let mut rest = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for (low, high) in &*self.0 {
            if next < *low {
                rest.push((next, low - 1));
            }
            next = high + 1;
        }
        if next <= LAST {
            rest.push((next, LAST));
        }
        Ranges(rest.into())
    }

    /// Adds every character that differs only in case.
    pub(super) fn folded(&self) -> Ranges {
        let whole = |(low, high): &(u32, u32)| *low <= FOLDED.0 && *high >= FOLDED.1;
        if self.0.iter().any(whole) {
            return self.clone();
        }
        let within = self.0.iter().filter_map(|(low, high)| {
            let range = ((*low).max(FOLDED.0), (*high).min(FOLDED.1));
            (range.0 <= range.1).then_some(range)
        });
        let mut set = class(within);
        set.case_fold_simple();
        let mut all = self.0.to_vec();
        all.extend(
            set.iter()
                .map(|range| (range.start().into(), range.end().into())),
        );
        Ranges::new(all)
    }

    /// Returns the number of code points that [`Ranges::folded`] visits.
    pub(super) fn folding_work(&self) -> u64 {
        let mut points = 0;
        for (low, high) in &*self.0 {
            points += u64::from((*high).min(FOLDED.1).saturating_sub((*low).max(FOLDED.0))) + 1;
        }
        points
    }

    pub(super) fn contains(&self, character: char) -> bool {
        let point = u32::from(character);
        // Most classes are a few ASCII ranges.
        if self.0.len() <= 8 {
            return self
                .0
                .iter()
                .any(|(low, high)| *low <= point && point <= *high);
        }
        let after = self.0.partition_point(|(low, _)| *low <= point);
        after > 0 && point <= self.0[after - 1].1
    }

    /// Returns the approximate number of states that a byte automaton needs for one such character.
    pub(super) fn byte_states(&self) -> u64 {
        match self.0.last() {
            None => 1,
            Some((_, high)) if *high < 0x80 => 1,
            Some(_) => (3 * self.0.len() as u64).max(12),
        }
    }

    /// Converts to a class of `regex-syntax`.
    pub(super) fn to_class(&self) -> ClassUnicode {
        class(self.0.iter().copied())
    }

    /// Converts from a class of `regex-syntax`.
    pub(super) fn of_class(class: &ClassUnicode) -> Ranges {
        let ranges = class.iter();
        Ranges::new(
            ranges
                .map(|range| (range.start().into(), range.end().into()))
                .collect(),
        )
    }
}

/// Converts ranges without surrogates.
fn class(ranges: impl Iterator<Item = (u32, u32)>) -> ClassUnicode {
    ClassUnicode::new(ranges.filter_map(|(low, high)| {
        let low = char::from_u32(low).unwrap_or('\u{E000}');
        let high = char::from_u32(high).unwrap_or('\u{D7FF}');
        (low <= high).then(|| ClassUnicodeRange::new(low, high))
    }))
}

/// Returns the ranges of a named ASCII class, such as `digit`.
pub(super) fn ascii(name: &str) -> Option<&'static [(u32, u32)]> {
    Some(match name {
        "alnum" => &[(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)],
        "alpha" => &[(0x41, 0x5A), (0x61, 0x7A)],
        "ascii" => &[(0, 0x7F)],
        "blank" => &[(0x09, 0x09), (0x20, 0x20)],
        "cntrl" => &[(0, 0x1F), (0x7F, 0x7F)],
        "digit" => &[(0x30, 0x39)],
        "graph" => &[(0x21, 0x7E)],
        "lower" => &[(0x61, 0x7A)],
        "print" => &[(0x20, 0x7E)],
        "punct" => &[(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)],
        "space" => &[(0x09, 0x0D), (0x20, 0x20)],
        "upper" => &[(0x41, 0x5A)],
        "word" => &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
        "xdigit" => &[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)],
        _ => return None,
    })
}

/// Returns the ranges of `\d`, `\s` and `\w`, and whether the letter is a capital, which negates
/// them.
pub(super) fn perl(letter: u8) -> Option<(&'static [(u32, u32)], bool)> {
    let ranges: &[(u32, u32)] = match letter.to_ascii_lowercase() {
        b'd' => &[(0x30, 0x39)],
        b's' => &[(0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)],
        b'w' => &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
        _ => return None,
    };
    Some((ranges, letter.is_ascii_uppercase()))
}
