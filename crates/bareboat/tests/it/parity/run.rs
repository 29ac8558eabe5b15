//! Sends a corpus to a server and records the responses.

use super::corpus::{Case, Corpus};
use super::edit::{brief, edit};
use super::normal::recorded;
use super::target::Target;
use crate::support::{APPLY, Answer, JSON_PATCH, MERGE, PROTOBUF, STRATEGIC, TABLE, Value, json};
use bareboat_builtin::facts;
use std::collections::HashMap;

/// A step and its response in recorded form.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) answer: Value,
}

/// Sends everything in a corpus.
pub(super) async fn run(target: &Target, corpus: &Corpus) -> Vec<Recorded> {
    let namespace = format!("parity-{}", corpus.file);
    let body = json!({"metadata": {"name": namespace}}).to_string();
    let path = "/api/v1/namespaces";
    target.send("POST", path, &[], body).await;
    let mut run = Run {
        target,
        namespace: &namespace,
        seen: HashMap::new(),
        recorded: Vec::new(),
    };
    for case in &corpus.cases {
        run.case(case).await;
    }
    run.recorded
}

struct Run<'a> {
    target: &'a Target,
    namespace: &'a str,
    /// How often a name was used.
    seen: HashMap<String, usize>,
    recorded: Vec<Recorded>,
}

