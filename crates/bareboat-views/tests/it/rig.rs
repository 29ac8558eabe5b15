//! A server with views, a shelf, and members as data.

use crate::passing::Passing;
use bareboat::api::kind::{BoxFuture, User};
use bareboat::api::{Status, Value, value};
use bareboat::prelude::Profile;
use bareboat::server::reply::{self, Body, Response};
use bareboat_server::Upstream;
use bareboat_shelf::{
    Batch, Change, Draft, KindId, KindInfo, MemberId, Progress, Settings as ShelfSettings, Shelf,
};
use bareboat_testing::TestServer;
use bareboat_views::{
    Fleet, LiveRequest, Member, Members, Place, Review, Settings, SyncedType, Views, install,
};
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tempfile::TempDir;
use tokio::sync::watch;

pub(crate) const P: &str = "/apis/clusterpedia.io/v1beta1/resources";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// 2022-03-25T00:00:00Z in milliseconds.
pub(crate) const BIRTHDAY: i64 = 1_648_166_400_000;

/// Members that exist only as data.
#[derive(Default)]
pub(crate) struct Data {
    fleet: Mutex<Arc<Fleet>>,
    pub(crate) now: AtomicI64,
    /// What was forwarded: member, user, method and target.
    pub(crate) forwarded: Mutex<Vec<(String, String, String, String)>>,
    /// Why this server does not answer, if it does not.
    pub(crate) away: watch::Sender<Option<&'static str>>,
    /// What members answer to forwarded requests; others answer with something that is no list.
    pub(crate) answers: Mutex<BTreeMap<String, Value>>,
    /// What members that judge themselves allow: member, user, verb, resource and namespace.
    pub(crate) allows: Mutex<BTreeSet<String>>,
    /// How often members were asked about rights.
    pub(crate) reviews: AtomicU64,
    /// The server that answers forwarded requests, if there is one.
    pub(crate) upstream: Mutex<Option<Upstream>>,
}

impl Members for Data {
    fn fleet(&self) -> Arc<Fleet> {
        self.fleet.lock().clone()
    }

    fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    fn review(&self, review: Review) -> BoxFuture<'static, Result<bool, Status>> {
        self.reviews.fetch_add(1, Ordering::Relaxed);
        let info = &review.info;
        let (verb, resource, namespace) = (&info.verb, &info.resource, &info.namespace);
        let name = &review.user.name;
        let asked = format!("{} {name} {verb} {resource} {namespace}", review.member);
        let allowed = match review.member.as_str() {
            "away" => Err(Status::unavailable("nobody answers")),
            _ => Ok(self.allows.lock().contains(asked.trim_end())),
        };
        Box::pin(std::future::ready(allowed))
    }

    fn place(&self) -> Place {
        match *self.away.borrow() {
            None => Place::Here,
            Some(why) => Place::Nowhere(Status::unavailable(why).retry_after(1)),
        }
    }

    fn left(&self) -> BoxFuture<'static, ()> {
        let mut away = self.away.subscribe();
        Box::pin(async move {
            let _ = away.wait_for(Option::is_some).await;
        })
    }

    fn forward(&self, live: LiveRequest) -> BoxFuture<'static, Result<Response, Status>> {
        self.forwarded.lock().push((
            live.member.clone(),
            live.user.name.to_string(),
            live.request.method().to_string(),
            live.target.clone(),
        ));
        let upstream = self.upstream.lock().clone();
        let answer = self.answers.lock().get(&live.member).cloned();
        let answer = answer.unwrap_or_else(|| value!({"from": "member"}));
        Box::pin(async move {
            if let Some(upstream) = upstream {
                let calls = live.calls.clone();
                return calls.forward(&upstream, &live.target, live.request).await;
            }
            Ok(reply::json(http::StatusCode::OK, &answer))
        })
    }
}

/// A server with views.
pub(crate) struct Rig {
    pub(crate) server: TestServer,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) data: Arc<Data>,
    _dir: TempDir,
    versions: AtomicU64,
}

pub(crate) fn synced(group: &str, version: &str, resource: &str, kind: &str) -> SyncedType {
    SyncedType {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        kind: kind.to_owned(),
        singular: kind.to_lowercase(),
        namespaced: true,
        ..SyncedType::default()
    }
}

