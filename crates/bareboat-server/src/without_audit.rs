//! What stands for `audit` in a build without the feature `audit`: no request is recorded.

use crate::authz::Decision;
use crate::diagnostics::Trace;
use crate::request::info::RequestInfo;
use bareboat_api::Status;
use bareboat_api::facts::MessageRef;
use bareboat_api::kind::User;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Records requests. There is nothing that does.
pub(crate) enum Audit {}

/// A request on arrival.
pub(crate) struct Arrival<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) info: &'a RequestInfo,
    pub(crate) user: Option<&'a Arc<User>>,
    pub(crate) from: Option<IpAddr>,
}

impl Audit {
    pub(crate) async fn begin(&self, _: &Trace, _: Arrival<'_>) -> Result<(), Status> {
        match *self {}
    }

    pub(crate) async fn flush(&self) {
        match *self {}
    }
}

/// The record of a request. There are none.
pub(crate) enum Audited {}

impl Audited {
    pub(crate) fn acts_as(&self, _: &Arc<User>) {
        match *self {}
    }

    pub(crate) fn decided(&self, _: &Decision) {
        match *self {}
    }

    pub(crate) fn annotate(&self, _: &str, _: &str) {
        match *self {}
    }

    pub(crate) fn took(&self, _: Duration, _: impl FnOnce() -> String) {
        match *self {}
    }

    pub(crate) fn speaks(&self, _: &str, _: Option<MessageRef>) {
        match *self {}
    }

    #[cfg(feature = "dynamic")]
    pub(crate) fn wants_sent(&self) -> bool {
        match *self {}
    }

    pub(crate) fn sent(&self, _: &Bytes) {
        match *self {}
    }

    pub(crate) fn creates(&self, _: &str) {
        match *self {}
    }

    pub(crate) fn wants_answer(&self) -> bool {
        match *self {}
    }

    pub(crate) fn answers(&self, _: &Bytes) {
        match *self {}
    }

    pub(crate) fn refused(&self, _: &Status, _: bool) {
        match *self {}
    }

    pub(crate) async fn answered(&self, _: StatusCode, _: bool) {
        match *self {}
    }

    pub(crate) async fn panicked(&self) {
        match *self {}
    }
}
