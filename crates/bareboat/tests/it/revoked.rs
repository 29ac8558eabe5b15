//! Every kind of stream ends within two seconds of whatever ends the right to it, and no other stream does.

mod setting;
mod streams;

use crate::support::*;
use setting::{ACCOUNTS, BINDINGS, PODS, Pods, ROLES, SECRETS, Setting};
use std::time::{Duration, Instant};
use streams::{Credential, longest};

const LIMIT: Duration = Duration::from_secs(2);
const DAY: Duration = Duration::from_secs(86_400);

/// What ends the rights of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Role,
    Binding,
    Account,
    Pod,
    Secret,
    /// The secret that holds the token.
    Holder,
    Node,
    Keys,
    Ca,
}

impl Cause {
    /// A credential that depends on it.
    async fn credential(self, setting: &Setting, name: &str) -> Credential {
        let kind = match self {
            Cause::Pod => "Pod",
            Cause::Secret => "Secret",
            Cause::Node => "Node",
            Cause::Ca => return setting.certificate(name, DAY),
            Cause::Holder => return setting.held_token(name).await,
            _ => return setting.token(name, json!({})).await,
        };
        let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}});
        setting.token(name, bound).await
    }

    async fn happens(self, setting: &Setting, name: &str) {
        let server = &setting.server;
        let path = match self {
            Cause::Role => {
                let path = format!("{ROLES}/{name}");
                let none = json!({"rules": []});
                server.patch(&path, MERGE, &none).await.expect(200);
                return;
            }
            Cause::Holder => {
                let path = format!("{SECRETS}/{name}-held");
                let none = json!({"data": {"token": null}});
                server.patch(&path, MERGE, &none).await.expect(200);
                return;
            }
            Cause::Keys => {
                let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
                setting.accounts.replace_keys(&other, &[]).unwrap();
                return;
            }
            Cause::Ca => {
                setting.trust_certificates(false);
                return;
            }
            Cause::Binding => format!("{BINDINGS}/{name}"),
            Cause::Account => format!("{ACCOUNTS}/{name}"),
            Cause::Pod => format!("{PODS}/{name}?gracePeriodSeconds=0"),
            Cause::Secret => format!("{SECRETS}/{name}"),
            Cause::Node => format!("/api/v1/nodes/{name}"),
        };
        server.delete(&path).await.expect(200);
    }
}

/// Lets every cause happen while streams are open that depend on it, and others that do not.
async fn every_cause(pods: Pods) {
    let setting = Setting::new(pods).await;
    setting.account("other").await;
    let other = setting.token("other", json!({})).await;
    let others = setting.open(&other).await;
    let others = others.expect("streams of another account");
    for cause in [
        Cause::Role,
        Cause::Binding,
        Cause::Pod,
        Cause::Secret,
        Cause::Holder,
        Cause::Node,
        Cause::Account,
        Cause::Ca,
        Cause::Keys,
    ] {
        // Keys are shared, so the other streams end with the last cause.
        if cause == Cause::Keys {
            let ended = others.iter().filter(|stream| stream.is_finished());
            let ended: Vec<&str> = ended.map(|stream| stream.what()).collect();
            assert_eq!(ended, [""; 0], "streams of another account");
        }
        // A busy machine may be late once, but not every time.
        let mut taken = Vec::new();
        for attempt in 0..5 {
            let name = format!("{cause:?}-{attempt}").to_lowercase();
            setting.account(&name).await;
            setting.trust_certificates(true);
            let credential = cause.credential(&setting, &name).await;
            let open = setting.open(&credential).await.expect("streams");
            cause.happens(&setting, &name).await;
            taken.push(longest(open, Instant::now()).await);
            if taken.last().is_some_and(|(_, took)| *took <= LIMIT) {
                break;
            }
        }
        assert!(
            taken.last().is_some_and(|(_, took)| *took <= LIMIT),
            "{cause:?}: {taken:?}"
        );
    }
    longest(others, Instant::now()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_ends_within_two_seconds_of_every_cause() {
    every_cause(Pods::Functions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_kubelets_end_within_two_seconds_of_every_cause() {
    every_cause(Pods::Kubelet).await;
}

/// Opens streams with credentials that expire soon, and sees that they end then.
async fn until_expiry(credential: impl AsyncFn(&Setting, u64) -> Credential) {
    let setting = Setting::new(Pods::Kubelet).await;
    setting.account("robot").await;
    // A machine that is slow may take longer than a short life to begin the streams.
    for life in [4_u64, 16, 64, 256] {
        let credential = credential(&setting, life).await;
        let begun = Instant::now();
        let Ok(open) = setting.open(&credential).await else {
            continue;
        };
        let expected = Duration::from_secs(life);
        let (what, took) = longest(open, begun).await;
        // Seconds are whole in tokens and certificates, so the end may be a second later.
        assert!(
            took <= expected + Duration::from_secs(1) + LIMIT || life < 64,
            "{what}: {took:?} of {expected:?}"
        );
        assert!(
            took + Duration::from_secs(1) >= expected,
            "{what}: {took:?} of {expected:?}"
        );
        return;
    }
    panic!("no stream began before its credential expired");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_ends_when_its_token_expires() {
    until_expiry(async |setting, life| setting.short_token("robot", life).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_ends_when_its_certificate_expires() {
    until_expiry(async |setting, life| setting.certificate("robot", Duration::from_secs(life)))
        .await;
}
