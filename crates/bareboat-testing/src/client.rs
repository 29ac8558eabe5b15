//! The users of a test server, and the client that connects to its socket.

use bareboat::api::kind::User;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

/// Returns the administrator, as in the kubeconfig.
pub(crate) fn admin() -> User {
    user("admin", &["system:masters"])
}

/// Returns a user with groups, as if authenticated.
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

/// Returns a client that connects to the socket with a kubeconfig.
pub(crate) async fn over_socket(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("our own kubeconfig is well formed");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("our own kubeconfig can be used");
    kube::Client::try_from(config).expect("a client can be made of our own kubeconfig")
}
