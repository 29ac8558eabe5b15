//! Flow control: decides which requests run, wait or are refused, and limits the memory of bodies.
//!
//! With priority and fairness (`fair`), flow schemas assign a request to a priority level, and each level has seats and
//! fair queues. Without it (`plain`), there is one limit for reads and one for writes.
//!
//! A request holds a seat while it works. While it waits for its body, or for another server, its seat is free for
//! other requests, so that stalled clients or servers do not block them. Large requests take at most half of the seats,
//! so that small ones get through.

#[cfg(feature = "fairness")]
mod adjust;
mod body;
#[cfg(feature = "fairness")]
mod dump;
mod estimate;
#[cfg(feature = "fairness")]
mod fair;
#[cfg(feature = "fairness")]
mod fair_seat;
#[cfg(feature = "fairness")]
mod level;
mod memory;
#[cfg(feature = "fairness")]
mod meters;
mod outside;
mod plain;
mod seat;
#[cfg(not(feature = "fairness"))]
mod without_fairness;

pub(crate) use body::{Buffered, Unread};
pub(crate) use estimate::objects;
#[cfg(feature = "fairness")]
pub(crate) use fair::Class;
#[cfg(feature = "fairness")]
pub use fair::FlowControl;
pub(crate) use memory::{decoding, set_aside, set_body_aside, values};
pub(crate) use seat::Seat;
#[cfg(not(feature = "fairness"))]
pub(crate) use without_fairness::{Class, FlowControl};

use crate::reply::{Response, plain_text};
use crate::request::info::RequestInfo;
use crate::work;
use bareboat_api::Status;
use bareboat_api::kind::User;
#[cfg(feature = "fairness")]
use fair_seat::FairSeat;
use http::{HeaderValue, StatusCode, header};
use plain::Plain;
use prometheus::core::Collector;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
#[cfg(not(feature = "fairness"))]
use without_fairness::FairSeat;

/// Maximum bytes of incomplete bodies.
const ARRIVING: usize = 256 << 20;
/// Maximum bytes of bodies of large requests that wait for their turn.
const PARKED: usize = 64 << 20;
/// Maximum bytes of whole bodies of requests that other servers may answer.
const PASSED_ON: usize = 64 << 20;
/// Message of a 429 answer.
const LATER: &str = "Too many requests, please try again later.";

/// Limits on running requests; long-running ones do not count.
pub(crate) struct Flow {
    policy: Policy,
    budgets: Arc<Budgets>,
}

enum Policy {
    Plain(Plain),
    Fair(FlowControl),
}

/// Limits on bytes of bodies.
struct Budgets {
    arriving: Arc<Semaphore>,
    parked: Arc<Semaphore>,
    passed_on: Arc<Semaphore>,
    /// The memory of decoded bodies, in units.
    decoded: Arc<Semaphore>,
    /// The memory of those that wait for other servers, in units.
    set_aside: Arc<Semaphore>,
}

/// A request that needs a seat.
pub(crate) struct Visitor {
    pub(crate) user: Arc<User>,
    pub(crate) info: Arc<RequestInfo>,
    /// The number of objects that the request reads; it decides how many seats it needs.
    pub(crate) objects: usize,
    /// How long it may wait in a queue.
    pub(crate) patience: Duration,
}

impl Flow {
    /// Priority and fairness, or plain limits without it; at most this many reads and writes run at once.
    pub(crate) fn build(control: Option<FlowControl>, (reads, writes): (usize, usize)) -> Flow {
        match control {
            None => Flow::plain(reads, writes),
            Some(control) => {
                control.set_total(reads.saturating_add(writes));
                Flow::fair(control)
            }
        }
    }

    /// A limit for reads and one for writes.
    fn plain(reading: usize, writing: usize) -> Flow {
        Flow::new(Policy::Plain(Plain::new(reading, writing)))
    }

    /// Priority and fairness.
    fn fair(control: FlowControl) -> Flow {
        Flow::new(Policy::Fair(control))
    }

    fn new(policy: Policy) -> Flow {
        Flow {
            policy,
            budgets: Arc::new(Budgets {
                arriving: Arc::new(Semaphore::new(ARRIVING)),
                parked: Arc::new(Semaphore::new(PARKED)),
                passed_on: Arc::new(Semaphore::new(PASSED_ON)),
                decoded: Arc::new(Semaphore::new(memory::DECODED / memory::UNIT)),
                set_aside: Arc::new(Semaphore::new(memory::SET_ASIDE / memory::UNIT)),
            }),
        }
    }

