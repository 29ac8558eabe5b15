//! Watchers that move from server to server, and note every event.

use crate::load::{NAMESPACE, PREFIX, revision, seen};
use bareboat_rig::history::{Event, Seen, Stream, Type};
use bareboat_rig::plan::Dice;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use std::time::Duration;

/// The object whose creation ends the run.
pub(crate) const END: &str = "end";

/// One watcher.
pub(crate) struct Watcher {
    pub(crate) servers: Vec<kube::Client>,
    pub(crate) dice: Dice,
    /// The streams so far. The last one goes on.
    streams: Vec<Stream>,
    /// How often it connected.
    pub(crate) connections: u64,
}

/// Why a connection ended.
enum Ended {
    /// The watcher moves, or the connection was lost.
    Moved,
    /// The history is gone.
    Expired,
    /// The last object of the run was seen.
    Done(u64),
}

impl Watcher {
    pub(crate) fn new(servers: Vec<kube::Client>, dice: Dice, after: u64) -> Self {
        Self {
            servers,
            dice,
            streams: vec![stream(after)],
            connections: 0,
        }
    }

    /// Watches until the last object of the run appears. Returns the streams, and how often the watcher connected.
    pub(crate) async fn run(mut self) -> (Vec<Stream>, u64) {
        loop {
            let at = self.dice.roll(self.servers.len() as u64) as usize;
            let maps = Api::namespaced(self.servers[at].clone(), NAMESPACE);
            // Longer than a server needs to notice that it is cut off.
            let long = Duration::from_millis(100 + self.dice.roll(2500));
            let ended = match tokio::time::timeout(long, self.connection(&maps)).await {
                Ok(ended) => ended,
                Err(_) => Ended::Moved,
            };
            match ended {
                Ended::Moved => tokio::time::sleep(Duration::from_millis(20)).await,
                Ended::Expired => self.list_again(&maps).await,
                Ended::Done(revision) => {
                    self.streams.last_mut().unwrap().until = Some(revision);
                    return (self.streams, self.connections);
                }
            }
        }
    }

    async fn connection(&mut self, maps: &Api<ConfigMap>) -> Ended {
        self.connections += 1;
        let stream = self.streams.last_mut().unwrap();
        let from = stream.events.last();
        let from = from.map_or(stream.after, |event| event.object.revision);
        let params = WatchParams::default();
        let mut events = match maps.watch(&params, &from.to_string()).await {
            Ok(events) => Box::pin(events),
            Err(kube::Error::Api(status)) if status.code == 410 => return Ended::Expired,
            Err(_) => return Ended::Moved,
        };
        while let Some(event) = events.next().await {
            let (kind, object) = match event {
                Ok(WatchEvent::Added(map)) => (Type::Added, seen(&map)),
                Ok(WatchEvent::Modified(map)) => (Type::Modified, seen(&map)),
                Ok(WatchEvent::Deleted(map)) => (Type::Deleted, seen(&map)),
                Ok(WatchEvent::Bookmark(mark)) => {
                    let object = Seen {
                        key: String::new(),
                        revision: revision(Some(&mark.metadata.resource_version)),
                        content: String::new(),
                    };
                    (Type::Bookmark, object)
                }
                Ok(WatchEvent::Error(status)) if status.code == 410 => return Ended::Expired,
                Ok(WatchEvent::Error(_)) | Err(_) => return Ended::Moved,
            };
            let done = object.key.strip_prefix(PREFIX) == Some(END);
            let revision = object.revision;
            stream.events.push(Event { kind, object });
            if done {
                return Ended::Done(revision);
            }
        }
        Ended::Moved
    }

    async fn list_again(&mut self, maps: &Api<ConfigMap>) {
        let params = ListParams::default();
        let listed = tokio::time::timeout(Duration::from_secs(8), maps.list(&params));
        if let Ok(Ok(list)) = listed.await {
            self.streams.last_mut().unwrap().expired = true;
            let after = revision(list.metadata.resource_version.as_deref());
            self.streams.push(stream(after));
        }
    }
}

fn stream(after: u64) -> Stream {
    Stream {
        prefix: PREFIX.to_owned(),
        after,
        events: Vec::new(),
        expired: false,
        until: None,
    }
}
