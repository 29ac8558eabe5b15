//! The attacks: expensive requests, unread responses, silent sockets.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;

use super::{past, storms, unread};
use crate::bench::{Bench, CRDS, namespace};
use crate::credentials::Access;
use crate::http1::{self, Connection};
use crate::load::Load;

/// Number of clients of one attack.
const CLIENTS: usize = 4;
pub(super) const GROUP: &str = "attack.example";
/// Kind whose second version a server converts that never answers.
pub(super) const SILENT: &str = "silents";
pub(super) const SMALL: &str = "/api/v1/namespaces/attack-small/configmaps";
pub(super) const LARGE: &str = "/api/v1/namespaces/attack-large/configmaps";
/// Number of small objects, for lists that cost processor time.
const SMALL_OBJECTS: usize = 20_000;
/// Number of large objects, for responses that cost memory.
pub(super) const LARGE_OBJECTS: usize = 40;
pub(super) const LARGE_BYTES: usize = 512 * 1024;

/// A type of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Attack {
    /// Objects with thousands of owners.
    Owners,
    /// Objects with tens of thousands of invalid labels.
    Labels,
    /// Services with thousands of ports.
    Ports,
    /// Lists of everything in protobuf.
    ProtobufLists,
    /// Indented lists of everything.
    PrettyLists,
    /// Lists of everything in YAML.
    YamlLists,
    /// Definitions with large patterns.
    Patterns,
    /// CEL rules that compile patterns from data.
    RulePatterns,
    /// CEL rules that grow strings.
    RuleStrings,
    /// Nested defaults.
    Defaults,
    /// Lists at an exact old version, since which there were very many events.
    ExactLists,
    /// Lists at a version that is older than the events in memory.
    PastLists,
    /// Continue tokens, each of another state.
    ContinueTokens,
    /// Watches that begin with large objects and are not read.
    UnreadWatches,
    /// Watches that resume over large events and are not read.
    ResumedWatches,
    /// Indented lists that are not read.
    UnreadLists,
    /// Protobuf lists that are not read.
    UnreadProtobufLists,
    /// Indented lists on many streams of few connections that are not read.
    UnreadStreams,
    /// Protobuf bodies with many empty parts.
    ProtobufBodies,
    /// Sockets that send nothing.
    SilentSockets,
    /// Requests with unknown methods, without credentials.
    Methods,
    /// Lists that wait for a conversion whose server accepts connections and says nothing.
    SilentConverter,
    /// Lists of everything over 200 connections; the row `neighbour` runs it as an ordinary user.
    Neighbour,
    /// Watches that come and go.
    WatchStorm,
    /// Bodies of 3 MiB.
    LargeWrites,
    /// Bodies that arrive byte by byte.
    SlowBodies,
    /// Tokens with a wrong signature.
    BadTokens,
    /// Writes that wait for a webhook.
    HangingWebhook,
    /// Lists that wait for a conversion.
    HangingConverter,
    /// Tunnels to an aggregated server.
    Tunnels,
}

/// The attacks of the row `storms`.
pub(crate) const STORMS: &[Attack] = &[
    Attack::WatchStorm,
    Attack::LargeWrites,
    Attack::SlowBodies,
    Attack::BadTokens,
    Attack::HangingWebhook,
    Attack::HangingConverter,
    Attack::Tunnels,
];

/// The attacks of the row `attacks`, in the order of measurement.
pub(crate) const ALL: &[Attack] = &[
    Attack::Owners,
    Attack::Labels,
    Attack::Ports,
    Attack::ProtobufLists,
    Attack::PrettyLists,
    Attack::YamlLists,
    Attack::Patterns,
    Attack::RulePatterns,
    Attack::RuleStrings,
    Attack::Defaults,
    Attack::ExactLists,
    Attack::PastLists,
    Attack::ContinueTokens,
    Attack::UnreadWatches,
    Attack::ResumedWatches,
    Attack::UnreadLists,
    Attack::UnreadProtobufLists,
    Attack::UnreadStreams,
    Attack::ProtobufBodies,
    Attack::SilentSockets,
    Attack::Methods,
    Attack::SilentConverter,
];

