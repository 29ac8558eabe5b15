//! Seats, queues, and slow bodies.
#![allow(clippy::unwrap_used)]

mod fair;
mod memory;

use super::*;
use crate::request::body::{BodyError, RequestBody};
use bareboat_api::value;
use bytes::Bytes;
use futures_util::future::poll_immediate;
use http_body::Frame;
use tokio::sync::mpsc;

/// Plain limits with so many seats for writes.
fn plain(seats: usize, arriving: usize) -> Flow {
    let mut flow = Flow::plain(seats, seats);
    flow.budgets_mut().arriving = Arc::new(Semaphore::new(arriving));
    flow
}

/// A limited level with queues, or without, and so many seats for all users.
fn fair(seats: usize, queues: bool) -> (Flow, FlowControl) {
    let control = FlowControl::new();
    let response = match queues {
        true => {
            value!({"type": "Queue", "queuing": {"queues": 64, "handSize": 4, "queueLengthLimit": 5}})
        }
        false => value!({"type": "Reject"}),
    };
    let level = value!({
        "metadata": {"name": "all", "uid": "level-uid"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1000000, "borrowingLimitPercent": 0, "limitResponse": (response)}},
    });
    let schema = value!({
        "metadata": {"name": "all", "uid": "schema-uid"},
        "spec": {
            "matchingPrecedence": 5,
            "priorityLevelConfiguration": {"name": "all"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "*"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }],
        },
    });
    control.set_level("all", Some(&level));
    control.set_schema("all", Some(&schema));
    control.set_total(seats);
    (Flow::fair(control.clone()), control)
}

fn visitor(user: &str, verb: &str) -> Visitor {
    Visitor {
        user: Arc::new(User {
            name: user.into(),
            ..User::default()
        }),
        info: Arc::new(RequestInfo {
            verb: verb.into(),
            path: "/x".into(),
            ..RequestInfo::default()
        }),
        objects: 0,
        patience: Duration::from_secs(300),
    }
}

/// Enters as a user; the answer must come at once or not at all.
async fn enter(flow: &Flow, user: &str) -> Result<Arc<Seat>, Box<Response>> {
    flow.enter(None, visitor(user, "create")).await
}

async fn write(flow: &Flow) -> Result<Arc<Seat>, Box<Response>> {
    enter(flow, "someone").await
}

/// Seats for writes that are free.
fn free(flow: &Flow) -> usize {
    match &flow.policy {
        Policy::Plain(plain) => plain.writing.seats.available_permits(),
        Policy::Fair(_) => panic!("only of plain limits"),
    }
}

async fn until(what: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !what() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it never happens"
        );
        tokio::task::yield_now().await;
    }
}

/// How many requests wait.
fn waiting(control: &FlowControl) -> usize {
    control
        .dump("dump_requests", false)
        .unwrap()
        .lines()
        .count()
        - 1
}

/// A body whose pieces arrive when they are sent.
fn body() -> (mpsc::Sender<&'static str>, RequestBody) {
    let (sender, mut pieces) = mpsc::channel(8);
    let pieces = futures_util::stream::poll_fn(move |cx| {
        let piece: std::task::Poll<Option<&'static str>> = pieces.poll_recv(cx);
        piece.map(|piece| piece.map(|text| Ok::<_, BodyError>(Frame::data(Bytes::from(text)))))
    });
    let body = http_body_util::StreamBody::new(pieces);
    (sender, RequestBody::Boxed(Box::pin(body)))
}

#[tokio::test]
async fn a_seat_is_free_while_its_body_arrives_and_taken_when_it_is_there() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    assert!(write(&flow).await.is_err());
    let (sender, body) = body();
    let reading = tokio::spawn(Unread::new(body, Some(seat)).read());
    while free(&flow) == 0 {
        tokio::task::yield_now().await;
    }
    let other = write(&flow).await.ok().unwrap();
    drop(other);
    sender.try_send("so").unwrap();
    sender.try_send(" late").unwrap();
    drop(sender);
    let (bytes, seat) = reading.await.unwrap().ok().unwrap();
    assert_eq!(bytes, "so late");
    assert_eq!(free(&flow), 0);
    assert_eq!(flow.budgets.arriving.available_permits(), 100);
    drop(seat);
    assert_eq!(free(&flow), 1);
}

#[tokio::test]
async fn a_request_without_a_seat_for_its_body_is_refused() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    let (sender, body) = body();
    let reading = tokio::spawn(Unread::new(body, Some(seat)).read());
    while free(&flow) == 0 {
        tokio::task::yield_now().await;
    }
    let _other = write(&flow).await.ok().unwrap();
    drop(sender);
    let status = reading.await.unwrap().err().unwrap();
    assert_eq!(status.code, 429);
}

