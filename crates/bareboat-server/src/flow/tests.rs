//! Seats and bodies that take their time.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::request::body::BodyError;
use http_body::Frame;
use tokio::sync::mpsc;

fn flow(seats: usize, arriving: usize) -> Flow {
    Flow {
        arriving: Arc::new(Semaphore::new(arriving)),
        ..Flow::new(seats, seats)
    }
}

fn write() -> RequestInfo {
    RequestInfo {
        verb: "create".into(),
        ..RequestInfo::default()
    }
}

/// A body whose pieces come when they are sent.
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
    let flow = flow(1, 100);
    let seat = flow.enter(&write()).ok().unwrap();
    assert!(flow.enter(&write()).is_err());
    let (sender, body) = body();
    let reading = tokio::spawn(Unread::new(body, Some(seat)).read());
    while flow.writing.available_permits() == 0 {
        tokio::task::yield_now().await;
    }
    let other = flow.enter(&write()).ok().unwrap();
    drop(other);
    sender.try_send("so").unwrap();
    sender.try_send(" late").unwrap();
    drop(sender);
    let (bytes, seat) = reading.await.unwrap().ok().unwrap();
    assert_eq!(bytes, "so late");
    assert_eq!(flow.writing.available_permits(), 0);
    assert_eq!(flow.arriving.available_permits(), 100);
    drop(seat);
    assert_eq!(flow.writing.available_permits(), 1);
}

#[tokio::test]
async fn whoever_finds_no_seat_for_a_whole_body_is_sent_away() {
    let flow = flow(1, 100);
    let seat = flow.enter(&write()).ok().unwrap();
    let (sender, body) = body();
    let reading = tokio::spawn(Unread::new(body, Some(seat)).read());
    while flow.writing.available_permits() == 0 {
        tokio::task::yield_now().await;
    }
    let _other = flow.enter(&write()).ok().unwrap();
    drop(sender);
    let status = reading.await.unwrap().err().unwrap();
    assert_eq!(status.code, 429);
}

#[tokio::test]
async fn what_arrives_is_kept_within_a_budget() {
    let flow = flow(2, 10);
    let read = |pieces: [&'static str; 3]| {
        let (sender, body) = body();
        pieces
            .into_iter()
            .for_each(|piece| sender.try_send(piece).unwrap());
        Unread::new(body, flow.enter(&write()).ok()).read()
    };
    // The first piece is there anyway.
    let (bytes, _) = read(["0123456789", "01234", "01234"]).await.ok().unwrap();
    assert_eq!(bytes.len(), 20);
    assert_eq!(flow.arriving.available_permits(), 10);
    let status = read(["0", "0123456789", "1"]).await.err().unwrap();
    assert_eq!(status.code, 429);
    assert_eq!(flow.arriving.available_permits(), 10);
    assert_eq!(flow.writing.available_permits(), 2);
}

#[tokio::test]
async fn a_seat_is_free_while_its_request_waits_for_another_server() {
    let flow = flow(1, 100);
    let seat = flow.enter(&write()).ok().unwrap();
    let (answer, answered) = tokio::sync::oneshot::channel();
    let (threads, writing) = (work::Threads::new(), flow.writing.clone());
    let waiting = tokio::spawn(async move {
        let work = async move {
            let answer = away(answered).await.unwrap();
            (answer, writing.available_permits())
        };
        threads.carry_out(Some(seat), work).await
    });
    while flow.writing.available_permits() == 0 {
        tokio::task::yield_now().await;
    }
    let other = flow.enter(&write()).ok().unwrap();
    answer.send(7).unwrap();
    // Back from there it waits for its turn.
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(other);
    assert_eq!(waiting.await.unwrap(), (7, 0));
    assert_eq!(flow.writing.available_permits(), 1);
}

#[tokio::test]
async fn large_requests_leave_half_of_the_seats_to_others() {
    let flow = flow(4, 100);
    let threads = work::Threads::new();
    let mut large = Vec::new();
    for expected in [true, true, false] {
        let seat = flow.enter(&write()).ok().unwrap();
        let place = threads.carry_out(Some(seat.clone()), async { large_place() });
        let place = place.await;
        assert_eq!(place.is_ok(), expected);
        assert!(place.is_ok() || place.as_ref().err().unwrap().code == 429);
        large.extend(place.ok().map(|place| (seat, place)));
    }
    let _small = [
        flow.enter(&write()).ok().unwrap(),
        flow.enter(&write()).ok().unwrap(),
    ];
    large.pop();
    assert!(flow.enter(&write()).is_ok());
    assert!(
        threads
            .carry_out(None, async { large_place() })
            .await
            .unwrap()
            .is_none()
    );
}
