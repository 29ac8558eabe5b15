//! A server with its audit log and the hooks it calls. What hooks answer is set for each scene.

use super::super::normal::normalise;
use super::super::target::Target;
use crate::support::{Answer, Value, json, soon};
use crate::webhooks::hook::{Reply, TestHook, allow, deny, patch};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One of the two servers, and the hooks.
pub(super) struct Stage {
    pub(super) target: Target,
    pub(super) hook: TestHook,
    audit: PathBuf,
    replies: Arc<Mutex<Value>>,
}

impl Stage {
    pub(super) async fn new(target: Target, audit: PathBuf) -> Stage {
        let replies = Arc::new(Mutex::new(Value::Null));
        let known = replies.clone();
        let hook = TestHook::start(move |path, request| {
            reply(&known.lock().unwrap()[path], &request["object"])
        })
        .await;
        Stage {
            target,
            hook,
            audit,
            replies,
        }
    }

    /// Sets what hooks answer.
    pub(super) fn hooks(&self, replies: &Value) {
        *self.replies.lock().unwrap() = replies.clone();
    }

    /// Replaces the address of the hooks in a text.
    pub(super) fn plain(&self, text: &str) -> String {
        text.replace(&self.hook.url(), "https://hook")
    }

    /// Returns the reviews of the user's requests since the last call, with placeholders.
    pub(super) fn calls(&self, user: &str, parallel: bool) -> Value {
        let mut calls: Vec<Value> = self
            .hook
            .take_calls()
            .into_iter()
            .filter(|call| call.review["request"]["userInfo"]["username"] == user)
            .map(|call| {
                let mut review = call.review;
                normalise(&mut review);
                let request = &mut review["request"];
                if request["object"]["metadata"]["generateName"].is_string() {
                    let name = request["object"]["metadata"]["name"].clone();
                    if request.get("name").is_some() {
                        request["name"] = name;
                    }
                }
                json!({"target": call.target, "review": review})
            })
            .collect();
        if parallel {
            calls.sort_by_key(|call| call["target"].to_string());
        }
        calls.into()
    }

    /// Returns the annotations of a request's audit event, without those that are not about admission.
    pub(super) async fn annotations(&self, answer: &Answer) -> Value {
        let id = answer.header("audit-id").to_owned();
        let mut annotations = soon(async {
            loop {
                let text = std::fs::read_to_string(&self.audit).unwrap_or_default();
                let lines = text.lines().filter(|line| line.contains(&id));
                let mut events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
                if let Some(event) = events.find(|event| event["stage"] == "ResponseComplete") {
                    return event["annotations"].clone();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        if let Some(map) = annotations.as_object_mut() {
            // Times, what a server says about itself, and another plug-in.
            let own = [
                "authorization.k8s.io/",
                "apiserver.latency.k8s.io/",
                "pod-security.kubernetes.io/",
                "bareboat.dev/",
            ];
            map.retain(|key, _| !own.iter().any(|prefix| key.starts_with(prefix)));
        }
        let text = self.plain(&annotations.to_string());
        let mut annotations = serde_json::from_str(&text).unwrap();
        normalise(&mut annotations);
        annotations
    }
}

/// Returns the reply that a scene describes. With `unless`, a hook admits objects that have this member.
fn reply(described: &Value, object: &Value) -> Reply {
    let members = described.as_object().expect("every hook has a reply");
    if let Some(place) = described["unless"].as_str()
        && object.pointer(place).is_some()
    {
        return allow();
    }
    let what = members.iter().find(|(key, _)| *key != "unless");
    let (sort, value) = what.expect("a reply");
    match sort.as_str() {
        "allow" => allow(),
        "patch" => patch(value),
        "deny" => deny(value),
        "review" => Reply::Review(value.clone()),
        "raw" => Reply::Raw(200, value.as_str().unwrap().to_owned()),
        "code" => Reply::Raw(value.as_u64().unwrap() as u16, "words".to_owned()),
        "hang" => Reply::Hang,
        "drip" => Reply::Drip,
        "redirect" => Reply::Redirect,
        "huge" => Reply::Huge(value.as_u64().unwrap() as usize),
        other => panic!("what is {other}?"),
    }
}