#[tokio::test]
async fn what_arrives_is_kept_within_a_budget() {
    let flow = plain(2, 10);
    let read = async |pieces: [&'static str; 3]| {
        let (sender, body) = body();
        pieces
            .into_iter()
            .for_each(|piece| sender.try_send(piece).unwrap());
        drop(sender);
        Unread::new(body, write(&flow).await.ok()).read().await
    };
    // The first piece is in memory anyway.
    let (bytes, _) = read(["0123456789", "01234", "01234"]).await.ok().unwrap();
    assert_eq!(bytes.len(), 20);
    assert_eq!(flow.budgets.arriving.available_permits(), 10);
    let status = read(["0", "0123456789", "1"]).await.err().unwrap();
    assert_eq!(status.code, 429);
    assert_eq!(flow.budgets.arriving.available_permits(), 10);
    assert_eq!(free(&flow), 2);
}

#[tokio::test]
async fn a_seat_is_free_while_its_request_waits_for_another_server() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    let (answer, answered) = tokio::sync::oneshot::channel();
    let threads = work::Threads::new();
    let waiting = tokio::spawn(async move {
        let work = async move { away(answered).await.unwrap() };
        let answer = threads.carry_out(Some(seat.clone()), work).await;
        (answer, seat)
    });
    while free(&flow) == 0 {
        tokio::task::yield_now().await;
    }
    let other = write(&flow).await.ok().unwrap();
    answer.send(7).unwrap();
    // After that it waits for its turn.
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(other);
    let (answer, seat) = waiting.await.unwrap();
    assert_eq!((answer, free(&flow)), (7, 0));
    drop(seat);
    assert_eq!(free(&flow), 1);
}

#[tokio::test]
async fn large_requests_leave_half_of_the_seats_to_others() {
    let flow = plain(4, 100);
    let threads = work::Threads::new();
    let mut large = Vec::new();
    for expected in [true, true, false] {
        let seat = write(&flow).await.ok().unwrap();
        let place = threads.carry_out(Some(seat.clone()), async { large_place(0).await });
        let place = place.await;
        assert_eq!(place.is_ok(), expected);
        assert!(place.is_ok() || place.as_ref().err().unwrap().code == 429);
        large.extend(place.ok().map(|place| (seat, place)));
    }
    let _small = [
        write(&flow).await.ok().unwrap(),
        write(&flow).await.ok().unwrap(),
    ];
    large.pop();
    assert!(write(&flow).await.is_ok());
    assert!(
        threads
            .carry_out(None, async { large_place(0).await })
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_seat_is_free_until_the_last_of_several_servers_has_answered() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    let ((first, one), (second, two)) = (
        tokio::sync::oneshot::channel(),
        tokio::sync::oneshot::channel(),
    );
    let held = seat.clone();
    let waiting = tokio::spawn(async move {
        // One call is inside another.
        let one = held.away(async { held.away(one).await.unwrap() });
        tokio::join!(one, held.away(two))
    });
    while free(&flow) == 0 {
        tokio::task::yield_now().await;
    }
    first.send(1).unwrap();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(free(&flow), 1, "another server has not answered");
    second.send(2).unwrap();
    let (one, two) = waiting.await.unwrap();
    assert_eq!((one, two.unwrap(), free(&flow)), (1, 2, 0));
    drop(seat);
    assert_eq!(free(&flow), 1);
}

#[tokio::test]
async fn a_call_that_is_given_up_does_not_keep_its_request_outside() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    let never = seat.away(std::future::pending::<()>());
    let given_up = tokio::time::timeout(Duration::from_millis(1), never).await;
    assert!(given_up.is_err());
    seat.away(std::future::ready(())).await;
    assert_eq!(free(&flow), 0, "the request goes on with its seat");
}

#[tokio::test]
async fn a_call_that_is_no_longer_polled_holds_up_no_other() {
    for flow in [plain(1, 100), fair(1, true).0] {
        let seat = write(&flow).await.ok().unwrap();
        let (answer, answered) = tokio::sync::oneshot::channel();
        let mut one = Box::pin(seat.away(answered));
        assert!(poll_immediate(&mut one).await.is_none());
        let other = enter(&flow, "other").await.ok().unwrap();
        answer.send(1).unwrap();
        assert!(poll_immediate(&mut one).await.is_none(), "no seat is free");
        // From now on only the next call is polled.
        let mut two = Box::pin(seat.away(std::future::ready(2)));
        assert!(poll_immediate(&mut two).await.is_none(), "no seat is free");
        drop(other);
        assert_eq!(poll_immediate(&mut two).await, Some(2));
        assert_eq!(poll_immediate(&mut one).await, Some(Ok(1)));
        assert_eq!(flow.in_flight(), (0, 1));
    }
}

