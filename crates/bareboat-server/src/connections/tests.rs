//! Limits of connections, closing for new ones, and limits of unread bytes.

use super::line::SHARE;
use super::*;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

fn connections(total: usize, unauthenticated: usize, per_address: usize) -> Arc<Connections> {
    Arc::new(Connections::new(ConnectionLimits {
        total: Some(total),
        unauthenticated: Some(unauthenticated),
        per_address,
        unread: 1 << 20,
        ..ConnectionLimits::default()
    }))
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

#[tokio::test]
async fn the_oldest_silent_connection_is_closed_for_a_new_one() {
    let all = connections(100, 3, 100);
    let mut lines = Vec::new();
    for number in 0..3 {
        lines.push(all.admit(address(number)).await.expect("a place"));
    }
    lines[0].speaks();
    // Waits until the second one has been silent for long enough.
    let newcomer = all.admit(address(9)).await.expect("a place");
    assert!(lines[1].is_cut_off());
    assert!(lines[1].age() >= SILENCE);
    assert!(!lines[0].is_cut_off() && !lines[2].is_cut_off() && !newcomer.is_cut_off());
    assert_eq!(all.counts().1, 3);
}

#[tokio::test]
async fn an_authenticated_connection_frees_its_unauthenticated_place() {
    let all = connections(100, 1, 100);
    let first = all.admit(address(1)).await.expect("a place");
    first.speaks();
    assert!(first.know());
    let second = all.admit(address(1)).await.expect("a place");
    assert!(!first.is_cut_off());
    assert_eq!((all.counts().0, all.counts().1), (2, 1));
    first.leave();
    second.leave();
    assert_eq!(all.counts().0, 0);
    assert!(all.table.lock().per_address.is_empty());
}

#[tokio::test]
async fn authenticated_connections_are_limited() {
    let all = connections(3, 1, 100);
    for number in 0..2 {
        assert!(all.admit(address(number)).await.expect("a place").know());
    }
    let third = all.admit(address(3)).await.expect("a place");
    assert!(!third.know());
    assert!(!third.is_known());
}

#[tokio::test]
async fn each_address_has_a_limit() {
    let all = connections(100, 50, 2);
    let mut lines = Vec::new();
    for _ in 0..4 {
        let line = all.admit(address(1)).await.expect("a place");
        line.speaks();
        lines.push(line);
    }
    // After a pause of the machine, one of the others may be closed for the fifth.
    let fifth = all.admit(address(1)).await;
    assert!(fifth.is_none() || lines[0].age() >= PATIENCE);
    assert!(all.admit(address(2)).await.is_some());
}

#[tokio::test]
async fn one_that_speaks_finds_a_place_among_silent_ones_that_just_came() {
    let all = connections(100, 50, 2);
    let mut lines = Vec::new();
    for number in 0..4 {
        lines.push(all.admit(address(1)).await.expect("a place"));
        // The first one has begun a handshake.
        if number == 0 {
            lines[0].speaks();
        }
    }
    let newcomer = all.admit(address(1)).await.expect("a place");
    newcomer.speaks();
    assert!(lines[1].is_cut_off());
    for _ in 0..20 {
        lines.push(all.admit(address(1)).await.expect("a place"));
    }
    assert!(!newcomer.is_cut_off() && !lines[0].is_cut_off());
}

#[tokio::test]
async fn request_heads_of_unauthenticated_connections_share_a_limit() {
    let all = connections(100, 50, 50);
    let mut lines = Vec::new();
    let refused = loop {
        let line = all.admit(address(1)).await.expect("a place");
        if !line.may_read(1 << 20) {
            break line;
        }
        lines.push(line);
    };
    assert_eq!(lines.len(), 16, "a mebibyte each, beyond the share of each");
    refused.leave();
    // A head that became a request is no longer counted.
    drop(lines[0].begin());
    let next = all.admit(address(1)).await.expect("a place");
    assert!(next.may_read(1 << 19));
    for line in lines.iter().chain([&next]) {
        line.leave();
    }
    assert_eq!(all.heads.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_connection_waits_while_it_or_the_server_has_too_many_unread_bytes() {
    let all = connections(100, 50, 50);
    let line = all.admit(address(1)).await.expect("a place");
    let other = all.admit(address(1)).await.expect("a place");
    line.charge(200 << 10);
    assert!(line.may_answer());
    line.charge(100 << 10);
    assert!(
        !line.may_answer(),
        "more than one answer of HTTP/1 may have"
    );
    line.set_http2();
    assert!(line.may_answer(), "HTTP/2 has many");
    line.charge(2 << 20);
    assert!(!line.may_answer(), "more than the server may have");
    other.charge(60 << 10);
    assert!(other.may_answer(), "every connection has a small share");
    other.charge(60 << 10);
    assert!(!other.may_answer());

    let cx = Context::from_waker(Waker::noop());
    assert_eq!(line.poll_make(&cx), Poll::Pending);
    let waiting = {
        let line = line.clone();
        tokio::spawn(async move { line.room().await })
    };
    line.release(2 << 20);
    waiting.await.expect("it goes on");
    poll_fn(|cx| line.poll_make(cx)).await;
    line.release(300 << 10);
    // Bytes that a body holds block new requests, but not that body.
    line.hold(9 << 20);
    assert!(line.may_make() && !line.may_answer());
    line.offer(9 << 20);
    assert!(!line.may_make());
    line.release(9 << 20);
    other.release(120 << 10);
    assert_eq!(all.counts().2, 0);
}

#[tokio::test]
async fn connections_that_read_or_work_are_not_closed() {
    let all = connections(100, 50, 50);
    let line = all.admit(address(1)).await.expect("a place");
    let now = all.now();
    let later = now + 50_000;
    let minute = now + 160_000;
    assert_eq!(line.verdict(now), None);
    assert_eq!(
        line.verdict(later),
        Some(Close::Now),
        "silent for half a minute"
    );
    let busy = line.begin();
    assert_eq!(line.verdict(minute), None, "a request is under way");
    line.charge(1);
    assert_eq!(
        line.verdict(minute),
        Some(Close::Now),
        "unauthenticated and not reading"
    );
    assert!(line.know());
    assert_eq!(line.verdict(minute), None, "little is unread");
    line.charge(SHARE);
    assert_eq!(line.verdict(later), None);
    assert_eq!(line.verdict(minute), Some(Close::Now), "much is unread");
    line.release(SHARE + 1);
    line.blocked(&Context::from_waker(Waker::noop()));
    assert_eq!(line.verdict(later), None);
    assert_eq!(
        line.verdict(minute),
        Some(Close::Now),
        "the socket takes nothing"
    );
    line.unblocked();
    drop(busy);
    assert_eq!(line.verdict(minute), None);
    line.set_http2();
    assert_eq!(line.verdict(now + 250_000), Some(Close::Soon), "idle");
    line.set_upgraded(false);
    assert_eq!(line.verdict(now + 250_000), None);
    line.blocked(&Context::from_waker(Waker::noop()));
    assert_eq!(line.verdict(now + 250_000), Some(Close::Now));
    line.set_upgraded(true);
    assert_eq!(line.verdict(now + 250_000), None, "a tunnel may pause");
}
