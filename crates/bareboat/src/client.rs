//! kube-rs clients that call a server in the same process, without socket and credentials. Everything else works as
//! over a socket. Controllers in the same process use them.

use bareboat_api::kind::User;
use bareboat_server::Server;
use bareboat_server::request::body::RequestBody;
use http_body_util::BodyExt as _;
use std::convert::Infallible;

/// Returns a client whose requests are made as `user`, as if the server had authenticated it.
pub fn in_process(server: &Server, user: User) -> kube::Client {
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
