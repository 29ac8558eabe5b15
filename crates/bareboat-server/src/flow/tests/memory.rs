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
    flow.budgets_mut().decoded = budget.clone();
    budget
}

/// A text of so many units.
fn text(units: usize) -> Bytes {
    Bytes::from(vec![b'x'; units * crate::flow::memory::UNIT])
}

/// Plain limits with so many units for requests that wait, and none for others.
fn waiting_units(units: usize) -> (Flow, Arc<Semaphore>) {
    let mut flow = plain(100, 100);
    small_budget(&mut flow, 100);
    let aside = Arc::new(Semaphore::new(units));
    flow.budgets_mut().set_aside = aside.clone();
    (flow, aside)
}

async fn run<T: Send + 'static>(flow: &Flow, work: impl Future<Output = T> + Send + 'static) -> T {
    let seat = write(flow).await.ok().unwrap();
    work::Threads::new().carry_out(Some(seat), work).await
}

#[tokio::test]
async fn what_a_small_request_sends_to_a_webhook_counts_while_it_waits() {
    let (flow, aside) = waiting_units(1000);
    let left = aside.clone();
    let work = async move {
        let small = set_aside(&[text(32)]).ok().unwrap();
        assert_eq!(left.available_permits(), 1000);
        // The text and the object, each about as large.
        let large = set_aside(&[text(400)]).ok().unwrap();
        assert!(left.available_permits() < 200);
        let refused = set_aside(&[text(400)]).err().unwrap();
        assert_eq!(refused.code, 429);
        drop((small, large));
        assert_eq!(left.available_permits(), 1000);
    };
    run(&flow, work).await;
    assert_eq!(aside.available_permits(), 1000);
}

#[tokio::test]
async fn a_text_that_several_webhooks_share_counts_once() {
    let (flow, aside) = waiting_units(1000);
    let work = async move {
        let shared = text(400);
        let one = set_aside(std::slice::from_ref(&shared)).ok().unwrap();
        let for_one = aside.available_permits();
        drop(one);
        let _many = set_aside(&vec![shared; 50]).ok().unwrap();
        assert_eq!(aside.available_permits(), for_one);
    };
    run(&flow, work).await;
}

#[tokio::test]
async fn a_large_request_that_waits_again_takes_only_what_is_missing() {
    let (flow, aside) = waiting_units(300);
    let left = aside.clone();
    let work = async move {
        let body = vec![b'x'; work::LARGE + 1];
        let _decoded = decoding(&body, 0).await.ok().unwrap();
        let mut before = 300;
        for units in [40, 60, 100] {
            // Together they would need more than there is.
            drop(set_aside(&[text(units)]).ok().unwrap());
            let now = left.available_permits();
            assert!(now < before && now >= 300 - 2 * units - 2, "{now}");
            before = now;
        }
        drop(set_aside(&[text(50)]).ok().unwrap());
        assert_eq!(left.available_permits(), before);
        // Parts that wait at the same time need memory each.
        let one = set_aside(&[text(40)]).ok().unwrap();
        let other = set_aside(&[text(40)]).ok().unwrap();
        assert!(left.available_permits() < before);
        drop((one, other));
        assert_eq!(left.available_permits(), before);
    };
    run(&flow, work).await;
    assert_eq!(aside.available_permits(), 300);
}

#[tokio::test]
async fn a_request_without_a_large_body_needs_no_memory_for_a_conversion() {
    let (flow, aside) = waiting_units(10);
    let work = async { drop(set_body_aside(&text(100)).ok().unwrap()) };
    run(&flow, work).await;
    assert_eq!(aside.available_permits(), 10);
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
    flow.budgets_mut().set_aside = aside.clone();
    let mut waiting = Vec::new();
    // Each holds 33 units, so that three of them fill either budget.
    for _ in 0..3 {
        let seat = write(&flow).await.ok().unwrap();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let work = async move {
            let body = vec![b'x'; work::LARGE + 1];
            let _decoded = decoding(&body, 0).await.ok().unwrap();
            let _aside = set_aside(&[text(16)]).ok().unwrap();
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
        set_aside(&[text(16)])
            .map(drop)
            .map_err(|status| status.code)
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
