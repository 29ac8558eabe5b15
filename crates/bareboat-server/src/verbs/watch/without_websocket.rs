//! What stands for watches over WebSockets in a build without the feature `websockets`: they are refused.

use super::body::WatchBody;
use crate::authn::wants_websocket;
use crate::reply::{Response, plain_text};
use crate::request::ask::Ask;
use crate::request::negotiate::Media;
use http::StatusCode;

/// A watch over a WebSocket. There are none.
pub(super) enum Upgrade {}

impl Upgrade {
    pub(super) fn of(ask: &Ask) -> Result<Option<Upgrade>, Box<Response>> {
        match wants_websocket(&ask.headers) && ask.upgrade.is_some() {
            false => Ok(None),
            true => Err(Box::new(plain_text(
                StatusCode::BAD_REQUEST,
                "this server has no watches over WebSockets; watch by a plain request",
            ))),
        }
    }

    pub(super) fn respond(self, _: WatchBody, _: Media) -> Response {
        match self {}
    }
}
