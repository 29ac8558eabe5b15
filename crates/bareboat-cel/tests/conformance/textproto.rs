//! A parser of protobuf's text format that knows no message types: fields by name, in order.

/// A message: fields with their values, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// Names and values.
    pub(crate) fields: Vec<(String, Field)>,
}

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// A nested message.
    Message(Message),
    /// A string, unescaped.
    Text(Vec<u8>),
    /// A number, name or boolean as written.
    Word(String),
}

impl Message {
    /// Returns the first field of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Field> {
        self.all(name).next()
    }

    /// Returns all fields of that name.
    pub(crate) fn all<'m, 'n>(
        &'m self,
        name: &'n str,
    ) -> impl Iterator<Item = &'m Field> + use<'m, 'n> {
        self.fields
            .iter()
            .filter(move |(field, _)| field == name)
            .map(|(_, value)| value)
    }

    /// Returns the first nested message of that name.
    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        self.messages(name).next()
    }

    /// Returns all nested messages of that name.
    pub(crate) fn messages<'m, 'n>(
        &'m self,
        name: &'n str,
    ) -> impl Iterator<Item = &'m Message> + use<'m, 'n> {
        self.all(name).filter_map(|field| match field {
            Field::Message(message) => Some(message),
            _ => None,
        })
    }

    /// Returns the text of the first field of that name.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Field::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            Field::Word(word) => Some(word.clone()),
            Field::Message(_) => None,
        }
    }
}

/// Parses a whole file.
pub(crate) fn parse(source: &str) -> Message {
    let mut reader = Reader {
        bytes: source.as_bytes(),
        at: 0,
    };
    reader.message(None)
}

struct Reader<'s> {
    bytes: &'s [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        while self.at < self.bytes.len() {
            match self.peek() {
                b'#' => {
                    while self.at < self.bytes.len() && self.peek() != b'\n' {
                        self.at += 1;
                    }
                }
                byte if byte.is_ascii_whitespace() || byte == b',' || byte == b';' => self.at += 1,
                _ => return,
            }
        }
    }

    fn message(&mut self, close: Option<u8>) -> Message {
        let mut message = Message::default();
        loop {
            self.skip();
            if self.at >= self.bytes.len() {
                return message;
            }
            if Some(self.peek()) == close {
                self.at += 1;
                return message;
            }
            let name = match self.peek() {
                b'[' => {
                    let start = self.at;
                    while self.peek() != b']' {
                        self.at += 1;
                    }
                    self.at += 1;
                    String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned()
                }
                _ => self.word(),
            };
            self.skip();
            if self.peek() == b':' {
                self.at += 1;
                self.skip();
            }
            if self.peek() == b'[' {
                self.at += 1;
                loop {
                    self.skip();
                    if self.peek() == b']' {
                        self.at += 1;
                        break;
                    }
                    let value = self.value();
                    message.fields.push((name.clone(), value));
                }
            } else {
                let value = self.value();
                message.fields.push((name, value));
            }
        }
    }

    fn value(&mut self) -> Field {
        match self.peek() {
            b'{' => {
                self.at += 1;
                Field::Message(self.message(Some(b'}')))
            }
            b'<' => {
                self.at += 1;
                Field::Message(self.message(Some(b'>')))
            }
            b'"' | b'\'' => {
                let mut text = self.string();
                loop {
                    // Adjacent literals are joined.
                    self.skip();
                    if !matches!(self.peek(), b'"' | b'\'') {
                        return Field::Text(text);
                    }
                    text.extend(self.string());
                }
            }
            _ => Field::Word(self.word()),
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self.peek().is_ascii_alphanumeric() || b"_.-+".contains(&self.peek()) {
            if self.at >= self.bytes.len() {
                break;
            }
            self.at += 1;
        }
        assert!(self.at > start, "no word at byte {start}");
        String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned()
    }

    fn string(&mut self) -> Vec<u8> {
        let quote = self.peek();
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let byte = self.peek();
            self.at += 1;
            if byte == quote {
                return out;
            }
            if byte != b'\\' {
                out.push(byte);
                continue;
            }
            let escape = self.peek();
            self.at += 1;
            match escape {
                b'n' => out.push(b'\n'),
                b't' => out.push(b'\t'),
                b'r' => out.push(b'\r'),
                b'a' => out.push(7),
                b'b' => out.push(8),
                b'f' => out.push(12),
                b'v' => out.push(11),
                b'x' => out.push(self.number(2, 16) as u8),
                b'u' => self.point(4, &mut out),
                b'U' => self.point(8, &mut out),
                b'0'..=b'7' => {
                    self.at -= 1;
                    out.push(self.number(3, 8) as u8);
                }
                other => out.push(other),
            }
        }
    }

    fn number(&mut self, most: usize, radix: u32) -> u32 {
        let start = self.at;
        while self.at - start < most && (self.peek() as char).is_digit(radix) {
            self.at += 1;
        }
        let digits = String::from_utf8_lossy(&self.bytes[start..self.at]);
        u32::from_str_radix(&digits, radix).expect("digits were counted")
    }

    fn point(&mut self, digits: usize, out: &mut Vec<u8>) {
        let point = self.number(digits, 16);
        let character = char::from_u32(point).unwrap_or('\u{fffd}');
        out.extend(character.encode_utf8(&mut [0; 4]).bytes());
    }
}
