//! Who asks a test server, and the client that goes over its socket.

use bareboat::api::kind::User;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

/// The administrator, as the kubeconfig knows him.
pub(crate) fn admin() -> User {
    user("admin", &["system:masters"])
}

/// Somebody in some groups, as if they had been authenticated.
pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.into(),
        groups: groups
            .iter()
            .copied()
            .chain(["system:authenticated"])
            .map(Into::into)
            .collect(),
        ..User::default()
    }
}

/// A client that reads a kubeconfig and goes over the socket.
pub(crate) async fn over_socket(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("our own kubeconfig is well formed");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("our own kubeconfig can be used");
    kube::Client::try_from(config).expect("a client can be made of our own kubeconfig")
}