impl Attack {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Creates the objects that attacks read, and the kinds that they write.
pub(crate) async fn prepare(bench: &Bench<'_>) -> Result<()> {
    for name in ["attack-small", "attack-large"] {
        bench.post("/api/v1/namespaces", namespace(name)).await?;
    }
    fill(bench, SMALL, bench.args.scaled(SMALL_OBJECTS), 100).await?;
    fill(bench, LARGE, LARGE_OBJECTS, LARGE_BYTES).await?;
    for (plural, schema) in [
        ("patterns", rule_over_patterns()),
        ("texts", rule_over_texts()),
        ("nests", nested(6)),
    ] {
        // A definition that is rejected for its cost is fine: its attack then gets a 404.
        let body = definition(plural, &schema).to_string();
        bench.ask("POST", CRDS, body.as_bytes()).await?;
    }
    Ok(())
}

/// Creates config maps.
pub(crate) async fn fill(bench: &Bench<'_>, path: &str, count: usize, bytes: usize) -> Result<()> {
    let load = Load {
        operations: count,
        limit: Duration::from_secs(300),
        ..bench.load(16, count)
    };
    let request = |at: usize| {
        let map = json!({"metadata": {"name": format!("filled-{at:06}")}, "data": {"value": "x".repeat(bytes)}});
        bench.request("POST", path, map.to_string().as_bytes())
    };
    load.run(&bench.server, request).await?;
    Ok(())
}

/// Attacks until the process is killed.
pub(crate) async fn run(attack: Attack, kubeconfig: &Path) -> Result<()> {
    let access = Access::from_kubeconfig(kubeconfig)?;
    let maps = "/api/v1/namespaces/default/configmaps";
    let post = |path: &str, body: &Value| {
        http1::request(
            &access,
            "POST",
            path,
            "application/json",
            body.to_string().as_bytes(),
        )
    };
    let custom = |plural: &str| format!("/apis/{GROUP}/v1/{plural}");
    let request = match attack {
        Attack::Owners => post(maps, &with_owners()),
        Attack::Labels => post(maps, &with_labels()),
        Attack::Ports => post("/api/v1/namespaces/default/services", &with_ports()),
        Attack::ProtobufLists => get(&access, SMALL, "application/vnd.kubernetes.protobuf"),
        Attack::PrettyLists => get(&access, &format!("{SMALL}?pretty=true"), "application/json"),
        Attack::YamlLists => get(&access, SMALL, "application/yaml"),
        Attack::Patterns => post(CRDS, &definition("wides", &many_patterns())),
        Attack::RulePatterns => post(&custom("patterns"), &object("Patterns", many_texts())),
        Attack::RuleStrings => post(&custom("texts"), &object("Texts", json!("a".repeat(1000)))),
        Attack::Defaults => post(&custom("nests"), &object("Nests", json!({}))),
        Attack::ExactLists => past::exact_list(&access, &format!("{SMALL}?limit=1")).await?,
        Attack::PastLists => {
            let request = past::exact_list(&access, LARGE).await?;
            return press(&access, &request, 20).await;
        }
        Attack::ContinueTokens => return past::continue_tokens(&access).await,
        Attack::ProtobufBodies => http1::request(
            &access,
            "POST",
            maps,
            "application/vnd.kubernetes.protobuf",
            &many_parts(),
        ),
        Attack::UnreadWatches => {
            let path = format!(
                "{LARGE}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            );
            return unread::leave(&access, &get(&access, &path, "application/json"), 40).await;
        }
        Attack::ResumedWatches => {
            let request = past::resumed_watch(&access, LARGE).await?;
            return unread::leave(&access, &request, 40).await;
        }
        Attack::UnreadLists => {
            let path = format!("{LARGE}?pretty=true");
            return unread::leave(&access, &get(&access, &path, "application/json"), 40).await;
        }
        Attack::UnreadProtobufLists => {
            let request = get(&access, LARGE, "application/vnd.kubernetes.protobuf");
            return unread::leave(&access, &request, 40).await;
        }
        Attack::UnreadStreams => {
            return unread::streams(&access, &format!("{LARGE}?pretty=true")).await;
        }
        Attack::SilentSockets => return silent_sockets(&access).await,
        Attack::Methods => return methods(&access).await,
        Attack::Neighbour => {
            let request = get(&access, "/api/v1/configmaps", "application/json");
            return press(&access, &request, 200).await;
        }
        Attack::WatchStorm => return storms::watches(&access).await,
        Attack::LargeWrites => return storms::large_writes(&access).await,
        Attack::SlowBodies => return storms::slow_bodies(&access).await,
        Attack::BadTokens => return storms::bad_tokens(&access).await,
        Attack::HangingWebhook => return storms::hanging_webhook(&access).await,
        Attack::HangingConverter => return storms::hanging_converter(&access).await,
        Attack::SilentConverter => {
            let request = get(
                &access,
                &format!("/apis/{GROUP}/v2/{SILENT}"),
                "application/json",
            );
            return press(&access, &request, 400).await;
        }
        Attack::Tunnels => return storms::tunnels(&access).await,
    };
    press(&access, &request, CLIENTS).await
}

/// Sends one request repeatedly with a number of clients and ignores the responses.
pub(super) async fn press(access: &Access, request: &[u8], clients: usize) -> Result<()> {
    let client = async || -> Result<()> {
        loop {
            // The server may close a connection; then a new one is opened.
            let Ok(mut connection) = Connection::open(access, 256 * 1024).await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            while let Ok(answer) = connection.send(request).await {
                if answer.status == 429 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    };
    futures_util::future::try_join_all((0..clients).map(|_| client())).await?;
    Ok(())
}

async fn silent_sockets(access: &Access) -> Result<()> {
    let mut held = Vec::new();
    // Below the limit of open files of this process; rejected connections are opened again.
    for _ in 0..900 {
        held.extend(TcpStream::connect(&access.authority).await);
    }
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        for socket in &mut held {
            if socket.try_read(&mut [0]).is_ok_and(|read| read == 0)
                && let Ok(fresh) = TcpStream::connect(&access.authority).await
            {
                *socket = fresh;
            }
        }
    }
}

async fn methods(access: &Access) -> Result<()> {
    let stranger = Access {
        token: None,
        tls: crate::credentials::trusting()?,
        ..access.clone()
    };
    for number in 0_u64.. {
        let Ok(mut connection) = Connection::open(&stranger, 16 * 1024).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let request = http1::request(&stranger, &format!("M{number}"), "/api", "", b"");
        // A rejection is expected.
        let _ = connection.send(&request).await;
    }
    Ok(())
}

pub(super) fn get(access: &Access, path: &str, accept: &str) -> Vec<u8> {
    let token = access.token.as_ref();
    let token = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n{token}\r\n",
        access.authority
    )
    .into_bytes()
}

fn definition(plural: &str, schema: &Value) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster",
            "names": {"plural": plural, "singular": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
            }],
        },
    })
}

