//! Seats, queues, lanes and changes while requests wait.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn queuing(queues: u32, hand_size: u32, length_limit: u32) -> Option<Queuing> {
    Some(Queuing {
        queues,
        hand_size,
        length_limit,
    })
}

fn run(set: &mut QueueSet<u32>, flow: u64, seats: u32) -> Running {
    match set.arrive(0, flow, seats, Lane::New, || 0) {
        Arrival::Running(running) => running,
        other => panic!("{other:?}"),
    }
}

fn queue(set: &mut QueueSet<u32>, flow: u64, seats: u32, lane: Lane, name: u32) -> u64 {
    match set.arrive(0, flow, seats, lane, || name) {
        Arrival::Queued { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

fn next(set: &mut QueueSet<u32>) -> Option<u32> {
    let (name, running, _) = set.dispatch(SECOND)?;
    set.finish(SECOND, running, 0);
    Some(name)
}

#[test]
fn without_queues_a_request_that_finds_no_seat_is_refused() {
    let mut set = QueueSet::new(None, 1);
    let running = run(&mut set, 1, 1);
    let arrival = set.arrive(0, 2, 1, Lane::New, || 0);
    assert!(matches!(arrival, Arrival::Refused(Refusal::NoSeat)));
    // One that comes back waits all the same.
    queue(&mut set, 2, 1, Lane::Returning, 7);
    assert!(set.dispatch(0).is_none());
    set.finish(0, running, 0);
    assert_eq!(next(&mut set), Some(7));
}

#[test]
fn full_queues_refuse() {
    let mut set = QueueSet::new(queuing(1, 1, 2), 1);
    let _running = run(&mut set, 1, 1);
    queue(&mut set, 1, 1, Lane::New, 1);
    queue(&mut set, 1, 1, Lane::New, 2);
    let arrival = set.arrive(0, 1, 1, Lane::New, || 3);
    assert!(matches!(arrival, Arrival::Refused(Refusal::QueueFull)));
}

#[test]
fn a_wide_request_runs_alone_where_it_does_not_fit_and_is_not_overtaken() {
    let mut set = QueueSet::new(queuing(4, 2, 10), 2);
    let wide = run(&mut set, 1, 10);
    queue(&mut set, 2, 10, Lane::New, 1);
    queue(&mut set, 2, 1, Lane::New, 2);
    set.finish(0, wide, 0);
    let (name, second, _) = set.dispatch(0).unwrap();
    assert_eq!(name, 1);
    assert!(set.dispatch(0).is_none());
    set.finish(0, second, 0);
    assert_eq!(next(&mut set), Some(2));
}

#[test]
fn requests_that_come_back_are_served_before_new_ones_of_their_flow() {
    let mut set = QueueSet::new(queuing(1, 1, 10), 1);
    let running = run(&mut set, 1, 1);
    queue(&mut set, 1, 1, Lane::New, 1);
    queue(&mut set, 1, 1, Lane::Returning, 2);
    set.finish(0, running, 0);
    assert_eq!(next(&mut set), Some(2));
    assert_eq!(next(&mut set), Some(1));
}

#[test]
fn large_requests_leave_half_of_the_seats_to_others() {
    let mut set: QueueSet<u32> = QueueSet::new(queuing(8, 2, 10), 4);
    let mut large = Vec::new();
    for _ in 0..2 {
        match set.arrive(0, 1, 1, Lane::Large, || 0) {
            Arrival::Running(running) => large.push(running),
            other => panic!("{other:?}"),
        }
    }
    queue(&mut set, 1, 1, Lane::Large, 1);
    // A small one overtakes it, since it needs something else.
    let small = run(&mut set, 1, 1);
    assert!(set.dispatch(0).is_none());
    set.finish(0, small, 0);
    assert!(set.dispatch(0).is_none());
    set.finish(0, large.pop().unwrap(), 0);
    assert_eq!(next(&mut set), Some(1));
}

#[test]
fn a_running_request_becomes_large_while_there_is_room() {
    let mut set = QueueSet::new(queuing(8, 2, 10), 4);
    let mut running: Vec<Running> = (0..3).map(|flow| run(&mut set, flow, 1)).collect();
    let grown: Vec<bool> = running.iter_mut().map(|one| set.grow(one)).collect();
    assert_eq!(grown, [true, true, false]);
    let first = running.remove(0);
    set.finish(0, first, 0);
    assert!(set.grow(&mut running[1]));
}

#[test]
fn work_without_a_seat_counts() {
    let mut set = QueueSet::new(queuing(64, 1, 50), 1);
    let running = run(&mut set, 5, 1);
    queue(&mut set, 6, 1, Lane::New, 1);
    queue(&mut set, 7, 1, Lane::New, 2);
    set.charge(6, SECOND / 10);
    set.finish(0, running, 0);
    assert_eq!(next(&mut set), Some(2));
    assert_eq!(next(&mut set), Some(1));
}

#[test]
fn only_so_many_large_requests_wait() {
    let mut set = QueueSet::new(queuing(1, 1, 50), 1);
    let _running = run(&mut set, 1, 1);
    for name in 0..MOST_LARGE as u32 {
        queue(&mut set, 1, 1, Lane::Large, name);
    }
    let arrival = set.arrive(0, 1, 1, Lane::Large, || 0);
    assert!(matches!(arrival, Arrival::Refused(Refusal::QueueFull)));
}

#[test]
fn requests_wait_on_when_queues_change() {
    let mut set = QueueSet::new(queuing(16, 4, 50), 1);
    let running = run(&mut set, 1, 1);
    let ids: Vec<u64> = (0..20)
        .map(|name| queue(&mut set, u64::from(name) * 7919, 1, Lane::New, name))
        .collect();
    set.configure(queuing(4, 2, 1));
    assert_eq!(set.counts(), (1, 20));
    assert_eq!(set.cancel(ids[3]), Some(3));
    assert_eq!(set.cancel(ids[3]), None);
    set.configure(None);
    set.finish(SECOND, running, 0);
    let mut served: Vec<u32> = std::iter::from_fn(|| next(&mut set)).collect();
    served.sort_unstable();
    assert_eq!(
        served,
        (0..20).filter(|name| *name != 3).collect::<Vec<_>>()
    );
    assert_eq!((set.counts(), set.in_use()), ((0, 0), 0));
}

#[test]
fn more_seats_let_more_run() {
    let mut set = QueueSet::new(queuing(4, 2, 50), 1);
    let _running = run(&mut set, 1, 1);
    queue(&mut set, 1, 1, Lane::New, 1);
    assert!(set.dispatch(0).is_none());
    assert_eq!(set.take_demand(), (2, 2));
    set.set_limit(2);
    assert!(set.dispatch(0).is_some());
}

/// Two flows whose hands share no queue.
fn strangers(set: &QueueSet<u32>) -> (u64, u64) {
    let hand = |flow: u64| deal(flow, 64, 4).collect::<Vec<_>>();
    let other = (2u64..).find(|flow| {
        let mine = hand(1);
        hand(*flow * 7919).iter().all(|card| !mine.contains(card))
    });
    assert_eq!(set.queues.len(), 64);
    (1, other.unwrap() * 7919)
}

#[test]
fn a_request_of_a_quiet_flow_is_next_however_many_a_busy_flow_has() {
    let mut set = QueueSet::new(queuing(64, 4, 1000), 1);
    let (busy, quiet) = strangers(&set);
    let mut running = run(&mut set, busy, 1);
    for _ in 0..1000 {
        queue(&mut set, busy, 1, Lane::New, 1);
    }
    // Some of them run first.
    for second in 1..5 {
        set.finish(second * SECOND, running, 0);
        running = set.dispatch(second * SECOND).unwrap().1;
    }
    queue(&mut set, quiet, 1, Lane::New, 2);
    set.finish(6 * SECOND, running, 0);
    let (name, running, _) = set.dispatch(6 * SECOND).unwrap();
    assert_eq!(name, 2);
    set.finish(7 * SECOND, running, 0);
}

/// Simulates flows that always have requests waiting, and returns the seat-time each of them got.
fn simulate(limit: u32, flows: &[(u64, u32, u64)], until: u64) -> Vec<u64> {
    let mut set: QueueSet<u32> = QueueSet::new(queuing(512, 1, 1000), limit);
    let mut got = vec![0; flows.len()];
    let mut running: Vec<(u64, u32, Running)> = Vec::new();
    let mut now = 0;
    for (number, (flow, seats, length)) in flows.iter().enumerate() {
        for _ in 0..600 {
            if let Arrival::Running(started) =
                set.arrive(now, *flow, *seats, Lane::New, || number as u32)
            {
                running.push((now + length, number as u32, started));
            }
        }
    }
    while now < until {
        let first = running.iter().enumerate().min_by_key(|(_, (end, ..))| *end);
        let Some(place) = first.map(|(place, _)| place) else {
            break;
        };
        let (end, number, ended) = running.swap_remove(place);
        now = end;
        let (flow, seats, length) = flows[number as usize];
        got[number as usize] += length * u64::from(seats);
        set.finish(now, ended, 0);
        let arrival = set.arrive(now, flow, seats, Lane::New, || number);
        assert!(!matches!(arrival, Arrival::Refused(_)));
        if let Arrival::Running(started) = arrival {
            running.push((now + length, number, started));
        }
        while let Some((number, started, _)) = set.dispatch(now) {
            let length = flows[number as usize].2;
            running.push((now + length, number, started));
        }
        assert!(set.in_use() <= limit || set.counts().0 == 1);
    }
    got
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn flows_that_always_want_more_get_the_same_seat_time(
        limit in 4u32..20,
        shapes in proptest::collection::vec((1u32..=3, 1u64..=40), 2..5),
    ) {
        // One card each, so that flows differ in their queues for sure.
        let flows: Vec<(u64, u32, u64)> = shapes.iter().enumerate()
            .map(|(number, (seats, tens))| (number as u64, *seats, tens * 10_000_000))
            .collect();
        let got = simulate(limit, &flows, 60 * SECOND);
        let fair = got.iter().sum::<u64>() / got.len() as u64;
        for one in &got {
            // Never off by more than the debt that is forgiven and a few requests.
            let slack = fair / 5 + u64::from(limit) * SECOND * 2;
            prop_assert!(one.abs_diff(fair) <= slack, "{:?}", got);
        }
    }

    #[test]
    fn nothing_is_lost_whatever_happens(steps in proptest::collection::vec((0u8..8, 0u64..6, 1u32..4), 1..300)) {
        let mut set: QueueSet<u64> = QueueSet::new(queuing(8, 2, 5), 3);
        let (mut running, mut waiting, mut name) = (Vec::new(), Vec::new(), 0);
        for (step, (action, flow, seats)) in steps.into_iter().enumerate() {
            let now = step as u64 * 1_000_000;
            match action {
                0..=3 => {
                    let lane = LANES[action as usize % 3];
                    name += 1;
                    match set.arrive(now, flow * 0x1234_5678_9abc, seats, lane, || name) {
                        Arrival::Running(one) => running.push(one),
                        Arrival::Queued { id, .. } => waiting.push((id, name)),
                        Arrival::Refused(_) => {}
                    }
                }
                4 | 5 => if let Some(one) = running.pop() { set.finish(now, one, 5) },
                6 => if let Some((id, name)) = waiting.pop() { prop_assert_eq!(set.cancel(id), Some(name)) },
                _ => set.configure(queuing(1 + flow as u32, 1, 5)),
            }
            set.set_limit(1 + (step as u32 % 5));
            while let Some((name, one, _)) = set.dispatch(now) {
                waiting.retain(|(_, other)| *other != name);
                running.push(one);
            }
            prop_assert_eq!(set.counts(), (running.len() as u32, waiting.len()));
            prop_assert_eq!(set.in_use(), running.iter().map(Running::seats).sum::<u32>());
            // A request waits only while another one runs.
            prop_assert!(waiting.is_empty() || !running.is_empty());
        }
    }
}
