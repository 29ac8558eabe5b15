//! Finds the values at a path in the bytes of a JSON document, without parsing the rest of it.
//!
//! The documents were printed by this program, or by a database that puts a space after colons and commas, so they are well formed. On any other bytes a search ends early.

use crate::path::Step;

/// A value that a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Leaf<'d> {
    /// The text of a string with no escapes in it.
    Text(&'d str),
    /// The text of a string that had escapes.
    Unescaped(String),
    /// A number, `true` or `false`, as printed.
    Plain(&'d str),
    /// A list or an object.
    Composite,
}

impl Leaf<'_> {
    /// Returns the text that selectors compare.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Leaf::Text(text) | Leaf::Plain(text) => Some(text),
            Leaf::Unescaped(text) => Some(text),
            Leaf::Composite => None,
        }
    }
}

/// Calls a function with every value at the path; nulls do not count. The function returns whether to go on.
pub(crate) fn leaves<'d>(
    document: &'d [u8],
    path: &[Step],
    found: &mut dyn FnMut(Leaf<'d>) -> bool,
) {
    let mut scanner = Scanner { document, at: 0 };
    scanner.search(path, found);
}

struct Scanner<'d> {
    document: &'d [u8],
    at: usize,
}

impl<'d> Scanner<'d> {
    fn peek(&self) -> u8 {
        self.document.get(self.at).copied().unwrap_or(0)
    }

    /// Searches the value at the present position, and moves behind it if `None` or `Some(true)` is returned.
    fn search(&mut self, path: &[Step], found: &mut dyn FnMut(Leaf<'d>) -> bool) -> Option<bool> {
        let Some((step, rest)) = path.split_first() else {
            return match self.leaf()? {
                Some(leaf) => Some(found(leaf)),
                None => Some(true),
            };
        };
        match (step, self.peek()) {
            (Step::Key(key), b'{') => {
                self.at += 1;
                while self.peek() != b'}' {
                    let raw = self.string()?;
                    self.expect(b':')?;
                    self.space();
                    if is_key(raw, key) {
                        // Keys occur once, and what follows an object is of no interest unless it is in a list.
                        if !self.search(rest, found)? {
                            return Some(false);
                        }
                    } else {
                        self.skip()?;
                    }
                    self.comma(b'}')?;
                }
                self.at += 1;
            }
            (Step::Each | Step::At(_), b'[') => {
                self.at += 1;
                let mut index = 0;
                while self.peek() != b']' {
                    let wanted = matches!(step, Step::Each) || *step == Step::At(index);
                    match wanted {
                        true => {
                            if !self.search(rest, found)? {
                                return Some(false);
                            }
                        }
                        false => self.skip()?,
                    }
                    index += 1;
                    self.comma(b']')?;
                }
                self.at += 1;
            }
            _ => self.skip()?,
        }
        Some(true)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek() == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        self.at += usize::from(self.peek() == b' ');
    }

    /// Moves over a comma; at the end of the container it stays.
    fn comma(&mut self, end: u8) -> Option<()> {
        match self.peek() {
            b',' => {
                self.at += 1;
                self.space();
            }
            byte if byte == end => {}
            _ => return None,
        }
        Some(())
    }

    /// Returns the bytes of a string between its quotes, and moves behind it.
    fn string(&mut self) -> Option<&'d [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.document.get(self.at..)?;
            let offset = memchr::memchr2(b'"', b'\\', rest)?;
            self.at += offset;
            if rest[offset] == b'"' {
                let text = &self.document[start..self.at];
                self.at += 1;
                return Some(text);
            }
            self.at += 2;
        }
    }

    /// Moves behind the value at the present position.
    fn skip(&mut self) -> Option<()> {
        match self.peek() {
            b'"' => self.string().map(drop),
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match self.peek() {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        0 => return None,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
            }
            _ => self.plain().map(drop),
        }
    }

    fn plain(&mut self) -> Option<&'d str> {
        let start = self.at;
        while !matches!(self.peek(), b',' | b'}' | b']' | 0) {
            self.at += 1;
        }
        std::str::from_utf8(&self.document[start..self.at]).ok()
    }

    fn leaf(&mut self) -> Option<Option<Leaf<'d>>> {
        match self.peek() {
            b'"' => {
                let raw = self.string()?;
                if memchr::memchr(b'\\', raw).is_none() {
                    return std::str::from_utf8(raw)
                        .ok()
                        .map(|text| Some(Leaf::Text(text)));
                }
                unescaped(raw).map(|text| Some(Leaf::Unescaped(text)))
            }
            b'{' | b'[' => {
                self.skip()?;
                Some(Some(Leaf::Composite))
            }
            _ => match self.plain()? {
                "null" => Some(None),
                text => Some(Some(Leaf::Plain(text))),
            },
        }
    }
}

fn is_key(raw: &[u8], key: &str) -> bool {
    raw == key.as_bytes()
        || memchr::memchr(b'\\', raw).is_some() && unescaped(raw).as_deref() == Some(key)
}

/// Decodes the inside of a string; the parser of documents does it.
fn unescaped(raw: &[u8]) -> Option<String> {
    let mut document = Vec::with_capacity(raw.len() + 2);
    document.push(b'"');
    document.extend_from_slice(raw);
    document.push(b'"');
    let parsed = bareboat_wire::json::parse(&document).ok()?;
    parsed.value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::leaves;
    use crate::path::Path;

    fn found(document: &str, path: &str) -> Vec<String> {
        let path = Path::parse(path).expect("the path parses");
        let mut texts = Vec::new();
        leaves(document.as_bytes(), path.steps(), &mut |leaf| {
            texts.push(leaf.text().unwrap_or("<composite>").to_owned());
            true
        });
        texts
    }

    const POD: &str = r#"{"a":{"x":[1,{"y":"}]"}],"q\"":"w\n"},"l":[{"f":"1"},{"f":2},{"g":3},{"f":null},{"f":{"h":[]}}],"z":true}"#;

    #[test]
    fn values_are_found_anywhere() {
        assert_eq!(found(POD, "z"), ["true"]);
        assert_eq!(found(POD, "a.x[1].y"), ["}]"]);
        assert_eq!(found(POD, "a['q\"']"), ["w\n"]);
        assert_eq!(found(POD, "l[].f"), ["1", "2", "<composite>"]);
        assert_eq!(found(POD, "l[1].f"), ["2"]);
        assert!(found(POD, "l.f").is_empty());
        assert!(found(POD, "z.y").is_empty());
        assert!(found(POD, "missing").is_empty());
    }

    #[test]
    fn broken_documents_end_the_search() {
        for end in 0..POD.len() {
            if POD.is_char_boundary(end) {
                found(&POD[..end], "l[].f");
                found(&POD[..end], "z");
            }
        }
    }
}
