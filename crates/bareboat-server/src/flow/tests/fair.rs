//! Seats and queues of priority levels.

use super::*;

#[tokio::test]
async fn a_level_without_queues_refuses_in_the_words_that_clients_know() {
    let (flow, _) = fair(1, false);
    let seat = write(&flow).await.ok().unwrap();
    assert_eq!(flow.in_flight(), (0, 1));
    let refused = write(&flow).await.err().unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let body = http_body_util::BodyExt::collect(refused.into_body()).await;
    let body = body.ok().unwrap().to_bytes();
    assert_eq!(body, "Too many requests, please try again later.\n");
    drop(seat);
    assert!(write(&flow).await.is_ok());
    assert_eq!(flow.in_flight(), (0, 0));
}

#[tokio::test]
async fn requests_wait_in_queues_until_their_turn() {
    let (flow, control) = fair(1, true);
    let flow = Arc::new(flow);
    let seat = write(&flow).await.ok().unwrap();
    let other = tokio::spawn({
        let flow = flow.clone();
        async move { enter(&flow, "other").await.ok().unwrap() }
    });
    until(|| waiting(&control) == 1).await;
    drop(seat);
    let seat = other.await.unwrap();
    assert_eq!(flow.in_flight(), (0, 1));
    drop(seat);
}

