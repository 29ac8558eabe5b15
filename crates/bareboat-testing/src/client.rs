//! Clients of a test server: straight into the corridor, or over its socket.

use bareboat::Server;
use bareboat::api::kind::User;
use bareboat::server::request::body::RequestBody;
use http_body_util::BodyExt as _;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::convert::Infallible;

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

/// A client that calls the server without a socket.
pub(crate) fn in_process(server: &Server, user: User) -> kube::Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, user) = (server.clone(), user.clone());
        async move {
            let request =
                request.map(|body| RequestBody::Boxed(Box::pin(body.map_err(Into::into))));
            Ok::<_, Infallible>(server.call(user, request).await)
        }
    });
    kube::Client::new(service, "default")
}

/// A client that reads a kubeconfig and goes over the socket.
pub(crate) async fn over_socket(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("our own kubeconfig is well formed");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("our own kubeconfig can be used");
    kube::Client::try_from(config).expect("a client can be made of our own kubeconfig")
}