/// The types of the members: deployments, replica sets, daemon sets, stateful sets, pods, secrets, namespaces.
fn types() -> Vec<Arc<SyncedType>> {
    let mut deployments = synced("apps", "v1", "deployments", "Deployment");
    deployments.short_names = vec!["deploy".to_owned()];
    deployments.categories = vec!["all".to_owned()];
    let mut pods = synced("", "v1", "pods", "Pod");
    pods.short_names = vec!["po".to_owned()];
    let mut namespaces = synced("", "v1", "namespaces", "Namespace");
    namespaces.namespaced = false;
    let types = [
        deployments,
        synced("apps", "v1", "replicasets", "ReplicaSet"),
        synced("apps", "v1", "daemonsets", "DaemonSet"),
        synced("apps", "v1", "statefulsets", "StatefulSet"),
        pods,
        synced("", "v1", "secrets", "Secret"),
        synced("", "v1", "events", "Event"),
        namespaces,
    ];
    types.into_iter().map(Arc::new).collect()
}

pub(crate) fn member(name: &str) -> Member {
    Member {
        name: name.to_owned(),
        labels: [("env".to_owned(), format!("env-{name}"))].into(),
        facts: [("region".to_owned(), format!("region-{name}"))].into(),
        ready: true,
        heard: Some(BIRTHDAY),
        in_sync: true,
        version: value!({"major": "1", "minor": "36", "gitVersion": (format!("v1.36.0-{name}"))}),
        types: types(),
        ..Member::default()
    }
}

impl Rig {
    /// A rig for calls in the process.
    pub(crate) async fn start() -> Rig {
        Rig::with(false, Settings::default(), ShelfSettings::default()).await
    }

    /// A rig on a port.
    pub(crate) async fn listening() -> Rig {
        Rig::with(true, Settings::default(), ShelfSettings::default()).await
    }

    pub(crate) async fn with(listens: bool, settings: Settings, shelf: ShelfSettings) -> Rig {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let path = dir.path().join("fleet.db");
        let shelf = Arc::new(Shelf::open(path, shelf).expect("a shelf can be made"));
        let data = Arc::new(Data::default());
        data.now.store(BIRTHDAY, Ordering::Relaxed);
        let views = Views::new(shelf.clone(), data.clone(), settings).expect("views can be made");
        let builder = TestServer::builder()
            .profile(Profile::Bare)
            .without_controllers()
            .with(move |builder| {
                let builder = match listens {
                    true => builder.authenticator(Passing),
                    false => builder,
                };
                install(builder, views.clone()).expect("views can be added")
            });
        let builder = match listens {
            true => builder
                .token("ann", "ann", &["system:authenticated"])
                .token("bob", "bob", &["system:authenticated"])
                .listening(),
            false => builder,
        };
        let rig = Rig {
            server: builder.start().await,
            shelf,
            data,
            _dir: dir,
            versions: AtomicU64::new(100),
        };
        for name in ["c1", "c2", "c3"] {
            rig.join(member(name));
        }
        rig
    }

    /// Adds or replaces a member.
    pub(crate) fn join(&self, member: Member) {
        let known = self.shelf.add_member(&member.name, "");
        known.expect("a member can be added");
        for one in &member.types {
            self.kind(one);
        }
        let mut fleet = Fleet::clone(&self.data.fleet.lock());
        fleet.members.insert(member.name.clone(), Arc::new(member));
        *self.data.fleet.lock() = Arc::new(fleet);
    }

    /// Takes a member out of the fleet. Its rows stay.
    pub(crate) fn leave(&self, member: &str) {
        let mut fleet = Fleet::clone(&self.data.fleet.lock());
        fleet.members.remove(member);
        *self.data.fleet.lock() = Arc::new(fleet);
    }

    fn kind(&self, one: &SyncedType) -> KindId {
        let info = KindInfo {
            group: one.group.clone(),
            resource: one.resource.clone(),
            kind: one.kind.clone(),
            namespaced: one.namespaced,
        };
        self.shelf.add_kind(&info).expect("a kind can be added")
    }

    pub(crate) fn number(&self, member: &str) -> MemberId {
        let directory = self.shelf.directory();
        directory.member(member).expect("the member is known")
    }

    /// Writes an object of a member; metadata that is missing is added.
    pub(crate) fn put(&self, member: &str, mut object: Value) -> u64 {
        let version = self.versions.fetch_add(1, Ordering::Relaxed);
        let kind = object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        let api_version = object.get("apiVersion").and_then(Value::as_str);
        let group = api_version.and_then(|text| text.split_once('/'));
        let group = group.map_or("", |(group, _)| group).to_owned();
        let metadata = object.make_object().object_mut("metadata");
        let name = metadata.get_str("name").unwrap_or("").to_owned();
        let namespace = metadata.get_str("namespace").unwrap_or("").to_owned();
        metadata.insert("resourceVersion", Value::string(version.to_string()));
        if metadata.get("uid").is_none() {
            let uid = format!("{member}-{kind}-{namespace}-{name}");
            metadata.insert("uid", Value::string(uid));
        }
        if metadata.get("creationTimestamp").is_none() {
            let time = Value::string("2022-03-25T00:00:00Z");
            metadata.insert("creationTimestamp", time);
        }
        let draft = Draft::new(member, object).expect("the object is well formed");
        self.change(member, &kind, &group, Change::Put(Box::new(draft)), version);
        version
    }

