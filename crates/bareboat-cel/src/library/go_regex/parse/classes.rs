//! Escapes and classes.

use super::{Parser, between, refuse};
use crate::library::go_regex::class::{self, Ranges};
use crate::library::go_regex::names;
use crate::library::go_regex::tree::Look;
use std::sync::Arc;

impl<'p> Parser<'p> {
    /// Parses an escape outside of a class.
    pub(super) fn escape(&mut self, begin: &'p str) -> Result<&'p str, String> {
        let after = begin.get(2..).unwrap_or_default();
        match begin.as_bytes().get(1) {
            Some(b'A') => return self.look(Look::TextStart, after),
            Some(b'z') => return self.look(Look::TextEnd, after),
            Some(b'b') => return self.look(Look::WordBoundary, after),
            Some(b'B') => return self.look(Look::NoWordBoundary, after),
            Some(b'C') => return refuse("invalid escape sequence", &begin[..2]),
            Some(b'Q') => {
                let (literal, rest) = after.split_once("\\E").unwrap_or((after, ""));
                for character in literal.chars() {
                    self.literal(character)?;
                }
                return Ok(rest);
            }
            _ => {}
        }
        if let Some((ranges, rest)) = self.unicode(begin)? {
            self.class(ranges)?;
            return Ok(rest);
        }
        if let Some((ranges, rest)) = self.perl(begin)? {
            self.class(Arc::new(ranges))?;
            return Ok(rest);
        }
        let (point, rest) = character(begin)?;
        self.point(point)?;
        Ok(rest)
    }

    /// Parses `\p{Greek}`, `\pL` and their negations.
    fn unicode(&mut self, begin: &'p str) -> Result<Option<(Arc<Ranges>, &'p str)>, String> {
        let mut negated = match begin.as_bytes() {
            [b'\\', b'p', ..] => false,
            [b'\\', b'P', ..] => true,
            _ => return Ok(None),
        };
        let inner = &begin[2..];
        let (mut name, rest) = match inner.strip_prefix('{') {
            Some(named) => match named.split_once('}') {
                Some(parts) => parts,
                None => return refuse("invalid character class range", begin),
            },
            None => inner.split_at(inner.chars().next().map_or(0, char::len_utf8)),
        };
        if let Some(other) = name.strip_prefix('^') {
            name = other;
            negated = !negated;
        }
        let Some(table) = names::table(name, self.flags.fold) else {
            return refuse("invalid character class range", between(begin, rest));
        };
        if !negated {
            return Ok(Some((table, rest)));
        }
        self.spend(table.as_slice().len() as u64)?;
        Ok(Some((Arc::new(table.negated()), rest)))
    }

    /// Parses `\d`, `\s`, `\w` and their negations.
    fn perl(&mut self, begin: &'p str) -> Result<Option<(Ranges, &'p str)>, String> {
        let &[b'\\', letter, ..] = begin.as_bytes() else {
            return Ok(None);
        };
        let Some((ranges, negated)) = class::perl(letter) else {
            return Ok(None);
        };
        Ok(Some((self.group(ranges, negated)?, &begin[2..])))
    }

    fn group(&mut self, ranges: &[(u32, u32)], negated: bool) -> Result<Ranges, String> {
        self.spend(ranges.len() as u64)?;
        let mut ranges = Ranges::new(ranges.to_vec());
        if self.flags.fold {
            self.spend(ranges.folding_work() / 16)?;
            ranges = ranges.folded();
        }
        Ok(if negated { ranges.negated() } else { ranges })
    }

    /// Parses `[:alpha:]` or `[:^alpha:]` inside a class.
    fn posix(&mut self, begin: &'p str) -> Result<Option<(Ranges, &'p str)>, String> {
        let Some(inner) = begin.strip_prefix("[:") else {
            return Ok(None);
        };
        let Some((name, rest)) = inner.split_once(":]") else {
            return Ok(None);
        };
        let negated = name.starts_with('^');
        match class::ascii(name.trim_start_matches('^')) {
            Some(ranges) if !name.starts_with("^^") => {
                Ok(Some((self.group(ranges, negated)?, rest)))
            }
            _ => refuse("invalid character class range", between(begin, rest)),
        }
    }

    /// Parses a class in brackets.
    pub(super) fn bracket(&mut self, begin: &'p str) -> Result<&'p str, String> {
        let mut rest = &begin[1..];
        let negated = rest.starts_with('^');
        if negated {
            rest = &rest[1..];
        }
        // Characters that still need case folding, and those that are complete.
        let (mut plain, mut complete) = (Vec::new(), Vec::new());
        let mut first = true;
        loop {
            if let Some(after) = rest.strip_prefix(']').filter(|_| !first) {
                rest = after;
                break;
            }
            first = false;
            if let Some((ranges, after)) = self.posix(rest)? {
                complete.extend_from_slice(ranges.as_slice());
                rest = after;
            } else if let Some((ranges, after)) = self.unicode(rest)? {
                self.spend(ranges.as_slice().len() as u64)?;
                complete.extend_from_slice(ranges.as_slice());
                rest = after;
            } else if let Some((ranges, after)) = self.perl(rest)? {
                complete.extend_from_slice(ranges.as_slice());
                rest = after;
            } else {
                let (range, after) = range(rest, begin)?;
                self.spend(1)?;
                plain.push(range);
                rest = after;
            }
        }
        if self.flags.fold {
            let ranges = Ranges::new(plain);
            self.spend(ranges.folding_work() / 16)?;
            complete.extend_from_slice(ranges.folded().as_slice());
        } else {
            complete.append(&mut plain);
        }
        let ranges = Ranges::new(complete);
        self.class(Arc::new(if negated { ranges.negated() } else { ranges }))?;
        Ok(rest)
    }
}

/// Parses a character of a class, or a range. A hyphen at the end is literal.
fn range<'p>(begin: &'p str, class: &str) -> Result<((u32, u32), &'p str), String> {
    let (low, rest) = member(begin, class)?;
    let to = rest
        .strip_prefix('-')
        .filter(|to| !to.is_empty() && !to.starts_with(']'));
    let Some(to) = to else {
        return Ok(((low, low), rest));
    };
    let (high, rest) = member(to, class)?;
    if high < low {
        return refuse("invalid character class range", between(begin, rest));
    }
    Ok(((low, high), rest))
}

fn member<'p>(text: &'p str, class: &str) -> Result<(u32, &'p str), String> {
    match text.chars().next() {
        None => refuse("missing closing ]", class),
        Some('\\') => character(text),
        Some(other) => Ok((other.into(), &text[other.len_utf8()..])),
    }
}

