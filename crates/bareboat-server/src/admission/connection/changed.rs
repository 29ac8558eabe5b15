//! Options of a connection that hooks changed, written back into the URI that the handler reads.

use super::{ConnectionOptions, FIXED, is_empty, read};
use crate::request::ask::Ask;
use crate::request::query::Query;
use bareboat_api::{Map, Object, Status, Value};
use http::Uri;
use http::uri::PathAndQuery;
use std::fmt::Write as _;

impl ConnectionOptions {
    /// Returns the URI of the connection: the one of the request, with the options that hooks changed. A change that a
    /// query cannot express is an error, because the handler would not see what hooks admitted.
    pub(crate) fn uri(&self, ask: &Ask) -> Result<Uri, Status> {
        if self.object == self.sent {
            return Ok(ask.uri.clone());
        }
        let query = self.query(&ask.query).ok_or_else(unsupported)?;
        let path = ask.uri.path();
        let target = match query.is_empty() {
            true => path.to_owned(),
            false => format!("{path}?{query}"),
        };
        let mut parts = ask.uri.clone().into_parts();
        let target = PathAndQuery::try_from(target).map_err(|_| unsupported())?;
        parts.path_and_query = Some(target);
        Uri::from_parts(parts).map_err(|_| unsupported())
    }

    /// Returns the query with the changed options; `None` if it cannot express them.
    fn query(&self, sent: &Query) -> Option<String> {
        let fields = self.fields();
        let members = self.sent.map().keys().chain(self.object.map().keys());
        let mut changed: Vec<&str> = members
            .filter(|name| given(&self.sent, name) != given(&self.object, name))
            .collect();
        bareboat_api::sort_by(&mut changed, Ord::cmp);
        changed.dedup();
        let known = |name: &str| fields.iter().any(|field| field.json == name);
        let expressible = |name: &&str| known(name) && !FIXED.contains(name);
        if !changed.iter().all(expressible) {
            return None;
        }
        let mut out = String::new();
        for (name, text) in sent.iter().filter(|(name, _)| !changed.contains(name)) {
            add(&mut out, name, text);
        }
        for name in changed {
            match given(&self.object, name) {
                // Handlers may have another default.
                None if given(&self.sent, name) == Some(&Value::Bool(true)) => {
                    add(&mut out, name, "false");
                }
                None => {}
                Some(Value::Array(items)) => {
                    for item in items {
                        add(&mut out, name, &text(item)?);
                    }
                }
                Some(value) => add(&mut out, name, &text(value)?),
            }
        }
        // The query must mean what hooks admitted, which a value of a wrong type does not.
        let mut meant = Map::new();
        read(fields, &Query::parse(&out).ok()?, &mut meant);
        let mut admitted = self.object.map().clone();
        admitted.retain(|name, value| !FIXED.contains(&name) && !is_empty(value));
        (meant == admitted).then_some(out)
    }
}

fn unsupported() -> Status {
    Status::internal(
        "admission changed the options of the connection in a way that is not supported",
    )
}

fn given<'a>(options: &'a Object, name: &str) -> Option<&'a Value> {
    options.get(name).filter(|value| !value.is_null())
}

/// Returns a value as a query has it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

fn add(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    escape(name, query);
    query.push('=');
    escape(value, query);
}

fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}
