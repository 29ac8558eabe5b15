//! What stands for priority and fairness in a build without the feature `fairness`: all servers have plain limits.

use super::Visitor;
use crate::request::info::RequestInfo;
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::HeaderValue;
use prometheus::core::Collector;
use std::sync::Arc;
use std::time::Duration;

/// Priority and fairness of a server. There is none.
pub(crate) enum FlowControl {}

impl FlowControl {
    pub(super) fn set_total(&self, _: usize) {
        match *self {}
    }

    pub(super) fn in_flight(&self) -> (usize, usize) {
        match *self {}
    }

    pub(super) fn classify(&self, _: &User, _: &RequestInfo) -> Arc<Class> {
        match *self {}
    }

    pub(super) fn dump(&self, _: &str, _: bool) -> Option<String> {
        match *self {}
    }

    pub(super) fn collector(&self) -> Box<dyn Collector> {
        match *self {}
    }
}

/// What a request is assigned to. There is nothing.
pub(crate) enum Class {}

impl Class {
    pub(crate) fn uids(&self) -> Option<&(HeaderValue, HeaderValue)> {
        match *self {}
    }
}

/// The seat of a request in a priority level. There are none.
pub(super) enum FairSeat {}

impl FairSeat {
    pub(super) fn new(class: Arc<Class>, _: Visitor) -> FairSeat {
        match *class {}
    }

    pub(super) fn patience(&self) -> Duration {
        match *self {}
    }

    pub(super) fn charge(&self, _: u64) {
        match *self {}
    }

    pub(super) fn finds_no_room(&self) -> Status {
        match *self {}
    }

    pub(super) fn waited_in_vain(&self) -> Status {
        match *self {}
    }

    pub(super) async fn enter(&mut self) -> Result<(), Status> {
        match *self {}
    }

    pub(super) fn is_held(&self) -> bool {
        match *self {}
    }

    pub(super) fn leave(&self) {
        match *self {}
    }

    pub(super) async fn take(&self) {
        match *self {}
    }

    pub(super) async fn take_after_body(&self) -> Result<(), Status> {
        match *self {}
    }

    pub(super) fn grow_now(&self) -> bool {
        match *self {}
    }

    pub(super) async fn grow(&self) -> Result<(), Status> {
        match *self {}
    }

    pub(super) fn woke(&self, _: impl FnOnce() -> usize) {
        match *self {}
    }

    pub(super) fn retire(&self) {
        match *self {}
    }
}
