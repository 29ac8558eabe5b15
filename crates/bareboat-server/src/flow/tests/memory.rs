//! Memory of decoded bodies.

use super::*;

/// Runs `decoding` in a request with a seat.
fn decode(seat: Arc<Seat>, body: Vec<u8>) -> tokio::task::JoinHandle<Result<(), u16>> {
    tokio::spawn(async move {
        let work = async move {
            let decoded = decoding(&body, 0).await;
            let outcome = decoded.as_ref().map(drop).map_err(|status| status.code);
            // Held until the test goes on.
            tokio::task::yield_now().await;
            outcome
        };
        work::Threads::new().carry_out(Some(seat), work).await
    })
}

fn small_budget(flow: &mut Flow, units: usize) -> Arc<Semaphore> {
    let budget = Arc::new(Semaphore::new(units));
    flow.budgets.decoded = budget.clone();
    budget
}

#[tokio::test]
async fn a_large_body_waits_for_memory_without_a_seat() {
    let (mut flow, _control) = fair(1, true);
    let budget = small_budget(&mut flow, 100);
    let taken = budget.clone().try_acquire_many_owned(90).unwrap();
    let seat = enter(&flow, "someone").await.ok().unwrap();
    let waiting = decode(seat, vec![b'x'; work::LARGE + 1]);
    until(|| flow.in_flight().1 == 0).await;
    // Others get the seat, and small bodies need no memory.
    let other = enter(&flow, "other").await.ok().unwrap();
    assert_eq!(decode(other, vec![b'x'; 100]).await.unwrap(), Ok(()));
    assert!(!waiting.is_finished());
    drop(taken);
    assert_eq!(waiting.await.unwrap(), Ok(()));
    assert_eq!(budget.available_permits(), 100);
}

#[tokio::test]
async fn without_queues_a_large_body_is_refused_while_there_is_no_memory() {
    let mut flow = plain(1, 100);
    let budget = small_budget(&mut flow, 100);
    let taken = budget.clone().try_acquire_many_owned(90).unwrap();
    let seat = write(&flow).await.ok().unwrap();
    let refused = decode(seat.clone(), vec![b'x'; work::LARGE + 1]);
    assert_eq!(refused.await.unwrap(), Err(429));
    drop(taken);
    let accepted = decode(seat, vec![b'x'; work::LARGE + 1]);
    assert_eq!(accepted.await.unwrap(), Ok(()));
    assert_eq!(budget.available_permits(), 100);
}

#[tokio::test]
async fn large_requests_that_wait_for_another_server_leave_the_memory_for_work() {
    let mut flow = plain(100, 100);
    let budget = small_budget(&mut flow, 100);
    let aside = Arc::new(Semaphore::new(100));
    flow.budgets.set_aside = aside.clone();
    let mut waiting = Vec::new();
    // Each holds 33 units, so that three of them fill either budget.
    for _ in 0..3 {
        let seat = write(&flow).await.ok().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let work = async move {
            let body = vec![b'x'; work::LARGE + 1];
            let _decoded = decoding(&body, 0).await.ok().unwrap();
            set_aside([&[b'x'; 16 << 10][..]]).ok().unwrap();
            begin.send(()).unwrap();
            let _ = ended.await;
        };
        let threads = work::Threads::new();
        let task = tokio::spawn(async move { threads.carry_out(Some(seat), work).await });
        begun.await.unwrap();
        assert_eq!(budget.available_permits(), 100);
        waiting.push((end, task));
    }
    let seat = write(&flow).await.ok().unwrap();
    let work = async {
        let body = vec![b'x'; work::LARGE + 1];
        let _decoded = decoding(&body, 0).await.ok().unwrap();
        set_aside([&[b'x'; 16 << 10][..]]).map_err(|status| status.code)
    };
    let refused = work::Threads::new().carry_out(Some(seat), work).await;
    assert_eq!(refused, Err(429));
    for (end, task) in waiting {
        drop(end);
        task.await.unwrap();
    }
    assert_eq!(
        (budget.available_permits(), aside.available_permits()),
        (100, 100)
    );
}
