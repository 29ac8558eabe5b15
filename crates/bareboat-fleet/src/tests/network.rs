//! A server with a fleet and its views, and members that are servers with sockets.

mod annotations;
mod identity;
mod trust;

use super::hub::settings;
use crate::Fleet;
use bareboat::prelude::Profile;
use bareboat_api::kind::User;
use bareboat_api::{Value, value};
use bareboat_testing::TestServer;
use bareboat_views::{Members as _, Settings, Views, install};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::watch;

/// How long anything may take. Only a failure waits this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// The views.
const P: &str = bareboat_views::PREFIX;
const CLUSTERS: &str = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
/// The token with which the fleet comes to members.
const TOKEN: &str = "of-the-fleet";

/// An answer.
struct Answer {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

impl Answer {
    #[track_caller]
    fn expect(self, code: u16) -> Answer {
        let text = String::from_utf8(self.body.to_json()).unwrap_or_default();
        assert_eq!(self.code, code, "{text}");
        self
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.to_json()).unwrap_or_default()
    }

    /// The names of the items.
    fn names(&self) -> Vec<&str> {
        let items = self.body.get("items").and_then(Value::as_array);
        let names = items.unwrap_or_default().iter();
        names
            .filter_map(|item| item.at(&["metadata", "name"])?.as_str())
            .collect()
    }
}

/// A server with a fleet.
struct Network {
    hub: TestServer,
    fleet: Fleet,
    _leads: watch::Sender<bool>,
    _dir: TempDir,
}

/// Starts a member.
async fn member() -> TestServer {
    let builder = TestServer::builder()
        .profile(Profile::Bare)
        .without_controllers()
        .default_roles()
        .token(TOKEN, "fleet", &["system:masters"]);
    builder.listening().start().await
}

fn admin() -> User {
    User {
        name: "admin".into(),
        groups: vec!["system:masters".into()],
        ..User::default()
    }
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// The address and the credentials of a member, without its CA.
fn spec(member: &TestServer) -> Value {
    value!({
        "apiserver": (member.url()), "tokenData": (encoded(TOKEN)),
        "syncResources": [{"group": "", "resources": ["configmaps", "secrets"]}],
    })
}

/// The same with its CA.
fn trusting(member: &TestServer) -> Value {
    let mut spec = spec(member);
    let ca = Value::string(encoded(member.ca()));
    spec.make_object().insert("caData", ca);
    spec
}

async fn send_to(
    server: &TestServer,
    user: User,
    method: &str,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = http::Request::builder().method(method).uri(path);
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    request = request.header("content-type", kind);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = match body.is_null() {
        true => Bytes::new(),
        false => Bytes::from(body.to_json()),
    };
    let request = request.body(body).expect("the request is well formed");
    let (head, body) = server.call_as(user, request).await.into_parts();
    let body = body.collect().await.expect("the body is complete");
    let parsed = bareboat_wire::json::parse(&body.to_bytes());
    let warnings = head.headers.get_all("warning").iter();
    let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Answer {
        code: head.status.as_u16(),
        warnings: warnings.collect(),
        body: parsed.map(|parsed| parsed.value).unwrap_or_default(),
    }
}

impl Network {
    async fn start() -> Network {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let mut settings = settings();
        settings.file = dir.path().join("fleet.db");
        let fleet = Fleet::open(settings).expect("a shelf can be opened");
        let members = Arc::new(fleet.clone());
        let views = Views::new(fleet.shelf().clone(), members, Settings::default());
        let (views, installed) = (views.expect("views can be made"), fleet.clone());
        let hub = TestServer::builder()
            .profile(Profile::Bare)
            .without_controllers()
            .with(move |builder| {
                let builder = installed.install(builder);
                install(builder, views.clone()).expect("views can be added")
            });
        let hub = hub.start().await;
        let (leads, receiver) = watch::channel(true);
        fleet.start(hub.server(), receiver).await;
        Network {
            hub,
            fleet,
            _leads: leads,
            _dir: dir,
        }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        send_to(&self.hub, admin(), method, path, body, &[]).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &Value::Null).await
    }

    /// Creates a PediaCluster, and returns the warnings.
    async fn join(&self, name: &str, spec: Value, annotations: Value) -> Vec<String> {
        let object = value!({
            "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster",
            "metadata": {"name": name, "annotations": annotations}, "spec": spec,
        });
        let created = self.send("POST", CLUSTERS, &object).await;
        created.expect(201).warnings
    }

    /// Changes a PediaCluster, and returns the warnings.
    async fn change(&self, name: &str, patch: Value) -> Vec<String> {
        let path = format!("{CLUSTERS}/{name}");
        self.send("PATCH", &path, &patch).await.expect(200).warnings
    }

    /// Sets an annotation of a PediaCluster, and returns the warnings.
    async fn annotate(&self, name: &str, key: &str, text: &str) -> Vec<String> {
        let mut annotations = Value::object();
        annotations.make_object().insert(key, Value::string(text));
        let patch = value!({"metadata": {"annotations": annotations}});
        self.change(name, patch).await
    }

    /// Waits until something holds.
    async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < PATIENCE, "it never held: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The reason of a condition.
    async fn reason(&self, name: &str, kind: &str) -> String {
        let cluster = self.get(&format!("{CLUSTERS}/{name}")).await.body;
        let conditions = cluster.at(&["status", "conditions"]);
        let mut conditions = conditions
            .and_then(Value::as_array)
            .unwrap_or_default()
            .iter();
        let found = conditions.find(|one| one.get("type").and_then(Value::as_str) == Some(kind));
        let reason = found.and_then(|one| one.get("reason")?.as_str());
        reason.unwrap_or("").to_owned()
    }

    async fn ready(&self, name: &str) {
        self.until("the member is ready", || async {
            self.reason(name, "Ready").await == "Ready"
        })
        .await;
    }

    /// Waits until all types of a member are synced.
    async fn in_sync(&self, name: &str) {
        self.until("the member is in sync", || async {
            let fleet = self.fleet.fleet();
            let member = fleet.members.get(name);
            member.is_some_and(|it| it.in_sync && !it.types.is_empty())
        })
        .await;
    }
}
