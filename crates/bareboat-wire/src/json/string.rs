//! Quoted strings: a fast scan over plain text, and escapes.

use super::{Fault, Reader};
use bareboat_api::Str;

impl Reader<'_> {
    /// Parses a string; the cursor is at its opening quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Str, Fault> {
        self.at += 1;
        let start = self.at;
        self.skip_plain();
        if self.peek() == Some(b'"') {
            let text = Str::new(&self.text[start..self.at]);
            self.at += 1;
            return Ok(text);
        }
        self.string_with_escapes(start)
    }

    fn string_with_escapes(&mut self, start: usize) -> Result<Str, Fault> {
        let mut out = String::from(&self.text[start..self.at]);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Str::from(out));
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => {
                    return Err(self.fault("control characters in strings must be escaped"));
                }
                None => return Err(self.expected("'\"' at the end of the string")),
            }
            let run = self.at;
            self.skip_plain();
            out.push_str(&self.text[run..self.at]);
        }
    }

    /// Moves to the next quote, backslash, control character or the end.
    #[inline]
    fn skip_plain(&mut self) {
        // Eight bytes at a time: a byte below 0x20, or equal to a quote or backslash, sets its top
        // bit in the sum. Bytes above 0x7f may be false hits; the slow loop handles them.
        const ONES: u64 = u64::MAX / 255;
        const TOPS: u64 = ONES << 7;
        const QUOTES: u64 = ONES * (b'"' as u64);
        const BACKSLASHES: u64 = ONES * (b'\\' as u64);
        let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
        let rest = &self.bytes[self.at..];
        let mut skipped = 0;
        for chunk in rest.chunks_exact(8) {
            let word = u64::from_le_bytes(chunk.try_into().expect("chunks are eight bytes long"));
            let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
            let hits = control | zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES);
            if hits != 0 {
                // Borrows only propagate upwards, so the lowest hit is a true one.
                self.at += skipped + (hits.trailing_zeros() / 8) as usize;
                return;
            }
            skipped += 8;
        }
        let tail = &rest[skipped..];
        let plain = tail
            .iter()
            .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
            .unwrap_or(tail.len());
        self.at += skipped + plain;
    }

    /// Parses an escape; the cursor is at the backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        self.at += 1;
        let character = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode_escape(start);
            }
            _ => return Err(self.expected("an escape after '\\'")),
        };
        self.at += 1;
        Ok(character)
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, Fault> {
        let first = self.four_hex_digits()?;
        let code = match first {
            0xD800..=0xDBFF if self.bytes[self.at..].starts_with(b"\\u") => {
                self.at += 2;
                let second = self.four_hex_digits()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(lone_surrogate(start));
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| lone_surrogate(start))
    }

    fn four_hex_digits(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expected("four hexadecimal digits after '\\u'"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

#[cold]
fn lone_surrogate(offset: usize) -> Fault {
    Fault::new(offset, "half of a surrogate pair is missing")
}
