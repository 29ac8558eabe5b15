//! Clients that write and read config maps through all servers, and note every request and answer.

use bareboat_rig::history::{Operation, Outcome, Request, Seen};
use bareboat_rig::plan::Dice;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::core::params::VersionMatch;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const NAMESPACE: &str = "load";
/// How the keys of all objects of the load begin.
pub(crate) const PREFIX: &str = "core/configmaps/load/";
/// A request that takes longer has an unknown outcome.
const TIMEOUT: Duration = Duration::from_secs(8);

/// What a client needs.
pub(crate) struct Client {
    pub(crate) number: usize,
    pub(crate) servers: Vec<kube::Client>,
    pub(crate) start: Instant,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) dice: Dice,
    /// The time between two requests.
    pub(crate) pause: Duration,
    /// The answers with a code of 500 or above.
    pub(crate) errors: Arc<Mutex<Vec<String>>>,
}

impl Client {
    /// Sends requests until the run ends.
    pub(crate) async fn run(mut self) -> Vec<Operation> {
        let mut done = Vec::new();
        let mut at = self.number;
        let mut known: Vec<Option<u64>> = vec![None; 9];
        for n in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            // The last key is written by all clients.
            let key = match self.dice.roll(4) {
                0 => 8,
                _ => self.dice.roll(8) as usize,
            };
            let content = format!("{}.{n}", self.number);
            let request = self.choose(key, content, known[key]);
            let server = at % self.servers.len();
            let maps = Api::namespaced(self.servers[server].clone(), NAMESPACE);
            let begun = self.start.elapsed().as_nanos() as u64;
            let sent = tokio::time::timeout(TIMEOUT, send(&maps, &request)).await;
            let outcome = match sent {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(error)) => self.failed(&request, &error),
                Err(_) => Outcome::Unknown,
            };
            let ended = self.start.elapsed().as_nanos() as u64;
            known[key] = match (&request, &outcome) {
                (Request::List { .. }, _) => known[key],
                (Request::Delete { .. }, Outcome::Written(_)) => None,
                (_, Outcome::Written(revision)) => *revision,
                (_, Outcome::Found(seen)) => seen.as_ref().map(|seen| seen.revision),
                _ => known[key],
            };
            let failed = matches!(outcome, Outcome::Unknown | Outcome::Refused);
            if failed || self.dice.roll(20) == 0 {
                at += 1;
            }
            // What was read may be old; a conflict is followed by a read.
            if outcome == Outcome::Conflict {
                known[key] = None;
            }
            done.push(Operation {
                client: self.number,
                server,
                begun,
                ended,
                request,
                outcome,
            });
            tokio::time::sleep(self.pause).await;
        }
        done
    }

    fn choose(&mut self, key: usize, content: String, known: Option<u64>) -> Request {
        let key = format!("{PREFIX}k{key}");
        match (self.dice.roll(12), known) {
            (0, _) => Request::List {
                prefix: PREFIX.to_owned(),
                consistent: true,
            },
            (1, _) => Request::List {
                prefix: PREFIX.to_owned(),
                consistent: false,
            },
            (2 | 3, _) => Request::Get {
                key,
                consistent: true,
            },
            (4, _) => Request::Get {
                key,
                consistent: false,
            },
            (5, Some(found)) => Request::Delete { key, found },
            (6, Some(_)) => Request::Patch { key, content },
            (_, Some(found)) => Request::Replace {
                key,
                content,
                found,
            },
            (7..=9, None) => Request::Create { key, content },
            (_, None) => Request::Get {
                key,
                consistent: true,
            },
        }
    }
}

fn map(name: &str, content: &str, version: Option<u64>) -> ConfigMap {
    let mut map = json!({"metadata": {"name": name}, "data": {"n": content}});
    if let Some(version) = version {
        map["metadata"]["resourceVersion"] = version.to_string().into();
    }
    serde_json::from_value(map).unwrap()
}

fn name(key: &str) -> &str {
    key.rsplit('/').next().unwrap()
}

/// Returns an object as the checker knows it.
pub(crate) fn seen(map: &ConfigMap) -> Seen {
    let content = map.data.as_ref().and_then(|data| data.get("n"));
    Seen {
        key: format!(
            "{PREFIX}{}",
            map.metadata.name.as_deref().unwrap_or_default()
        ),
        revision: revision(map.metadata.resource_version.as_deref()),
        content: content.cloned().unwrap_or_default(),
    }
}

/// Reads a resourceVersion.
pub(crate) fn revision(version: Option<&str>) -> u64 {
    version.unwrap_or("0").parse().unwrap()
}

async fn send(maps: &Api<ConfigMap>, request: &Request) -> kube::Result<Outcome> {
    Ok(match request {
        Request::Create { key, content } => {
            let map = map(name(key), content, None);
            written(&maps.create(&PostParams::default(), &map).await?)
        }
        Request::Replace {
            key,
            content,
            found,
        } => {
            let map = map(name(key), content, Some(*found));
            let params = PostParams::default();
            written(&maps.replace(name(key), &params, &map).await?)
        }
        Request::Patch { key, content } => {
            let patch = Patch::Merge(json!({"data": {"n": content}}));
            let params = PatchParams::default();
            written(&maps.patch(name(key), &params, &patch).await?)
        }
        Request::Delete { key, found } => {
            let only = DeleteParams::default().preconditions(Preconditions {
                resource_version: Some(found.to_string()),
                uid: None,
            });
            maps.delete(name(key), &only).await?;
            Outcome::Written(None)
        }
        Request::Get { key, consistent } => {
            let params = match consistent {
                true => GetParams::default(),
                false => GetParams::any(),
            };
            match maps.get_with(name(key), &params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Outcome::Found(None),
                found => Outcome::Found(Some(seen(&found?))),
            }
        }
        Request::List { consistent, .. } => {
            let mut params = ListParams::default();
            if !consistent {
                params.resource_version = Some("0".to_owned());
                params.version_match = Some(VersionMatch::NotOlderThan);
            }
            let list = maps.list(&params).await?;
            Outcome::Listed {
                revision: revision(list.metadata.resource_version.as_deref()),
                objects: list.items.iter().map(seen).collect(),
            }
        }
    })
}

fn written(map: &ConfigMap) -> Outcome {
    Outcome::Written(Some(seen(map).revision))
}

impl Client {
    /// Reads a failure.
    fn failed(&self, request: &Request, error: &kube::Error) -> Outcome {
        let kube::Error::Api(status) = error else {
            return Outcome::Unknown;
        };
        if status.code >= 500 {
            let text = format!("{}: {} after {request:?}", status.code, status.message);
            self.errors.lock().unwrap().push(text);
        }
        match status.code {
            404 | 409 => Outcome::Conflict,
            // Nothing was written: too many requests, a store that is away, no space.
            429 | 503 | 507 => Outcome::Refused,
            500.. => Outcome::Unknown,
            code => panic!("unexpected answer {code}: {}", status.message),
        }
    }
}