#[tokio::test]
async fn full_queues_refuse_and_other_users_do_not_notice() {
    let (flow, control) = fair(1, true);
    let flow = Arc::new(flow);
    let seat = write(&flow).await.ok().unwrap();
    // Four queues of five requests each; the one with the seat may be one of them, and counts as fuller then.
    let mut noise = Vec::new();
    let refused = loop {
        let flow = flow.clone();
        let one = tokio::spawn(async move {
            let entered = enter(&flow, "noisy").await;
            entered.map(drop).map_err(|answer| answer.status())
        });
        until(|| one.is_finished() || waiting(&control) == noise.len() + 1).await;
        if one.is_finished() {
            break one.await.unwrap();
        }
        noise.push(one);
    };
    assert_eq!(refused, Err(http::StatusCode::TOO_MANY_REQUESTS));
    assert!((19..=20).contains(&noise.len()), "{}", noise.len());
    let quiet = tokio::spawn({
        let flow = flow.clone();
        async move { enter(&flow, "quiet").await.is_ok() }
    });
    until(|| waiting(&control) == noise.len() + 1).await;
    drop(seat);
    assert!(quiet.await.unwrap());
    for one in noise {
        assert_eq!(one.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn nobody_waits_longer_than_a_request_allows() {
    let (flow, control) = fair(1, true);
    let _seat = write(&flow).await.ok().unwrap();
    let hasty = Visitor {
        patience: Duration::from_millis(20),
        ..visitor("other", "get")
    };
    let refused = flow.enter(None, hasty).await.err().unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(waiting(&control), 0);
    assert!(
        control
            .dump("dump_priority_levels", false)
            .unwrap()
            .contains("all")
    );
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_its_queue() {
    let (flow, control) = fair(1, true);
    let flow = Arc::new(flow);
    let seat = write(&flow).await.ok().unwrap();
    let other = tokio::spawn({
        let flow = flow.clone();
        async move { enter(&flow, "other").await.is_ok() }
    });
    until(|| waiting(&control) == 1).await;
    other.abort();
    assert!(other.await.is_err());
    assert_eq!(waiting(&control), 0);
    drop(seat);
    assert_eq!(flow.in_flight(), (0, 0));
    assert!(write(&flow).await.is_ok());
}

#[tokio::test]
async fn a_fair_seat_is_free_while_a_body_arrives_and_while_another_server_answers() {
    let (flow, control) = fair(1, true);
    let seat = write(&flow).await.ok().unwrap();
    let (sender, body) = body();
    let reading = tokio::spawn(Unread::new(body, Some(seat)).read());
    until(|| flow.in_flight() == (0, 0)).await;
    let other = enter(&flow, "other").await.ok().unwrap();
    sender.try_send("late").unwrap();
    drop(sender);
    // The body is there, the seat is not.
    until(|| waiting(&control) == 1).await;
    drop(other);
    let (bytes, seat) = reading.await.unwrap().ok().unwrap();
    assert_eq!(bytes, "late");
    let (answer, answered) = tokio::sync::oneshot::channel();
    let threads = work::Threads::new();
    let working = tokio::spawn(async move {
        threads
            .carry_out(seat, async move { away(answered).await.unwrap() })
            .await
    });
    until(|| flow.in_flight() == (0, 0)).await;
    let other = enter(&flow, "other").await.ok().unwrap();
    answer.send(7).unwrap();
    until(|| waiting(&control) == 1).await;
    drop(other);
    assert_eq!(working.await.unwrap(), 7);
    assert_eq!(flow.in_flight(), (0, 0));
}

#[tokio::test]
async fn large_requests_wait_where_there_are_queues() {
    let (flow, control) = fair(4, true);
    let flow = Arc::new(flow);
    let threads = work::Threads::new();
    let mut large = Vec::new();
    for _ in 0..2 {
        let seat = write(&flow).await.ok().unwrap();
        let place = threads.carry_out(Some(seat.clone()), large_place(10));
        assert!(place.await.is_ok());
        large.push(seat);
    }
    let third = tokio::spawn({
        let (flow, threads) = (flow.clone(), threads.clone());
        async move {
            let seat = write(&flow).await.ok().unwrap();
            let place = threads.carry_out(Some(seat.clone()), large_place(10));
            (place.await.is_ok(), seat)
        }
    });
    until(|| waiting(&control) == 1).await;
    // It has left its seat, so that two others find one.
    let small = [
        write(&flow).await.ok().unwrap(),
        write(&flow).await.ok().unwrap(),
    ];
    drop(small);
    large.pop();
    let (got, seat) = third.await.unwrap();
    assert!(got);
    assert_eq!(flow.in_flight(), (0, 2));
    drop((seat, large));
    assert_eq!(flow.in_flight(), (0, 0));
}

#[tokio::test]
async fn exempt_requests_are_never_refused_but_large_ones_take_turns() {
    let control = FlowControl::new();
    control.set_total(6);
    let flow = Flow::fair(control);
    let exempt = async || {
        let mut visitor = visitor("root", "create");
        visitor.user = Arc::new(User {
            name: "root".into(),
            groups: vec!["system:masters".into()],
            ..User::default()
        });
        flow.enter(None, visitor).await.ok().unwrap()
    };
    let mut seats = Vec::new();
    for _ in 0..50 {
        seats.push(exempt().await);
    }
    assert_eq!(flow.in_flight(), (0, 50));
    let threads = work::Threads::new();
    let first = seats.pop();
    let place = threads.carry_out(first.clone(), large_place(0)).await;
    assert!(place.is_ok());
    let second = seats.pop();
    let mut waits = Box::pin(threads.carry_out(second, large_place(0)));
    let now = futures_util::future::poll_immediate(&mut waits).await;
    assert!(now.is_none());
    drop(first);
    assert!(waits.await.is_ok());
}

#[tokio::test]
async fn levels_change_while_requests_wait() {
    let (flow, control) = fair(1, true);
    let flow = Arc::new(flow);
    let seat = write(&flow).await.ok().unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|number| {
            let flow = flow.clone();
            tokio::spawn(async move { enter(&flow, &format!("user-{number}")).await })
        })
        .collect();
    until(|| waiting(&control) == 3).await;
    // More seats for everybody who waits, then the level is gone.
    control.set_total(4);
    let mut seats = vec![seat];
    for waiter in waiters {
        seats.push(waiter.await.unwrap().ok().unwrap());
    }
    control.set_level("all", None);
    let class = flow
        .classify(&User::default(), &RequestInfo::default())
        .unwrap();
    assert_eq!(class.schema.name, "catch-all");
    assert!(class.uids().is_none());
    seats.clear();
    assert!(enter(&flow, "a").await.is_ok());
}

#[tokio::test]
async fn a_busy_level_borrows_the_seats_of_an_idle_one() {
    let control = FlowControl::new();
    control.set_total(60);
    let flow = Arc::new(Flow::fair(control.clone()));
    let account = |number: usize| {
        let mut visitor = visitor("system:serviceaccount:a:b", "get");
        visitor.user = Arc::new(User {
            name: format!("system:serviceaccount:a:{number}").into(),
            groups: vec![
                "system:serviceaccounts".into(),
                "system:authenticated".into(),
            ],
            ..User::default()
        });
        visitor
    };
    // The level workload-low has 25 of 60 seats; others may lend it 15 more.
    let running: Vec<_> = (0..35)
        .map(|number| {
            let (flow, visitor) = (flow.clone(), account(number));
            tokio::spawn(async move { flow.enter(None, visitor).await.ok().unwrap() })
        })
        .collect();
    let mut seats = Vec::new();
    for one in running {
        seats.push(one.await.unwrap());
    }
    assert_eq!(flow.in_flight().0, 35);
    drop(seats);
    // When nobody waits any more, it gives them back.
    let nominal = || {
        let table = control.shared().table.load();
        let mut levels = table.levels.iter();
        levels.all(|slot| {
            slot.spec.exempt || slot.level.look(|queues| queues.limit()) == slot.limits.nominal
        })
    };
    while !nominal() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