fn object(kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"generateName": "one-"}, "spec": spec,
    })
}

fn with_owners() -> Value {
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("o{at}"), "uid": format!("u{at}")});
    let owners: Vec<_> = (0..8_000).map(owner).collect();
    // The name is invalid, so the object is validated but not stored.
    json!({"metadata": {"name": "Not A Name", "ownerReferences": owners}})
}

fn with_labels() -> Value {
    let labels: Map<_, _> = (0..40_000)
        .map(|at| (format!("wrong {at}"), json!("!")))
        .collect();
    json!({"metadata": {"generateName": "labels-", "labels": labels}})
}

fn with_ports() -> Value {
    let ports: Vec<_> = (0..15_000)
        .map(|at| json!({"name": format!("p{at}"), "port": 1 + at}))
        .collect();
    json!({"metadata": {"name": "Not A Name"}, "spec": {"ports": ports}})
}

fn many_patterns() -> Value {
    let properties: Map<_, _> = (0..300)
        .map(|at| {
            let pattern = format!(r"^\pL{{{}}}$", 100 + at % 100);
            (
                format!("p{at}"),
                json!({"type": "string", "pattern": pattern}),
            )
        })
        .collect();
    json!({"type": "object", "properties": properties})
}

fn rule_over_patterns() -> Value {
    json!({
        "type": "array", "maxItems": 400, "items": {"type": "string", "maxLength": 100},
        "x-kubernetes-validations": [{"rule": "self.all(p, 'a'.matches(p) || true)"}],
    })
}

fn many_texts() -> Value {
    (0..400).map(|at| format!(r"\pL{{{}}}", 100 + at)).collect()
}

fn rule_over_texts() -> Value {
    json!({
        "type": "string", "maxLength": 1200,
        "x-kubernetes-validations": [{"rule": "self.replace('a', self).replace('a', self).size() >= 0"}],
    })
}

/// Returns a schema of nested lists, each with ten empty objects by default.
fn nested(depth: usize) -> Value {
    let leaf =
        json!({"type": "object", "properties": {"leaf": {"type": "string", "default": "x"}}});
    (0..depth).fold(leaf, |schema, _| {
        let empty = vec![json!({}); 10];
        json!({"type": "object", "properties": {"a": {"type": "array", "items": schema, "default": empty}}})
    })
}

/// Encodes a ConfigMap with 300,000 empty owner references, two bytes each.
fn many_parts() -> Vec<u8> {
    let metadata: Vec<u8> = [0x6a, 0x00].repeat(300_000);
    let kind = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    [
        b"k8s\0".to_vec(),
        field(1, &kind),
        field(2, &field(1, &metadata)),
    ]
    .concat()
}

/// Encodes a length-delimited protobuf field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}