#[tokio::test]
async fn calls_that_return_one_after_the_other_wait_for_one_seat() {
    for flow in [plain(1, 100), fair(1, true).0] {
        let seat = write(&flow).await.ok().unwrap();
        let ((first, one), (second, begin)) = (
            tokio::sync::oneshot::channel(),
            tokio::sync::oneshot::channel::<()>(),
        );
        let parts = async {
            tokio::join!(seat.away(one), async {
                begin.await.unwrap();
                seat.away(std::future::ready(2)).await
            })
        };
        let mut parts = Box::pin(parts);
        assert!(poll_immediate(&mut parts).await.is_none());
        let other = enter(&flow, "other").await.ok().unwrap();
        first.send(1).unwrap();
        assert!(
            poll_immediate(&mut parts).await.is_none(),
            "no seat is free"
        );
        second.send(()).unwrap();
        assert!(
            poll_immediate(&mut parts).await.is_none(),
            "no seat is free"
        );
        drop(other);
        assert_eq!(poll_immediate(&mut parts).await, Some((Ok(1), 2)));
        assert_eq!(flow.in_flight(), (0, 1));
    }
}

#[tokio::test]
async fn a_call_that_waits_for_the_seat_goes_on_when_the_request_needs_none() {
    for flow in [plain(1, 100), fair(1, true).0] {
        for retires in [true, false] {
            let seat = write(&flow).await.ok().unwrap();
            let (answer, answered) = tokio::sync::oneshot::channel();
            let mut one = Box::pin(seat.away(answered));
            assert!(poll_immediate(&mut one).await.is_none());
            let other = enter(&flow, "other").await.ok().unwrap();
            answer.send(1).unwrap();
            assert!(poll_immediate(&mut one).await.is_none(), "no seat is free");
            let mut two = Box::pin(seat.away(std::future::pending::<()>()));
            match retires {
                true => seat.retire(),
                false => assert!(poll_immediate(&mut two).await.is_none()),
            }
            assert_eq!(poll_immediate(&mut one).await, Some(Ok(1)));
            drop(other);
            assert_eq!(flow.in_flight(), (0, 0));
        }
    }
}

#[tokio::test]
async fn a_seat_that_comes_after_another_call_has_begun_is_free_again() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    let (answer, answered) = tokio::sync::oneshot::channel();
    let mut one = Box::pin(seat.away(answered));
    assert!(poll_immediate(&mut one).await.is_none());
    let other = write(&flow).await.ok().unwrap();
    answer.send(1).unwrap();
    assert!(poll_immediate(&mut one).await.is_none(), "no seat is free");
    let mut two = Box::pin(seat.away(std::future::pending::<()>()));
    assert!(poll_immediate(&mut two).await.is_none());
    // The first call gets the seat before it is polled again.
    drop(other);
    assert_eq!(poll_immediate(&mut one).await, Some(Ok(1)));
    assert_eq!(free(&flow), 1);
}

#[tokio::test]
async fn a_request_that_has_left_for_good_waits_for_no_seat() {
    let flow = plain(1, 100);
    let seat = write(&flow).await.ok().unwrap();
    seat.retire();
    let _other = write(&flow).await.ok().unwrap();
    let answered = seat.away(std::future::ready(7));
    let answered = poll_immediate(Box::pin(answered));
    assert_eq!(answered.await, Some(7));
    let (queues, _) = fair(1, true);
    let seat = write(&queues).await.ok().unwrap();
    seat.retire();
    let _other = write(&queues).await.ok().unwrap();
    let answered = seat.away(std::future::ready(7));
    let answered = poll_immediate(Box::pin(answered));
    assert_eq!(answered.await, Some(7));
}

#[tokio::test]
async fn bodies_of_requests_that_others_answer_are_kept_within_a_budget() {
    let mut flow = plain(10, 100);
    flow.budgets_mut().passed_on = Arc::new(Semaphore::new(10));
    let read = async || {
        let body = RequestBody::Memory("012345".into());
        let seat = write(&flow).await.ok();
        Unread::new(body, seat).read_to_pass_on().await
    };
    let first = read().await.ok().unwrap();
    let waiting = first.seat.clone().unwrap();
    let never = waiting.away(std::future::pending::<()>());
    let mut never = Box::pin(never);
    assert!(poll_immediate(&mut never).await.is_none());
    assert_eq!(read().await.err().unwrap().code, 429);
    drop(first);
    assert!(read().await.is_ok());
}
