//! A fleet of several servers: one leads and syncs, the others answer through it, and another one takes over.

use super::{TYPES, VIEWS, condition, kubeconfig, pedia_cluster, places};
use crate::kubectl::Kubectl;
use crate::postgres::Cluster;
use crate::process::{PATIENCE, run};
use crate::replicas::shared_keys;
use crate::server::{Home, bareboat};
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::reflector;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// An answer: its code, the header Retry-After, its warnings and its body.
pub(super) struct Answer {
    pub(super) code: u16,
    retry_after: String,
    pub(super) warnings: Vec<String>,
    pub(super) body: Value,
}

impl Answer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or("")
    }
}

pub(super) async fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = http::Request::builder().uri(format!("{VIEWS}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(kube::client::Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    let header = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let (head, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    Answer {
        code: head.status.as_u16(),
        retry_after: head
            .headers
            .get("retry-after")
            .map(header)
            .unwrap_or_default(),
        warnings: head.headers.get_all("warning").iter().map(header).collect(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    }
}

/// The events of a watch, as `TYPE name`.
pub(super) struct Watch(futures_util::stream::BoxStream<'static, String>);

pub(super) async fn watch(client: &Client, path: &str) -> Watch {
    let request = http::Request::builder().uri(format!("{VIEWS}{path}"));
    let request = request.body(kube::client::Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    // A stream that breaks has ended, too.
    let frames = answer
        .into_body()
        .into_data_stream()
        .take_while(|frame| std::future::ready(frame.is_ok()))
        .map(|frame| frame.map(|bytes| bytes.to_vec()).unwrap_or_default());
    let lines = futures_util::stream::unfold(
        (Box::pin(frames), Vec::new()),
        |(mut frames, mut left): (_, Vec<u8>)| async move {
            loop {
                if let Some(at) = left.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = left.drain(..=at).collect();
                    let event: Value = serde_json::from_slice(&line).unwrap();
                    let object = &event["object"];
                    let what = match object["code"].as_u64() {
                        Some(code) => code.to_string(),
                        None => object["metadata"]["name"].as_str().unwrap_or("").to_owned(),
                    };
                    let word = format!("{} {what}", event["type"].as_str().unwrap());
                    return Some((word, (frames, left)));
                }
                let more: Vec<u8> = frames.next().await?;
                left.extend(more);
            }
        },
    );
    Watch(Box::pin(lines))
}

impl Watch {
    pub(super) async fn next(&mut self) -> Option<String> {
        tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap()
    }
}

/// Several hubs of one store, and a member.
pub(super) struct Group {
    pub(super) hubs: Vec<Option<Kubectl>>,
    pub(super) clients: Vec<Client>,
    pub(super) member: Kubectl,
}

impl Group {
    pub(super) fn hub(&self, index: usize) -> &Kubectl {
        self.hubs[index].as_ref().unwrap()
    }

    pub(super) fn living(&self) -> Vec<usize> {
        let all = 0..self.hubs.len();
        all.filter(|index| self.hubs[*index].is_some()).collect()
    }

    /// Waits until one of the living hubs leads and says where it is, and returns it.
    async fn leader(&self) -> usize {
        let begun = Instant::now();
        loop {
            let path =
                "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/bareboat-controllers";
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            let lease = self.clients[self.living()[0]].request::<Value>(request);
            let lease = lease.await.unwrap_or_default();
            let notes = &lease["metadata"]["annotations"];
            let address = notes["bareboat.dev/address"].as_str().unwrap_or("");
            let found = self
                .living()
                .into_iter()
                .find(|index| self.hub(*index).home.address() == address);
            if let Some(index) = found
                && notes["fleet.bareboat.dev/leader"] == "true"
                && lease["spec"]["holderIdentity"] != ""
            {
                return index;
            }
            assert!(begun.elapsed() < PATIENCE, "{lease:#}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Repeats a list until it has all of these objects. Returns how many answers were 503. A new leader may answer before all its
    /// members are synced: then its list lacks objects, or it does not know the type.
    pub(super) async fn complete(
        &self,
        index: usize,
        path: &str,
        wanted: &[&str],
    ) -> (Answer, usize) {
        let (begun, mut waited) = (Instant::now(), 0);
        loop {
            let answer = ask(&self.clients[index], path, &[]).await;
            let found = places(&answer.body);
            let has = |place: &&str| found.iter().any(|one| one == place);
            match answer.code {
                200 if wanted.iter().all(has) => return (answer, waited),
                200 | 404 => {}
                503 => {
                    assert_eq!(answer.retry_after, "1", "{:#}", answer.body);
                    waited += 1;
                }
                code => panic!("{path}: {code}: {:#}", answer.body),
            }
            assert!(begun.elapsed() < PATIENCE, "{wanted:?}: {found:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Asks until there is an answer. Until then servers may only say that clients should wait.
    pub(super) async fn patiently(&self, index: usize, path: &str) -> (Answer, usize) {
        let (begun, mut waited) = (Instant::now(), 0);
        loop {
            let answer = ask(&self.clients[index], path, &[]).await;
            if answer.code == 200 {
                return (answer, waited);
            }
            assert_eq!(answer.code, 503, "{path}: {:#}", answer.body);
            assert_eq!(answer.retry_after, "1", "{:#}", answer.body);
            assert!(begun.elapsed() < PATIENCE, "{:#}", answer.body);
            waited += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_of_one_store_are_one_fleet() {
    let Some(cluster) = Cluster::start(&[]) else {
        assert_ne!(
            std::env::var("CI").as_deref(),
            Ok("true"),
            "PostgreSQL is missing"
        );
        return eprintln!("skipped: PostgreSQL is not installed");
    };
    let url = cluster.fresh();
    let keys = shared_keys();
    let start = || {
        let flags = ["--storage", &url, "--fleet", "--fleet-probe-interval", "1s"];
        Kubectl::over(Home::with(&flags).sharing(&keys.path().join("keys")))
    };
    let Some(member) = Kubectl::start() else {
        return eprintln!("skipped: kubectl is not built");
    };
    let mut group = Group {
        hubs: (0..3).map(|_| start()).collect(),
        clients: Vec::new(),
        member,
    };
    for index in 0..3 {
        group.clients.push(group.hub(index).home.client().await);
    }
    let first = group.leader().await;
    let (second, third) = ((first + 1) % 3, (first + 2) % 3);
    every_server_answers(&group, first, second).await;

    // Watches through another server, and an informer over the view of all members.
    let client = group.clients[second].clone();
    let list = ask(&client, &format!("{MAPS}?limit=1"), &[]).await.body;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let version = version.to_owned();
    let token = list["metadata"]["continue"].as_str().unwrap().to_owned();
    let resumed = format!("{MAPS}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let mut live = watch(&client, &resumed).await;
    let (reader, writer) = reflector::store();
    let informer = watcher(views(&group, third).await, watcher::Config::default());
    let informer = informer.default_backoff().reflect(writer);
    let following = tokio::spawn(informer.for_each(|_| std::future::ready(())));
    reader.wait_until_ready().await.unwrap();
    let create = |group: &Group, name: &str| {
        tokio::task::block_in_place(|| {
            let line = format!("create configmap {name} --from-literal a=1");
            group.member.gives(&line)
        });
    };
    create(&group, "live");
    // The change of a moment ago may come first.
    let mut event = live.next().await;
    while event.as_deref() == Some("MODIFIED b") {
        event = live.next().await;
    }
    assert_eq!(event.as_deref(), Some("ADDED live"));

    // The leader is killed. The stream ends or breaks; another server takes over.
    let killed = group.hubs[first].take().unwrap().killed();
    while live.next().await.is_some() {}
    create(&group, "while-nobody-led");
    let all = ["a", "b", "live", "while-nobody-led"].map(|name| format!("c1/default/{name}"));
    let all = all.each_ref().map(String::as_str);
    let (_, waited) = group.complete(second, MAPS, &all).await;
    assert!(waited > 0, "the Lease of a killed server lasts a while");
    let leader = group.leader().await;
    assert_ne!(leader, first);
    for index in group.living() {
        // Another server may learn a little later who leads.
        group.complete(index, MAPS, &all).await;
        let client = &group.clients[index];
        let mut expired = watch(client, &resumed).await;
        assert_eq!(expired.next().await.as_deref(), Some("ERROR 410"));
        let page = format!("{MAPS}?limit=1&continue={token}");
        let page = ask(client, &page, &[]).await;
        assert_eq!(
            (page.code, page.body["reason"].as_str()),
            (410, Some("Expired"))
        );
    }
    // The informer lists anew, and follows the new leader.
    create(&group, "after");
    let begun = Instant::now();
    while reader
        .get(&reflector::ObjectRef::new("after").within("default"))
        .is_none()
    {
        assert!(begun.elapsed() < PATIENCE, "the informer stays behind");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let listed = views(&group, leader).await;
    let listed = listed.list(&ListParams::default()).await.unwrap();
    let names = |maps: Vec<String>| maps.into_iter().collect::<BTreeSet<String>>();
    let informed = reader.state().iter().map(|map| map.name_any()).collect();
    assert_eq!(
        names(listed.iter().map(ResourceExt::name_any).collect()),
        names(informed)
    );
    following.abort();

    // The killed one comes back and forwards; then the leader stops and hands over.
    group.hubs[first] = Some(tokio::task::block_in_place(|| killed.started()));
    group.clients[first] = group.hub(first).home.client().await;
    let (answer, _) = group.patiently(first, MAPS).await;
    let now = answer.body["metadata"]["resourceVersion"].as_str().unwrap();
    let resumed = format!("{MAPS}?watch=true&resourceVersion={now}");
    let leader = group.leader().await;
    let mut live = watch(&group.clients[first], &resumed).await;
    let stopped = group.hubs[leader].take().unwrap();
    let (status, log) = tokio::task::block_in_place(|| stopped.server.stop());
    assert!(status.success(), "{log}");
    let ended = async { while live.next().await.is_some() {} };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    let next = group.leader().await;
    assert_ne!(next, leader);
    assert!(
        ended.is_ok(),
        "{leader} {next} {first}: the watch goes on\n{log}"
    );
    for index in group.living() {
        group.complete(index, MAPS, &["c1/default/after"]).await;
        let mut expired = watch(&group.clients[index], &resumed).await;
        assert_eq!(expired.next().await.as_deref(), Some("ERROR 410"));
    }
}

/// The configmaps of all members, as a client sees them whose server is the view.
async fn views(group: &Group, index: usize) -> Api<ConfigMap> {
    let home = &group.hub(index).home;
    let text = std::fs::read_to_string(home.kubeconfig()).unwrap();
    let viewed = text.replace(&home.address(), &format!("{}{VIEWS}", home.address()));
    let path = home.path().join("views.kubeconfig");
    std::fs::write(&path, viewed).unwrap();
    Api::namespaced(home.client_of(&path).await, "default")
}

/// Lists, tables, warnings, errors, rights and writes are the same at every server.
async fn every_server_answers(group: &Group, leader: usize, follower: usize) {
    tokio::task::block_in_place(|| {
        for name in ["a", "b"] {
            group
                .member
                .gives(&format!("create configmap {name} --from-literal a=1"));
        }
        let spec = json!({
            "kubeconfig": kubeconfig(&group.member, None),
            "syncResources": serde_json::from_str::<Value>(TYPES).unwrap(),
        });
        // Administrators of the hub may write in the member.
        let cluster = pedia_cluster("c1", spec, json!({"fleet.bareboat.dev/masters": "true"}));
        let hub = group.hub(follower);
        hub.gives_for("apply --server-side -f -", &cluster.to_string());
        let begun = Instant::now();
        loop {
            let text = hub.gives("get pediacluster c1 -o json");
            let cluster: Value = serde_json::from_str(&text).unwrap();
            let types = super::sync_conditions(&cluster);
            let synced = types.iter().all(|(_, status)| status == "Syncing");
            if condition(&cluster, "Ready").0 == "True" && !types.is_empty() && synced {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{cluster:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut answers = Vec::new();
    for client in &group.clients {
        let path = format!("{MAPS}?nonsense=1");
        let answer = ask(client, &path, &[]).await;
        assert_eq!(answer.code, 200, "{:#}", answer.body);
        assert!(answer.warnings[0].contains("nonsense"));
        answers.push(answer.body);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[1], answers[2]);
    let found = places(&answers[0]);
    assert!(found.contains(&"c1/default/a".to_owned()), "{found:?}");
    let client = &group.clients[follower];
    let unknown = ask(client, "/clusters/nobody/api/v1/pods", &[]).await;
    assert_eq!(unknown.code, 400, "{:#}", unknown.body);
    let kinds = ask(client, "/apis", &[]).await;
    assert_eq!(kinds.body["kind"], "APIGroupList");
    let all = "/apis/clusterpedia.io/v1beta1/collectionresources/any?resources=/configmaps";
    let request = http::Request::get(all).body(Vec::new()).unwrap();
    let all: Value = client.request(request).await.unwrap();
    assert!(places(&all).contains(&"c1/default/b".to_owned()));
    // The user is the same at both servers.
    let ann = [("impersonate-user", "ann")];
    let refused = ask(client, MAPS, &ann).await;
    assert_eq!(refused.code, 403, "{:#}", refused.body);
    assert!(
        refused.message().contains("\"ann\""),
        "{}",
        refused.message()
    );
    // A request that was forwarded is not forwarded again.
    let forwarded = [("bareboat-forwarded", "true")];
    let refused = ask(client, MAPS, &forwarded).await;
    assert_eq!((refused.code, refused.retry_after.as_str()), (503, "1"));
    assert_eq!(
        ask(&group.clients[leader], MAPS, &forwarded).await.code,
        200
    );
    // A stock kubectl, and a write with the version that was read.
    tokio::task::block_in_place(|| {
        let hub = group.hub(follower);
        let path = hub.home.path().join("fleet.kubeconfig");
        let mut command = bareboat(["fleet", "kubeconfig", "--save"]);
        command.arg(&path).env("KUBECONFIG", hub.home.kubeconfig());
        let made = run(&mut command, "");
        assert!(made.status.success(), "{}", made.all());
        let mut command = hub.command("--context clusterpedia get configmaps -n default");
        let shown = run(command.env("KUBECONFIG", &path), "");
        assert!(shown.stdout.starts_with("CLUSTER"), "{}", shown.all());
        let mut command =
            hub.command("--context c1 patch configmap a -n default -p '{\"data\":{\"a\":\"2\"}}'");
        let patched = run(command.env("KUBECONFIG", &path), "");
        assert!(patched.status.success(), "{}", patched.all());
        group
            .member
            .until("get configmap a -o jsonpath={.data.a}", "2");
    });
    let path = format!("/clusters/c1{MAPS}/b");
    let read = ask(client, &path, &[]).await.body;
    let wrong = json!({"metadata": {"resourceVersion": "1"}});
    let home = &group.hub(follower).home;
    let text = std::fs::read_to_string(home.kubeconfig()).unwrap();
    let member = format!("{}{VIEWS}/clusters/c1", home.address());
    let viewed = home.path().join("member.kubeconfig");
    std::fs::write(&viewed, text.replace(&home.address(), &member)).unwrap();
    let maps = Api::<ConfigMap>::namespaced(home.client_of(&viewed).await, "default");
    let params = PatchParams::default();
    let conflict = maps.patch("b", &params, &Patch::Merge(wrong)).await;
    assert!(
        matches!(&conflict, Err(kube::Error::Api(status)) if status.code == 409),
        "{conflict:?}"
    );
    let right = json!({"metadata": {"resourceVersion": read["metadata"]["resourceVersion"]}, "data": {"a": "3"}});
    let written = maps.patch("b", &params, &Patch::Merge(right)).await;
    assert_eq!(written.unwrap().data.unwrap()["a"], "3");
}
