//! A connection leaves the worker while it moves many bytes, and comes back.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::connections::{ConnectionLimits, Connections};
use parking_lot::Mutex;
use std::time::Duration;

/// The names of the threads that polled a connection.
type Threads = Arc<Mutex<Vec<String>>>;

/// Serves a connection that is the given function, and returns where each poll of it ran.
async fn serve(
    line: &Arc<Line>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<()> + Send + Unpin + 'static,
) -> (Option<()>, Vec<String>) {
    let (_sender, ending) = ending();
    let seen = Threads::default();
    let places = seen.clone();
    let connection = poll_fn(move |cx| {
        let name = std::thread::current().name().map(str::to_owned);
        places.lock().push(name.unwrap_or_default());
        poll(cx)
    });
    let threads = crate::work::Threads::new();
    let done = until_done(Box::pin(connection), |_| {}, ending, line, &threads).await;
    let seen = seen.lock().clone();
    (done, seen)
}

fn ending() -> (tokio::sync::watch::Sender<bool>, Ending) {
    let sender = tokio::sync::watch::Sender::new(false);
    let ending = Ending::of(&sender);
    (sender, ending)
}

async fn line() -> Arc<Line> {
    let all = Arc::new(Connections::new(ConnectionLimits::default()));
    all.admit([192, 0, 2, 1].into()).await.unwrap()
}

fn is_elsewhere(thread: &str) -> bool {
    thread == "bareboat-large"
}

#[tokio::test]
async fn many_bytes_are_moved_on_other_threads() {
    let line = line().await;
    let (of_socket, mut polls) = (line.clone(), 0);
    let (done, threads) = serve(&line, move |cx| {
        polls += 1;
        match polls {
            // More than a worker may move.
            1 | 2 => {
                while of_socket.poll_move(cx).is_ready() {
                    of_socket.moved(16 << 10);
                }
                Poll::Pending
            }
            3 => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    })
    .await;
    assert_eq!(done, Some(()));
    let elsewhere: Vec<bool> = threads.iter().map(|name| is_elsewhere(name)).collect();
    assert_eq!(elsewhere, [false, true, true, false], "{threads:?}");
}

#[tokio::test]
async fn a_large_body_is_read_in_turns() {
    let line = line().await;
    let (of_socket, mut missing) = (line.clone(), 256 << 10);
    let (done, threads) = serve(&line, move |cx| {
        while missing > 0 {
            std::task::ready!(of_socket.poll_may_read(cx));
            of_socket.has_read(16 << 10);
            missing -= 16 << 10;
        }
        Poll::Ready(())
    })
    .await;
    assert_eq!(done, Some(()));
    // It stays on the workers, where other connections have their turns in between.
    let elsewhere = threads.iter().filter(|name| is_elsewhere(name)).count();
    assert_eq!((threads.len(), elsewhere), (4, 0), "{threads:?}");
}

#[tokio::test]
async fn a_large_answer_waits_until_it_has_left_the_worker() {
    let line = line().await;
    let of_answer = line.clone();
    let answer = async move {
        let busy = of_answer.begin();
        let body = crate::reply::Body::full(vec![0; 1 << 20]);
        let body = crate::connections::Metered::new(body, busy);
        assert!(body.is_large());
        of_answer.leave_worker().await;
        assert!(is_elsewhere(std::thread::current().name().unwrap()));
    };
    let mut answer = Box::pin(answer);
    let (done, threads) = serve(&line, move |cx| answer.as_mut().poll(cx)).await;
    assert_eq!((done, threads.len()), (Some(()), 2));
    assert!(!line.moves_much(), "the answer is gone");
}

#[tokio::test]
async fn a_connection_that_waits_elsewhere_is_closed_when_it_must_be() {
    let line = line().await;
    let of_socket = line.clone();
    let closing = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        line.close(Close::Now);
    };
    let serving = serve(&line, move |cx| {
        if of_socket.poll_move(cx).is_ready() && !of_socket.moves_much() {
            of_socket.moved(1 << 20);
            let _ = of_socket.poll_move(cx);
        }
        Poll::Pending
    });
    let ((), (done, _)) = tokio::join!(closing, serving);
    assert_eq!(done, None);
}

#[tokio::test]
async fn a_connection_that_is_closed_during_a_poll_elsewhere_ends() {
    let line = line().await;
    line.begin_large();
    // A task of its own: the end of the timeout must not wake the connection.
    let serving = tokio::spawn(async move {
        let closed = line.clone();
        serve(&line, move |_| {
            closed.close(Close::Now);
            // The task notices the close while this poll runs, and cannot act on it yet.
            std::thread::sleep(Duration::from_millis(50));
            Poll::Pending
        })
        .await
    });
    let served = tokio::time::timeout(Duration::from_secs(60), serving).await;
    let (done, threads) = served.expect("the connection ends").unwrap();
    assert_eq!((done, threads.len()), (None, 1));
}

#[tokio::test]
async fn a_stream_after_an_upgrade_is_not_limited() {
    let line = line().await;
    line.begin_poll_on_worker();
    line.set_upgraded(true);
    line.begin_poll_on_worker();
    line.moved(1 << 30);
    let cx = Context::from_waker(Waker::noop());
    assert!(line.poll_move(&cx).is_ready());
}

#[tokio::test]
async fn connections_and_the_large_work_inside_them_do_not_wait_for_each_other() {
    let threads = crate::work::Threads::new();
    let mut all = Vec::new();
    // Many more than there are threads, each with large work that takes turns.
    for _ in 0..32 {
        let (line, inner) = (line().await, threads.clone());
        line.begin_large();
        let work = async move {
            for _ in 0..20 {
                let step = async {
                    crate::work::large().await;
                    tokio::task::yield_now().await;
                };
                inner.carry_out(None, step).await;
            }
        };
        let threads = threads.clone();
        all.push(tokio::spawn(async move {
            let (_sender, ending) = ending();
            until_done(Box::pin(work), |_| {}, ending, &line, &threads).await
        }));
    }
    for one in all {
        let done = tokio::time::timeout(Duration::from_secs(60), one).await;
        assert_eq!(done.expect("it goes on").unwrap(), Some(()));
    }
}
