//! What stands for `aggregation` in a build without the feature `dynamic`: no other server answers for a group and version.

use crate::discovery::{Priorities, RemoteVersion};
use crate::flow::Unread;
use crate::openapi::RemoteDocument;
use crate::reply::Response;
use crate::request::ask::Ask;
use crate::request::info::RequestInfo;
use crate::server::state::State;
use bareboat_api::{Status, Str, Value};
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// No groups and versions of other servers.
#[derive(Default)]
pub(crate) struct Aggregation;

impl Aggregation {
    pub(crate) fn route(&self, _: &RequestInfo) -> Option<Arc<Route>> {
        None
    }

    pub(crate) fn find(&self, _: &str, _: &str) -> Option<Arc<Route>> {
        None
    }

    pub(crate) fn generation(&self) -> u64 {
        0
    }

    pub(crate) fn versions(&self) -> Vec<RemoteVersion> {
        Vec::new()
    }

    pub(crate) fn priorities(&self) -> Priorities {
        Priorities::default()
    }

    pub(crate) fn documents(&self) -> Vec<RemoteDocument> {
        Vec::new()
    }
}

/// A group and version that another server serves. There are none.
pub(crate) enum Route {}

impl Route {
    pub(crate) fn place(&self) -> (Str, Str) {
        match *self {}
    }

    pub(crate) fn resources(&self) -> Option<Arc<[Value]>> {
        match *self {}
    }
}

/// The OpenAPI 2 document of another server. There are none.
pub(crate) enum RemoteV2 {}

pub(crate) async fn v2_documents(_: &Arc<State>) -> Vec<RemoteV2> {
    Vec::new()
}

pub(crate) fn hash_v2(own: String, _: &[RemoteV2]) -> String {
    own
}

pub(crate) fn merge_v2(own: Value, _: &[RemoteV2]) -> Value {
    own
}

pub(crate) fn hidden(_: &State) -> HashSet<String> {
    HashSet::new()
}

pub(crate) async fn document(_: &State, route: &Route) -> Result<Option<(Str, Bytes)>, Status> {
    match *route {}
}

pub(crate) async fn answer(
    _: &State,
    _: &Ask,
    _: Unread,
    route: &Route,
    _: Option<Instant>,
) -> Result<Response, Status> {
    match *route {}
}