    /// Returns the limits on bytes of bodies, to change them before the first request.
    #[cfg(test)]
    fn budgets_mut(&mut self) -> &mut Budgets {
        Arc::get_mut(&mut self.budgets).expect("no request has them yet")
    }

    /// Returns how many seats reads and writes hold.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        match &self.policy {
            Policy::Plain(plain) => plain.in_flight(),
            Policy::Fair(control) => control.in_flight(),
        }
    }

    /// Returns the schema and the level of a request; `None` without priority and fairness.
    pub(crate) fn classify(&self, user: &User, info: &RequestInfo) -> Option<Arc<Class>> {
        match &self.policy {
            Policy::Plain(_) => None,
            Policy::Fair(control) => Some(control.classify(user, info)),
        }
    }

    /// Returns a seat, at once or after waiting, or the answer that refuses the request.
    pub(crate) async fn enter(
        &self,
        class: Option<&Arc<Class>>,
        visitor: Visitor,
    ) -> Result<Arc<Seat>, Box<Response>> {
        let mut seat = match (&self.policy, class) {
            (Policy::Fair(_), Some(class)) => {
                Seat::fair(class.clone(), visitor, self.budgets.clone())
            }
            (Policy::Fair(control), None) => {
                let class = control.classify(&visitor.user, &visitor.info);
                Seat::fair(class, visitor, self.budgets.clone())
            }
            (Policy::Plain(plain), _) => plain.seat(&visitor.info, self.budgets.clone()),
        };
        match seat.enter().await {
            Ok(()) => Ok(Arc::new(seat)),
            Err(status) => Err(Box::new(refusal(&status))),
        }
    }

    /// Returns a debugging dump by its name; `None` if there is none, or without priority and fairness.
    pub(crate) fn dump(&self, name: &str, details: bool) -> Option<String> {
        match &self.policy {
            Policy::Plain(_) => None,
            Policy::Fair(control) => control.dump(name, details),
        }
    }

    /// The metrics of levels and schemas.
    pub(crate) fn collector(&self) -> Option<Box<dyn Collector>> {
        match &self.policy {
            Policy::Plain(_) => None,
            Policy::Fair(control) => Some(control.collector()),
        }
    }
}

/// Returns the flow control of servers that do not set it.
pub(crate) fn default_control() -> Option<FlowControl> {
    #[cfg(feature = "fairness")]
    return Some(FlowControl::new());
    #[cfg(not(feature = "fairness"))]
    None
}

/// Whether a verb only reads.
fn reads(verb: &str) -> bool {
    matches!(verb, "get" | "list" | "watch" | "head" | "options")
}

fn later() -> Status {
    Status::too_many_requests(LATER, 1)
}

/// Returns the plain text answer to a request that gets no seat.
fn refusal(status: &Status) -> Response {
    let mut response = plain_text(
        StatusCode::TOO_MANY_REQUESTS,
        format!("{}\n", status.message),
    );
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// A place among the large requests. With fair queues it is kept with the seat.
pub(crate) struct LargePlace {
    _permit: Option<OwnedSemaphorePermit>,
}

/// Takes a place among the large requests for the current one, which holds a body of so many bytes. Fails if there are
/// too many. Take it while a request can still be refused, and hold it until the request is done.
pub(crate) async fn large_place(body: usize) -> Result<Option<LargePlace>, Status> {
    match work::seat() {
        Some(seat) => seat.grow(body).await.map(Some),
        None => Ok(None),
    }
}

/// Waits for another server. The request's seat is free for other requests in the meantime.
pub(crate) async fn away<T>(answer: impl Future<Output = T>) -> T {
    match work::seat() {
        Some(seat) => seat.away(answer).await,
        None => answer.await,
    }
}

/// Waits for a future that is usually ready. If it is not, the request's seat is free for other requests in the
/// meantime.
pub(crate) async fn maybe_away<T>(seat: Option<&Arc<Seat>>, what: impl Future<Output = T>) -> T {
    let Some(seat) = seat else {
        return what.await;
    };
    let mut what = std::pin::pin!(what);
    if let Some(done) = futures_util::future::poll_immediate(&mut what).await {
        return done;
    }
    seat.away(what).await
}

/// Records that the current request woke so many watchers, which counts as its work.
pub(crate) fn woke(watchers: impl FnOnce() -> usize) {
    if let Some(seat) = work::seat() {
        seat.woke(watchers);
    }
}

#[cfg(all(test, feature = "fairness"))]
mod tests;
