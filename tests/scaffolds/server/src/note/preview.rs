//! The subresource `notes/preview`: a function that answers requests about one object.

use super::GROUP;
use bareboat::api::kind::Verb;
use bareboat::prelude::*;
use bareboat::server::{Body, Response};

/// Adds the subresource to a server. Users need the right to `get` or `create` `notes/preview`.
pub fn serve(builder: ServerBuilder) -> ServerBuilder {
    let part = Subresource::connection("preview", &[Verb::Get, Verb::Create]);
    builder.subresource(GROUP, "notes", &part).connect(
        GROUP,
        "notes",
        "preview",
        Connector::program(answer),
    )
}

async fn answer(visit: Visit) -> Result<Response, Status> {
    let user = &visit.question.user.name;
    let title = visit
        .object
        .as_ref()
        .and_then(|object| object.at(&["spec", "title"]));
    let title = title.and_then(Value::as_str).unwrap_or_default();
    let answer = value!({"user": (user.as_str()), "title": (title)});
    let mut response = Response::new(Body::full(answer.to_json()));
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    Ok(response)
}
