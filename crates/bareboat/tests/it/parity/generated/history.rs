//! Comparable responses: volatile values are replaced by the step in which they were first seen.
//!
//! So a record shows whether a version, a time or an address changed. Entries of managed fields become members of a
//! map, so that a change of one entry is small.

use super::super::normal::{is_address, plain};
use super::tree::difference;
use crate::support::{Answer, Value, json};
use std::collections::HashMap;

/// The values seen for one object so far.
#[derive(Default)]
pub(super) struct History {
    step: usize,
    first: HashMap<(&'static str, String), usize>,
    live: Value,
}

impl History {
    /// Records a step: the response, and the object afterwards.
    pub(super) fn record(&mut self, answer: &Answer, live: Value) -> Value {
        self.step += 1;
        let live = self.form(live);
        let body = serde_json::from_slice(&answer.bytes).unwrap_or_else(|_| answer.text().into());
        let mut body = self.form(body);
        if body["details"]["causes"]
            .as_array()
            .is_some_and(|causes| causes.len() > 1)
        {
            body["message"] = "<all causes>".into();
        }
        plain_patch(&mut body);
        if let Some((start, findings)) = body["message"]
            .as_str()
            .and_then(|text| text.split_once("strict decoding error: "))
        {
            let mut findings: Vec<&str> = findings.split(", ").collect();
            findings.sort_unstable();
            let findings = findings.join(", ");
            body["message"] = format!("{start}strict decoding error: {findings}").into();
        }
        let mut recorded = json!({"code": answer.code});
        let changed = difference(&self.live, &live);
        if changed != json!({}) {
            recorded["live"] = changed;
        }
        // Usually the response is the current object.
        let beyond = match body["kind"] == live["kind"] {
            true => difference(&live, &body),
            false => body,
        };
        if beyond != json!({}) {
            recorded["body"] = beyond;
        }
        let mut warnings = answer.headers("warning");
        // kube-apiserver reports unknown members in the order of the text, which is not kept here.
        warnings.sort();
        if !warnings.is_empty() {
            recorded["warning"] = warnings.into();
        }
        self.live = live;
        recorded
    }

    fn form(&mut self, mut value: Value) -> Value {
        self.tell(&mut value);
        if let Some(metadata) = value.get_mut("metadata")
            && metadata["managedFields"].is_array()
        {
            metadata["managedFields"] = entries(&metadata["managedFields"]);
        }
        value
    }

    /// Returns the step in which a value was first seen.
    fn since(&mut self, what: &'static str, value: &str) -> Value {
        let step = self.step;
        let first = self.first.entry((what, value.to_owned())).or_insert(step);
        format!("<{what} of step {first}>").into()
    }

    fn tell(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (key, member) in members.iter_mut() {
                    let what = match (key.as_str(), &*member) {
                        ("resourceVersion", Value::String(text)) if is_number(text) => "version",
                        ("uid", Value::String(text)) if plain(text) == "<uid>" => "uid",
                        // Which port replaces a released one does not matter.
                        ("nodePort" | "healthCheckNodePort", Value::Number(_)) => {
                            *member = "<port>".into();
                            continue;
                        }
                        (_, Value::String(text)) if plain(text) == "<time>" => "time",
                        _ => {
                            self.tell(member);
                            continue;
                        }
                    };
                    let text = match &*member {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    *member = self.since(what, &text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.tell(item)),
            Value::String(text) if is_address(text) => {
                *value = self.since("address", &text.clone())
            }
            Value::String(text) => *text = plain(text),
            _ => {}
        }
    }
}

/// Returns the error of a patch without the patch itself and the decoder's text.
fn plain_patch(body: &mut Value) {
    if body["details"]["causes"][0]["field"] != "patch" {
        return;
    }
    let strict = |text: &Value| {
        let text = text.as_str().unwrap_or("");
        let from = text.find("strict decoding error");
        from.map_or("<unfit>", |from| &text[from..]).to_owned()
    };
    body["message"] = strict(&body["message"]).into();
    let cause = &mut body["details"]["causes"][0];
    cause["message"] = strict(&cause["message"]).into();
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns managed fields by manager, and their order.
fn entries(list: &Value) -> Value {
    let mut reported = json!({"order": []});
    for entry in list.as_array().into_iter().flatten() {
        let mut rest = entry.clone();
        let mut name = String::new();
        for key in ["manager", "operation", "apiVersion", "subresource"] {
            if let Some(members) = rest.as_object_mut()
                && let Some(Value::String(text)) = members.remove(key)
            {
                name.push_str(&text);
            }
            name.push(' ');
        }
        let name = name.trim_end().to_owned();
        if let Some(order) = reported["order"].as_array_mut() {
            order.push(name.clone().into());
        }
        reported[name] = rest;
    }
    reported
}
