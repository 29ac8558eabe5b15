//! PUT: replacing an object.

use super::create::{authorize_creation, create_object};
use super::kind_request::KindRequest;
use super::write::change::{Edit, Edited, change, nameless};
use super::write::decode;
use crate::reply::Response;
use crate::request::options::WriteOptions;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status};
use bytes::Bytes;
use http::StatusCode;

/// Replaces the object the URL names.
pub(crate) async fn update(call: &KindRequest, body: Bytes) -> Result<Response, Status> {
    let options = WriteOptions::parse(&call.ask.query, "UpdateOptions")?;
    let object = decode::object(call, &body, options.field_validation)?;
    let (own, name) = (object.name(), &call.ask.info.name);
    if own.is_empty() {
        return Err(nameless(name));
    }
    if own != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        )));
    }
    let replace = Replace(object);
    if let Some(shown) = change(call, &replace, &options).await? {
        return call.present(StatusCode::OK, shown).await;
    }
    if !call.served.kind.policy.create_on_update || !call.ask.info.subresource.is_empty() {
        return Err(call.not_found());
    }
    // Kinds that allow it create a missing object, if the user may create.
    authorize_creation(call).await?;
    let mut object = replace.0;
    if !object.uid().is_empty() {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: ",
            object.uid()
        );
        let what = call.served.kind.group_resource();
        return Err(Status::conflict(what, object.name(), why));
    }
    object.remove_meta("resourceVersion");
    let shown = create_object(call, Edited::new(object), &options).await?;
    call.present(StatusCode::CREATED, shown).await
}

struct Replace(Object);

impl Edit for Replace {
    fn edit<'a>(
        &'a self,
        _call: &'a KindRequest,
        _live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        Box::pin(std::future::ready(Ok(Edited::new(self.0.clone()))))
    }

    fn is_conditional(&self) -> bool {
        !matches!(self.0.resource_version(), "" | "0")
    }

    fn is_whole(&self) -> bool {
        true
    }
}
