//! Who manages which field: the bookkeeping of writes, and server-side apply.

use crate::request::options::WriteOptions;
use crate::verbs::Call;
use crate::verbs::{Edit, Edited};
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Object, Status};

/// Records the creator of an object as manager of its fields.
pub(crate) fn on_create(
    _call: &Call,
    object: Object,
    _manager: &str,
    _now: &str,
) -> Result<Object, Status> {
    Ok(object)
}

/// Records the writer of changed fields as their manager.
pub(crate) fn on_update(
    _call: &Call,
    object: Object,
    _live: &Object,
    _manager: &str,
    _now: &str,
) -> Result<Object, Status> {
    Ok(object)
}

/// A server-side apply on its way.
pub(crate) struct Apply {}

impl Apply {
    pub(crate) fn new(
        _call: &Call,
        _config: Object,
        _options: &WriteOptions,
    ) -> Result<Apply, Status> {
        Err(Status::unsupported_media_type(&[
            "application/json-patch+json",
            "application/merge-patch+json",
        ]))
    }

    /// The object an apply creates where there is none.
    pub(crate) fn create(&self, _call: &Call) -> Result<Object, Status> {
        Err(Status::no_such_route())
    }
}

impl Edit for Apply {
    fn edit<'a>(
        &'a self,
        _call: &'a Call,
        _live: &'a Object,
    ) -> BoxFuture<'a, Result<Edited, Status>> {
        Box::pin(std::future::ready(Err(Status::no_such_route())))
    }
    fn is_conditional(&self) -> bool {
        false
    }
}
