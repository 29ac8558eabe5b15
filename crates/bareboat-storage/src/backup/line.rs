//! The format of records in a backup: one line of JSON per record. The last member contains the stored bytes unchanged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::backend::Record;
use crate::value::Value;

#[derive(Serialize)]
struct Head<'a> {
    rev: u64,
    #[serde(skip_serializing_if = "is_zero")]
    prev: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    cluster: &'a str,
    resource: &'a str,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
}

#[derive(Deserialize)]
struct OwnedHead {
    rev: u64,
    #[serde(default)]
    prev: u64,
    #[serde(default)]
    cluster: String,
    resource: String,
    key: String,
    actor: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The separator before the last member. Quotes are escaped within strings, so the first match begins the last member.
const VALUE: &[u8] = br#","value":"#;
const BASE64: &[u8] = br#","base64":""#;
const NULL: &[u8] = b"null";

/// Appends the line of `record` to `out`.
pub(super) fn encode(record: &Record, out: &mut Vec<u8>) -> std::io::Result<()> {
    let head = Head {
        rev: record.revision,
        prev: record.prev,
        cluster: &record.cluster,
        resource: &record.resource,
        key: &record.key,
        actor: record.actor.as_deref(),
    };
    serde_json::to_writer(&mut *out, &head)?;
    out.pop();
    match &record.value {
        None => {
            out.extend_from_slice(VALUE);
            out.extend_from_slice(NULL);
        }
        Some(value) if is_text(value) => {
            out.extend_from_slice(VALUE);
            value.append_to(out);
        }
        Some(value) => {
            out.extend_from_slice(BASE64);
            out.extend_from_slice(STANDARD.encode(value.to_bytes()).as_bytes());
            out.push(b'"');
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Returns whether the bytes look like a JSON object on one line. Encrypted values do not.
fn is_text(value: &Value) -> bool {
    let stored = value.to_bytes();
    stored.starts_with(b"{")
        && stored.ends_with(b"}")
        && stored.iter().all(|byte| *byte >= b' ')
        && std::str::from_utf8(&stored).is_ok()
}

/// Parses a line without its newline.
pub(super) fn decode(line: &[u8]) -> Option<Record> {
    let plain = memmem::find(line, VALUE);
    let coded = memmem::find(line, BASE64);
    let (end, value) = match (plain, coded) {
        (Some(at), other) if other.is_none_or(|other| at < other) => {
            let stored = line[at + VALUE.len()..].strip_suffix(b"}")?;
            let value = match stored == NULL {
                true => None,
                false => Some(Value::new(stored.to_vec().into())),
            };
            (at, value)
        }
        (_, Some(at)) => {
            let stored = line[at + BASE64.len()..].strip_suffix(b"\"}")?;
            (at, Some(Value::new(STANDARD.decode(stored).ok()?.into())))
        }
        _ => return None,
    };
    let head: OwnedHead = serde_json::from_slice(&[&line[..end], b"}"].concat()).ok()?;
    Some(Record {
        revision: head.rev,
        prev: head.prev,
        cluster: head.cluster.into(),
        resource: head.resource.into(),
        key: head.key.into(),
        actor: head.actor.map(Into::into),
        value,
    })
}
