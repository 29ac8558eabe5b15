//! The Kubernetes API inside an axum program, together with its own routes.
//!
//! A server needs no socket: `Server::call` answers a request of a user. Here axum listens, routes and authenticates,
//! and passes all paths without a route to the API.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bareboat::prelude::*;
use bareboat::server::RequestBody;

/// Returns the router: one page, and the API on all other paths.
pub fn router(server: Server) -> Router {
    Router::new()
        .route("/", get("The API is under /api and /apis.\n"))
        .fallback(move |request: Request| answer(server.clone(), request))
}

async fn answer(server: Server, request: Request) -> Response {
    let Some(user) = user(&request) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let request = request.map(RequestBody::new);
    server.call(user, request).await.map(Body::new)
}

/// Authenticates a request with a fixed token; a real program would use sessions or a database.
fn user(request: &Request) -> Option<User> {
    let shown = request.headers().get(header::AUTHORIZATION)?;
    (shown == "Bearer secret").then(|| User {
        name: "ada".into(),
        groups: vec!["system:authenticated".into(), "system:masters".into()],
        ..User::default()
    })
}
