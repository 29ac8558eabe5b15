//! Formats made from the compact JSON of a list, piece by piece: indented JSON and YAML.

use crate::verbs::kind_request::reread;
use bareboat_api::{Map, Status, Value};
use bareboat_wire::yaml;
use bytes::Bytes;

/// The output format of a list.
pub(super) enum TextFormat {
    /// Compact JSON, unchanged.
    Compact,
    /// JSON with line breaks and indents.
    Pretty(Pretty),
    /// YAML.
    Yaml(Yaml),
}

impl TextFormat {
    /// Returns the bytes before the items. `head` is the compact JSON before them.
    pub(super) fn head(&mut self, head: Vec<u8>) -> Result<Bytes, Status> {
        match self {
            TextFormat::Compact => Ok(head.into()),
            TextFormat::Pretty(pretty) => Ok(pretty.write(&head)),
            TextFormat::Yaml(yaml) => yaml.head(head),
        }
    }

    /// Returns the cost of writing so many bytes, in bytes of work.
    pub(super) fn effort(&self, bytes: usize) -> usize {
        match self {
            TextFormat::Compact => 0,
            TextFormat::Pretty(_) | TextFormat::Yaml(_) => bytes,
        }
    }

    /// Formats some items, which are joined by commas, with a leading comma unless they are the first.
    pub(super) fn items(&mut self, items: Bytes) -> Result<Bytes, Status> {
        match self {
            TextFormat::Compact => Ok(items),
            TextFormat::Pretty(pretty) => Ok(pretty.write(&items)),
            TextFormat::Yaml(yaml) => yaml.items(&items),
        }
    }

    /// Returns the bytes after the items. `tail` is the compact JSON after them.
    pub(super) fn tail(&mut self, tail: &'static [u8]) -> Bytes {
        match self {
            TextFormat::Compact => Bytes::from_static(tail),
            TextFormat::Pretty(pretty) => pretty.write(tail),
            TextFormat::Yaml(yaml) => yaml.tail(),
        }
    }
}

/// Indents compact JSON as it arrives. It only tracks strings and brackets.
#[derive(Default)]
pub(super) struct Pretty {
    level: usize,
    /// The last byte opened a bracket; unless the next one closes it, a line starts.
    opened: bool,
    in_string: bool,
    escaped: bool,
}

impl Pretty {
    fn write(&mut self, json: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(json.len() + json.len() / 2);
        for &byte in json {
            if self.in_string {
                out.push(byte);
                self.in_string = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            match byte {
                b'}' | b']' => {
                    self.level = self.level.saturating_sub(1);
                    if !std::mem::take(&mut self.opened) {
                        self.line(&mut out);
                    }
                    out.push(byte);
                }
                b',' => {
                    out.push(byte);
                    self.line(&mut out);
                }
                b':' => out.extend_from_slice(b": "),
                _ => {
                    if std::mem::take(&mut self.opened) {
                        self.line(&mut out);
                    }
                    out.push(byte);
                    self.in_string = byte == b'"';
                    if matches!(byte, b'{' | b'[') {
                        self.level += 1;
                        self.opened = true;
                    }
                }
            }
        }
        out.into()
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.level, b' ');
    }
}

/// Writes a list as YAML with sorted keys, so that some of the list's own keys follow its items.
#[derive(Default)]
pub(super) struct Yaml {
    after: Vec<u8>,
    has_items: bool,
}

impl Yaml {
    fn head(&mut self, mut head: Vec<u8>) -> Result<Bytes, Status> {
        head.extend_from_slice(b"]}");
        let Value::Object(list) = reread(&head)? else {
            return Err(Status::internal("a list could not be read back"));
        };
        let is_items = |key: &str| matches!(key, "items" | "rows");
        let mut parts = [Map::new(), Map::new()];
        let mut key = "items";
        let mut part = 0;
        for (name, value) in list.iter() {
            if is_items(name) {
                key = if name == "rows" { "rows" } else { "items" };
                part = 1;
            } else {
                parts[part].insert(name, value.clone());
            }
        }
        let [before, after] = parts.map(|part| match part.is_empty() {
            true => Vec::new(),
            false => yaml::print(&Value::Object(part)),
        });
        self.after = after;
        let mut out = before;
        out.extend_from_slice(key.as_bytes());
        out.push(b':');
        Ok(out.into())
    }

    fn items(&mut self, items: &[u8]) -> Result<Bytes, Status> {
        let items = items.strip_prefix(b",").unwrap_or(items);
        let array = [b"[", items, b"]"].concat();
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.has_items, true) {
            out.push(b'\n');
        }
        out.extend_from_slice(&yaml::print(&reread(&array)?));
        Ok(out.into())
    }

    fn tail(&mut self) -> Bytes {
        let mut out = Vec::new();
        if !self.has_items {
            out.extend_from_slice(b" []\n");
        }
        out.append(&mut self.after);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: [&str; 2] = [
        r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":["#,
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":["#,
    ];
    const ITEMS: [&str; 3] = [
        r#"{"metadata":{"name":"a","labels":{}},"data":{"k":"x: {\"y\":[1,2]}\\"},"list":[],"n":[1,[true,null]]}"#,
        r#",{"metadata":{"name":"b"}},{"metadata":{"name":"c"},"data":{"text":"two\nlines\n"}}"#,
        r#",{}"#,
    ];

    fn written(mut form: TextFormat, head: &str, items: &[&'static str]) -> String {
        let mut out = form.head(head.into()).expect("a head").to_vec();
        for items in items {
            let items = Bytes::from_static(items.as_bytes());
            out.extend_from_slice(&form.items(items).expect("items"));
        }
        out.extend_from_slice(&form.tail(b"]}"));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn formatting_in_pieces_gives_the_same_text_as_at_once() {
        for head in HEADS {
            for count in 0..=ITEMS.len() {
                let items = &ITEMS[..count];
                let compact = written(TextFormat::Compact, head, items);
                let value = reread(compact.as_bytes()).expect("a list");
                let yaml = written(TextFormat::Yaml(Yaml::default()), head, items);
                assert_eq!(yaml.as_bytes(), yaml::print(&value));
                let pretty = written(TextFormat::Pretty(Pretty::default()), head, items);
                let again = reread(pretty.as_bytes()).expect("a list");
                assert_eq!(again, value);
                // Keys are sorted when a value is printed; apart from their order the text is the same.
                let sorted = |text: &[u8]| {
                    let text = String::from_utf8_lossy(text).replace(',', "");
                    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                    lines.sort();
                    lines
                };
                assert_eq!(sorted(pretty.as_bytes()), sorted(&value.to_json_pretty()));
            }
        }
    }
}