    pub(crate) fn delete(&self, member: &str, kind: &str, namespace: &str, name: &str) {
        let version = self.versions.fetch_add(1, Ordering::Relaxed);
        let change = Change::Delete {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: Some(version.to_string()),
        };
        let fleet = self.data.fleet.lock().clone();
        let types = fleet.members.get(member).map(|member| member.types.clone());
        let group = types.into_iter().flatten().find(|one| one.kind == kind);
        let group = group.map_or(String::new(), |one| one.group.clone());
        self.change(member, kind, &group, change, version);
    }

    fn change(&self, member: &str, kind: &str, group: &str, change: Change, version: u64) {
        let directory = self.shelf.directory();
        let mut kinds = directory.kinds();
        let found = kinds.find(|(_, info)| info.kind == kind && info.group == group);
        let batch = Batch {
            member: self.number(member),
            kind: found.expect("the kind is known").0,
            changes: vec![change],
            progress: Some(Progress {
                version: "v1".to_owned(),
                resource_version: version.to_string(),
            }),
        };
        let applied = self.shelf.apply(&[batch], BIRTHDAY);
        applied.expect("a change is written");
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", &[]).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        self.send_as(admin(), method, path, body, headers).await
    }

    pub(crate) async fn get_as(&self, user: &str, path: &str) -> Answer {
        self.send_as(self::user(user), "GET", path, "", &[]).await
    }

    pub(crate) async fn send_as(
        &self,
        user: User,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = http::Request::builder().method(method).uri(path);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::from(body.to_owned()));
        let request = request.expect("the request is well formed");
        let (head, body) = self.server.call_as(user, request).await.into_parts();
        let body = body.collect().await.expect("the body is complete");
        Answer {
            code: head.status.as_u16(),
            headers: head.headers,
            bytes: body.to_bytes(),
        }
    }

    /// Begins a watch.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        self.watch_as(admin(), path, &[]).await
    }

    pub(crate) async fn watch_as(
        &self,
        user: User,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Events {
        let mut request = http::Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new());
        let request = request.expect("the request is well formed");
        let response = self.server.call_as(user, request).await;
        assert_eq!(response.status(), 200, "{path}");
        Events {
            body: response.into_body(),
            left: Vec::new(),
        }
    }
}

pub(crate) fn admin() -> User {
    User {
        name: "admin".into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    }
}

pub(crate) fn user(name: &str) -> User {
    User {
        name: name.into(),
        groups: vec!["system:authenticated".into()],
        ..User::default()
    }
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Answer {
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(self.code, code, "{text}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).expect("it is JSON")
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").iter();
        let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        texts.collect()
    }

    /// Returns `cluster/namespace/name` of the items, in order.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        assert_eq!(self.code, 200, "{}", String::from_utf8_lossy(&self.bytes));
        let body = self.json();
        let items = body["items"].as_array().expect("a list");
        items.iter().map(name).collect()
    }
}

/// Returns `cluster/namespace/name` of an object.
pub(crate) fn name(object: &serde_json::Value) -> String {
    let metadata = &object["metadata"];
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
    let cluster = text(&metadata["annotations"]["shadow.clusterpedia.io/cluster-name"]);
    let namespace = text(&metadata["namespace"]);
    format!("{cluster}/{namespace}/{}", text(&metadata["name"]))
}

/// The events of a watch.
pub(crate) struct Events {
    body: Body,
    left: Vec<u8>,
}

impl Events {
    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<serde_json::Value> {
        loop {
            if let Some(at) = self.left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=at).collect();
                return Some(serde_json::from_slice(&line).expect("an event is JSON"));
            }
            let frame = self.body.frame().await?.expect("the stream goes on");
            self.left
                .extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }

    /// Returns the next events as `TYPE cluster/namespace/name`.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let event = self.next().await.expect("there are more events");
            let kind = event["type"].as_str().unwrap_or("").to_owned();
            taken.push(format!("{kind} {}", name(&event["object"])));
        }
        taken
    }
}

/// A pod.
pub(crate) fn pod(namespace: &str, name: &str, phase: &str) -> Value {
    value!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "a", "image": "nginx:1"}, {"name": "b", "image": "redis:2"}]},
        "status": {"phase": phase},
    })
}

/// A deployment.
pub(crate) fn deployment(namespace: &str, name: &str, replicas: i64) -> Value {
    value!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "readyReplicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas},
    })
}
