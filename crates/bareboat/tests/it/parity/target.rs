//! The two servers a corpus is sent to.

use crate::support::{Answer, read, request};
use bareboat_api::kind::User;
use bareboat_testing::TestServer;
use bytes::Bytes;
use kube::client::Body;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::time::Duration;

/// All requests use this user name, so that derived values are equal.
pub(super) const USER: &str = "parity";

/// A server that receives requests.
pub(super) enum Target {
    /// Bareboat, in this process.
    Ours(Box<TestServer>),
    /// Another server, over its socket.
    Theirs(kube::Client),
}

impl Target {
    /// Starts a Bareboat with its initial objects only.
    pub(super) async fn ours() -> Target {
        let server = TestServer::builder().without_controllers().start().await;
        Target::Ours(Box::new(server))
    }

    /// Connects to the server whose kubeconfig `BAREBOAT_PARITY_PEER` names, if set.
    pub(super) async fn theirs() -> Option<Target> {
        Target::named("BAREBOAT_PARITY_PEER").await
    }

    /// Connects to the server whose kubeconfig a variable of the environment names, if set.
    pub(super) async fn named(variable: &str) -> Option<Target> {
        let path = std::env::var(variable).ok()?;
        let kubeconfig = Kubeconfig::read_from(path).expect("the peer's kubeconfig can be read");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.expect("the peer's kubeconfig can be used");
        let client = kube::Client::try_from(config);
        Some(Target::Theirs(client.expect("the peer is reachable")))
    }

    /// Waits until the server's controllers have seen a new object of their group.
    pub(super) async fn settle(&self, group: &str) {
        let looked_after = [
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
            "flowcontrol.apiserver.k8s.io",
        ];
        if looked_after.contains(&group) {
            self.catch_up().await;
        }
    }

    /// Waits until the server's caches have seen all writes.
    pub(super) async fn catch_up(&self) {
        if matches!(self, Target::Theirs(_)) {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    /// Sends a request and reads the whole response.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut all = vec![("user-agent", USER)];
        all.extend(headers);
        match self {
            Target::Ours(server) => {
                let user = User {
                    name: USER.into(),
                    groups: ["system:masters", "system:authenticated"]
                        .map(Into::into)
                        .to_vec(),
                    ..User::default()
                };
                read(
                    server
                        .call_as(user, request(method, path, &all, body))
                        .await,
                )
                .await
            }
            Target::Theirs(client) => {
                all.push(("impersonate-user", USER));
                all.push(("impersonate-group", "system:masters"));
                let asked = request(method, path, &all, body);
                let asked = asked.map(|body: Bytes| Body::from(body));
                match client.send(asked).await {
                    Ok(answer) => read(answer).await,
                    // kube-apiserver closes the connection of a request that makes it panic.
                    Err(error) => Answer {
                        code: 0,
                        headers: http::HeaderMap::new(),
                        bytes: error.to_string().into(),
                    },
                }
            }
        }
    }
}