impl Run<'_> {
    async fn case(&mut self, case: &Case) {
        for need in &case.needs {
            for (name, content) in &need.objects {
                let (path, body) = (need.collection(self.namespace), need.object(name, content));
                let answer = self.target.send("POST", &path, &[], body.to_string()).await;
                assert_eq!(answer.code, 201, "{}", answer.text());
            }
            self.target.catch_up().await;
        }
        for (name, content) in &case.objects {
            self.create(case, name, content).await;
        }
        if let Some((name, content)) = case.objects.first() {
            self.usual(case, name, content).await;
        }
        for (name, status) in &case.status {
            self.status(case, name, status).await;
        }
        for step in &case.steps {
            self.step(case, step).await;
        }
        for selector in &case.selectors {
            self.select(case, selector).await;
        }
        for edits in &case.variants {
            self.variant(case, edits).await;
        }
        for (name, _) in &case.objects {
            let path = self.path(case, name);
            let answer = self.target.send("DELETE", &path, &[], String::new()).await;
            self.note(format!("delete {}", label(case, name)), recorded(&answer));
        }
        for need in &case.needs {
            for (name, _) in &need.objects {
                let path = self.path(need, name);
                self.target.send("DELETE", &path, &[], String::new()).await;
            }
        }
    }

    fn path(&self, case: &Case, name: &str) -> String {
        format!("{}/{name}", case.collection(self.namespace))
    }

    fn note(&mut self, name: String, answer: Value) {
        let count = self.seen.entry(name.clone()).or_default();
        *count += 1;
        let name = match count {
            1 => name,
            n => format!("{name} #{n}"),
        };
        self.recorded.push(Recorded { name, answer });
    }

    async fn create(&mut self, case: &Case, name: &str, content: &Value) {
        let path = case.collection(self.namespace);
        let body = case.object(name, content).to_string();
        let answer = self.target.send("POST", &path, &[], body).await;
        self.note(format!("create {}", label(case, name)), recorded(&answer));
        if answer.code != 201 {
            return;
        }
        self.target.settle(&case.kind.group).await;
        self.table(case, name, "table").await;
        self.protobuf(case, name).await;
    }

    /// Records columns and cells of one object.
    async fn table(&mut self, case: &Case, name: &str, what: &str) {
        let path = format!("{}?includeObject=None", self.path(case, name));
        let headers = [("accept", TABLE)];
        let answer = self
            .target
            .send("GET", &path, &headers, String::new())
            .await;
        let mut answer = recorded(&answer);
        if let Some(columns) = answer["body"]["columnDefinitions"].as_array() {
            // Only the beginning: descriptions are long and derive from the type.
            let brief = columns.iter().map(|column| {
                let text = |key: &str| column[key].as_str().unwrap_or("").to_owned();
                let (name, ty, format) = (text("name"), text("type"), text("format"));
                json!(format!("{name}, {ty} {format}, {}", column["priority"]))
            });
            answer["body"] = json!({
                "columns": brief.collect::<Vec<_>>(),
                "cells": answer["body"]["rows"][0]["cells"],
                "conditions": answer["body"]["rows"][0]["conditions"],
            });
        }
        self.note(format!("{what} {}", label(case, name)), answer);
    }

    /// Checks that the protobuf form of an object equals its JSON form.
    async fn protobuf(&mut self, case: &Case, name: &str) {
        let path = self.path(case, name);
        let json = self.target.send("GET", &path, &[], String::new()).await;
        let headers = [("accept", PROTOBUF)];
        let bytes = self
            .target
            .send("GET", &path, &headers, String::new())
            .await;
        let mut answer = json!({"code": bytes.code, "body": "not protobuf"});
        if bytes.header("content-type") == PROTOBUF {
            let group = case.kind.group.as_str();
            let version = case.api_version.rsplit('/').next().unwrap();
            let message = facts::kind(group, version, &case.kind.names.kind).unwrap();
            let decoded = bareboat_wire::proto::decode_object(&bytes.bytes, |_, _| Some(message));
            let decoded: Value = serde_json::from_slice(&decoded.unwrap().to_json()).unwrap();
            let mut found = Vec::new();
            crate::compare::compare(json.json(), decoded, &mut found);
            let found: Vec<String> = found.into_iter().map(|(path, _)| path).collect();
            answer["body"] = json!({"differs": found});
        }
        self.note(format!("protobuf {}", label(case, name)), answer);
    }

    /// Runs the steps that every kind has on the first object.
    async fn usual(&mut self, case: &Case, name: &str, content: &Value) {
        let path = self.path(case, name);
        let what = label(case, name);
        let body = case.object(name, content).to_string();
        let answer = self.target.send("PUT", &path, &[], body).await;
        self.note(format!("put {what} again"), recorded(&answer));
        let labels = |value: &str| json!({"metadata": {"labels": {"parity": value}}});
        let patches = [
            (MERGE, labels("merge")),
            (STRATEGIC, labels("strategic")),
            (
                JSON_PATCH,
                json!([{"op": "replace", "path": "/metadata/labels/parity", "value": "json"}]),
            ),
        ];
        for (media, patch) in patches {
            let sort = media.split(['/', '-']).nth(1).unwrap_or(media);
            self.patch(case, name, media, &patch, format!("{sort} patch {what}"))
                .await;
        }
        for (manager, force) in [("one", "true"), ("two", "false"), ("two", "true")] {
            let step =
                json!({"apply": manager, "force": force == "true", "object": labels(manager)});
            self.apply(case, name, &step, String::new()).await;
        }
        let answer = self
            .target
            .send("GET", &self.path(case, "absent"), &[], String::new())
            .await;
        self.note(format!("get {}", label(case, "absent")), recorded(&answer));
        self.select(case, "spec.nowhere=here").await;
    }

    async fn patch(&mut self, case: &Case, name: &str, media: &str, patch: &Value, what: String) {
        let path = self.path(case, name);
        let headers = [("content-type", media)];
        let body = patch.to_string();
        let answer = self.target.send("PATCH", &path, &headers, body).await;
        self.note(what, recorded(&answer));
    }

    async fn apply(&mut self, case: &Case, name: &str, step: &Value, under: String) {
        let manager = step["apply"].as_str().expect("a manager");
        let force = if step["force"] == true {
            "&force=true"
        } else {
            ""
        };
        let path = format!(
            "{}{under}?fieldManager={manager}{force}",
            self.path(case, name)
        );
        let body = case.object(name, &step["object"]).to_string();
        let headers = [("content-type", APPLY)];
        let answer = self.target.send("PATCH", &path, &headers, body).await;
        let force = if force.is_empty() { "" } else { " by force" };
        let what = format!("apply{under} {} as {manager}{force}", label(case, name));
        self.note(what, recorded(&answer));
    }

    async fn live(&self, case: &Case, name: &str) -> Value {
        let path = self.path(case, name);
        let answer = self.target.send("GET", &path, &[], String::new()).await;
        serde_json::from_slice(&answer.bytes).unwrap_or_default()
    }

    async fn status(&mut self, case: &Case, name: &str, status: &Value) {
        let mut object = self.live(case, name).await;
        object["status"] = status.clone();
        let path = format!("{}/status", self.path(case, name));
        let answer = self
            .target
            .send("PUT", &path, &[], object.to_string())
            .await;
        self.note(format!("status {}", label(case, name)), recorded(&answer));
        self.table(case, name, "table with status").await;
    }

    /// Runs one step of a case.
    async fn step(&mut self, case: &Case, step: &Value) {
        let first = || case.objects.first().map_or("", |(name, _)| name);
        let name = step["of"].as_str().unwrap_or_else(first);
        let under = step["under"]
            .as_str()
            .map_or(String::new(), |part| format!("/{part}"));
        if !step["apply"].is_null() {
            return self.apply(case, name, step, under).await;
        }
        if !step["put"].is_null() {
            // Most subresources take the whole object; a scale is a separate kind.
            let source = if under == "/scale" { &under } else { "" };
            let mut object = self.live(case, &format!("{name}{source}")).await;
            edit(&mut object, &step["put"]);
            let path = format!("{}{under}", self.path(case, name));
            let answer = self
                .target
                .send("PUT", &path, &[], object.to_string())
                .await;
            let what = format!("put{under} {}: {}", label(case, name), brief(&step["put"]));
            return self.note(what, recorded(&answer));
        }
        let sorts = [
            ("merge", MERGE),
            ("strategic", STRATEGIC),
            ("json", JSON_PATCH),
        ];
        for (sort, media) in sorts {
            let patch = &step[sort];
            if !patch.is_null() {
                let path = format!("{}{under}", self.path(case, name));
                let headers = [("content-type", media)];
                let answer = self
                    .target
                    .send("PATCH", &path, &headers, patch.to_string())
                    .await;
                let what = format!("{sort}{under} {}: {}", label(case, name), brief(patch));
                return self.note(what, recorded(&answer));
            }
        }
        panic!("{}: unknown step {step}", case.resource);
    }

    /// Records the names in a list by field selector.
    async fn select(&mut self, case: &Case, selector: &str) {
        let path = format!(
            "{}?fieldSelector={}",
            case.collection(self.namespace),
            selector.replace('=', "%3D").replace(',', "%2C")
        );
        let answer = self.target.send("GET", &path, &[], String::new()).await;
        let mut answer = recorded(&answer);
        if let Some(items) = answer["body"]["items"].as_array() {
            let names = items.iter().map(|item| item["metadata"]["name"].clone());
            let known = |name: &Value| case.objects.iter().any(|(known, _)| *name == **known);
            answer["body"] = json!({"names": names.filter(known).collect::<Vec<_>>()});
        }
        let plural = &case.kind.names.plural;
        self.note(format!("list {plural} where {selector}"), answer);
    }

    /// Creates another object derived from the first, and deletes it again.
    async fn variant(&mut self, case: &Case, edits: &Value) {
        let content = case
            .objects
            .first()
            .map_or(json!({}), |(_, content)| content.clone());
        let mut object = case.object("variant", &content);
        object["metadata"]["name"] = "variant".into();
        edit(&mut object, edits);
        let path = case.collection(self.namespace);
        let answer = self
            .target
            .send("POST", &path, &[], object.to_string())
            .await;
        let mut kept = recorded(&answer);
        if answer.code == 201 {
            // Managed fields are compared for whole objects only.
            if let Some(metadata) = kept["body"]["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            self.remove(case, &answer).await;
        }
        let plural = &case.kind.names.plural;
        self.note(format!("variant {plural} {}", brief(edits)), kept);
    }

    async fn remove(&self, case: &Case, created: &Answer) {
        let body = created.json();
        let name = body["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let path = self.path(case, &name);
        let now = format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background");
        self.target.send("DELETE", &now, &[], String::new()).await;
        if body["metadata"]["finalizers"].is_null() {
            return;
        }
        let patch = json!({"metadata": {"finalizers": null}}).to_string();
        let headers = [("content-type", MERGE)];
        self.target.send("PATCH", &path, &headers, patch).await;
    }
}

fn label(case: &Case, name: &str) -> String {
    format!("{}/{name}", case.kind.names.plural)
}
