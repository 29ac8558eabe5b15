//! What a function that answers a request gets besides it: how long the request may go on. With the feature `outbound` also calls to
//! other servers, see `proxy::upstream`.

use crate::audit::Audited;
use crate::authz::Authorized;
use crate::flow::Seat;
use crate::request::ask::Ask;
use crate::server::state::{Counted, Ending, State};
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// The calls of one request.
#[derive(Clone)]
pub struct Calls {
    pub(crate) state: Arc<State>,
    pub(crate) ask: Arc<Authorized<Ask>>,
    /// The seat of the request while it is answered.
    seat: Weak<Seat>,
}

bareboat_api::opaque_debug!(Calls);

impl Calls {
    pub(crate) fn new(state: &Arc<State>, ask: &Arc<Authorized<Ask>>) -> Calls {
        Calls {
            state: state.clone(),
            ask: ask.clone(),
            seat: Weak::new(),
        }
    }

    /// The same for a request that holds a seat.
    pub(crate) fn with_seat(mut self, seat: Option<&Arc<Seat>>) -> Calls {
        self.seat = seat.map(Arc::downgrade).unwrap_or_default();
        self
    }

    /// Waits for other servers. In the meantime the request does not count as running: its seat of flow control is free for other
    /// requests, so that a server that does not answer blocks none of them. The calls of this value already do this until the head of the
    /// answer has arrived. Wrap the reading of the answer's body in it as well. Several may wait at the same time.
    pub async fn away<T>(&self, answer: impl Future<Output = T>) -> T {
        match self.seat.upgrade() {
            Some(seat) => seat.away(answer).await,
            None => answer.await,
        }
    }

    /// Gives the seat of the request up for good. Use it before the last call, whose answer is passed on as it is: otherwise the answer
    /// of a call that was carried out could wait for a seat.
    pub fn leave(&self) {
        if let Some(seat) = self.seat.upgrade() {
            seat.retire();
        }
    }

    /// Returns how long an upgraded connection of the client may go on.
    pub fn life(&self) -> Life {
        Life {
            ending: self.state.ending().or_of(self.ask.standing.clone()),
            rounds: self.ask.standing.as_ref().map(|standing| standing.rounds()),
            _counted: Arc::new(self.state.under_way.enter()),
            _audited: self.ask.trace.audited().cloned(),
        }
    }
}

/// How long a stream may go on. It is audited as running, and a shutdown waits for it, until this is dropped.
#[derive(Clone)]
pub struct Life {
    ending: Ending,
    rounds: Option<watch::Receiver<u64>>,
    _counted: Arc<Counted>,
    _audited: Option<Arc<Audited>>,
}

bareboat_api::opaque_debug!(Life);

impl Life {
    /// Waits until the client loses its permission or the server shuts down.
    pub async fn ended(&self) {
        self.ending.clone().begun().await;
    }

    /// Waits until the rights of the client may have changed. It never returns for calls in the same process.
    pub async fn rights_changed(&mut self) {
        if let Some(rounds) = &mut self.rounds
            && rounds.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}
