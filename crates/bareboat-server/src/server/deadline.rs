//! The deadline of a request: when it is, and waiting until then.

use super::refusal::Refusal;
use super::state::State;
use crate::request::duration;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use bareboat_api::Status;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

/// Returns when the answer must be complete.
pub(super) fn deadline(
    state: &State,
    query: &Query,
    info: &RequestInfo,
    patient: bool,
    started: Instant,
) -> Result<Instant, Refusal> {
    let writes = matches!(info.verb.as_str(), "create" | "update" | "patch" | "delete");
    let limit = if writes {
        state.limits.write
    } else {
        state.limits.request
    };
    let wished = if patient {
        None
    } else {
        duration::wished(query)?
    };
    Ok(started + wished.map_or(limit, |wished| wished.min(limit)))
}

/// Waits for an answer until a time; `None` if there was none. The timer is made when the answer has to wait: most reads
/// need none.
pub(super) async fn until<T>(
    deadline: Instant,
    mut answer: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let mut timer = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        if timer.is_none() {
            timer.set(Some(tokio::time::sleep_until(deadline.into())));
        }
        match timer.as_mut().as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}

/// Returns the answer to a request whose deadline has passed.
pub(super) fn late() -> Refusal {
    Status::timeout("request did not complete within the allotted timeout").into()
}