/// Parses an escape for a single character.
fn character(begin: &str) -> Result<(u32, &str), String> {
    let mut letters = begin[1..].chars();
    let Some(letter) = letters.next() else {
        return refuse("trailing backslash at end of expression", "");
    };
    let rest = letters.as_str();
    let control = match letter {
        'a' => 0x07,
        'f' => 0x0C,
        'n' => 0x0A,
        'r' => 0x0D,
        't' => 0x09,
        'v' => 0x0B,
        'x' => return hexadecimal(begin, rest),
        '0'..='7' => {
            let octal = |digit: &u8| (b'0'..=b'7').contains(digit);
            let digits = begin[1..].bytes().take(3).take_while(octal).count();
            // A single digit would be a backreference, which Go does not have.
            if letter != '0' && digits < 2 {
                return refuse("invalid escape sequence", between(begin, rest));
            }
            let point = u32::from_str_radix(&begin[1..1 + digits], 8).unwrap_or_default();
            return Ok((point, &begin[1 + digits..]));
        }
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => other.into(),
        _ => return refuse("invalid escape sequence", between(begin, rest)),
    };
    Ok((control, rest))
}

fn hexadecimal<'p>(begin: &'p str, after: &'p str) -> Result<(u32, &'p str), String> {
    let mut letters = after.chars();
    let mut point = 0;
    let braces = after.starts_with('{');
    if braces {
        letters.next();
    }
    let mut digits = 0;
    while braces || digits < 2 {
        let letter = letters.next();
        if braces && letter == Some('}') && digits > 0 {
            break;
        }
        match letter.and_then(|letter| letter.to_digit(16)) {
            Some(digit) if point <= 0x10FFFF / 16 => point = 16 * point + digit,
            _ => return refuse("invalid escape sequence", between(begin, letters.as_str())),
        }
        digits += 1;
    }
    if point > 0x10FFFF {
        return refuse("invalid escape sequence", between(begin, letters.as_str()));
    }
    Ok((point, letters.as_str()))
}
