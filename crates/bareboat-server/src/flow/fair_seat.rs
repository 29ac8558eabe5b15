//! The seat of a request in a priority level.

use super::fair::{Class, request};
use super::level::{Place, Waiter, Waiting};
use super::meters::Reason;
use super::{Visitor, later, reads};
use bareboat_api::Status;
use bareboat_flow::{Lane, Refusal, Running, cost};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A seat of a priority level.
pub(super) struct FairSeat {
    class: Arc<Class>,
    visitor: Visitor,
    flow: u64,
    seats: u32,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    token: Option<Token>,
    /// Since when the token is held.
    since: u64,
    /// Whether the request is large.
    large: bool,
    /// Work that it caused, in seat-nanoseconds.
    caused: u64,
    /// How long it has held a seat, in nanoseconds.
    spent: u64,
    /// Whether its time was measured.
    retired: bool,
}

enum Token {
    /// Exempt requests need no seat.
    Exempt,
    Running(Running),
}

impl FairSeat {
    pub(super) fn new(class: Arc<Class>, visitor: Visitor) -> FairSeat {
        let request = request(&visitor.info);
        let flow = class.flow(&visitor.user, &request);
        let seats = match visitor.objects {
            0 | 1 => 1,
            objects => cost::list(objects, class.level.nominal()),
        };
        FairSeat {
            class,
            visitor,
            flow,
            seats,
            held: Mutex::default(),
        }
    }

    fn writes(&self) -> bool {
        !reads(&self.visitor.info.verb)
    }

    fn hold(&self, token: Token) {
        let spare = self.held.lock().begin_once(token, &self.class);
        match spare {
            None => self.class.meter.begins(self.writes(), self.seats),
            Some(Token::Exempt) => {}
            Some(Token::Running(running)) => {
                let level = &self.class.level;
                level.finish(level.now(), running, 0);
            }
        }
    }

    /// The same for a seat that is not shared yet, without a lock.
    fn hold_first(&mut self, token: Token) {
        self.held.get_mut().begin(token, &self.class);
        self.class.meter.begins(self.writes(), self.seats);
    }

    fn waiter(&self) -> impl FnOnce() -> (Waiter, tokio::sync::oneshot::Receiver<Running>) + '_ {
        || {
            let (user, info) = (self.visitor.user.clone(), self.visitor.info.clone());
            Waiter::new(self.class.clone(), user, info)
        }
    }

    /// Returns how long it may wait.
    pub(super) fn patience(&self) -> Duration {
        self.visitor.patience
    }

    /// Charges its flow for work.
    pub(super) fn charge(&self, work: u64) {
        self.class.level.charge(self.flow, work);
    }

    /// Returns the answer to a request that there is no room for.
    pub(super) fn finds_no_room(&self) -> Status {
        self.refused(Reason::QueueFull)
    }

    /// Returns the answer to a request that waited as long as it may.
    pub(super) fn waited_in_vain(&self) -> Status {
        self.refused(Reason::TimeOut)
    }

    fn refused(&self, reason: Reason) -> Status {
        self.class.meter.rejected(reason);
        later()
    }

    pub(super) async fn enter(&mut self) -> Result<(), Status> {
        if self.class.level.exempt {
            self.class.meter.dispatched(self.seats);
            self.hold_first(Token::Exempt);
            return Ok(());
        }
        let class = self.class.clone();
        let (level, meter) = (&class.level, &class.meter);
        match level.arrive(self.flow, self.seats, Lane::New, self.waiter()) {
            Place::Seat(running) => {
                meter.dispatched(self.seats);
                self.hold_first(Token::Running(running));
                Ok(())
            }
            Place::Refused(refusal) => {
                meter.found_no_room();
                Err(self.refused(reason(refusal)))
            }
            Place::Queue(waiting, length) => {
                meter.found_no_room();
                meter.queued(length);
                // Boxed, because most requests do not wait.
                Box::pin(self.enter_in_turn(waiting)).await
            }
        }
    }

    /// Waits in a queue for the seat of a new request.
    async fn enter_in_turn(&self, waiting: Waiting<'_>) -> Result<(), Status> {
        let meter = &self.class.meter;
        self.class.someone_waits();
        let begun = Instant::now();
        let _in_queue = meter.in_queue();
        let waited = tokio::time::timeout(self.visitor.patience, waiting).await;
        meter.waited(begun.elapsed(), waited.is_ok());
        match waited {
            Ok(running) => {
                meter.dispatched_later(self.seats);
                self.hold(Token::Running(running));
                Ok(())
            }
            Err(_) => Err(self.refused(Reason::TimeOut)),
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.lock().token.is_some()
    }

    pub(super) fn leave(&self) {
        let now = self.class.level.now();
        let left = self.held.lock().end(now);
        self.give_back(now, left);
    }

    /// Gives the seat to the next request.
    fn give_back(&self, now: u64, left: Option<(Token, u64)>) {
        let Some((token, caused)) = left else {
            return;
        };
        self.class.meter.ends(self.writes(), self.seats);
        if let Token::Running(running) = token {
            self.class.level.finish(now, running, caused);
        }
    }

    pub(super) async fn take(&self) {
        let lane = {
            let held = self.held.lock();
            if held.token.is_some() {
                return;
            }
            match held.large {
                true => Lane::Large,
                false => Lane::Returning,
            }
        };
        // A returning request is not refused; it waits at the front of its queue if the lane of large requests is full.
        for lane in [lane, Lane::Returning] {
            if self.take_in(lane).await.is_ok() {
                return;
            }
        }
    }

    async fn take_in(&self, lane: Lane) -> Result<(), Refusal> {
        let level = &self.class.level;
        if level.exempt && lane != Lane::Large {
            self.hold(Token::Exempt);
            return Ok(());
        }
        let running = match level.arrive(self.flow, self.seats, lane, self.waiter()) {
            Place::Seat(running) => running,
            Place::Refused(refusal) => return Err(refusal),
            Place::Queue(waiting, _) => self.wait(waiting).await,
        };
        self.hold(Token::Running(running));
        Ok(())
    }

    async fn wait(&self, waiting: Waiting<'_>) -> Running {
        self.class.someone_waits();
        let _in_queue = self.class.meter.in_queue();
        waiting.await
    }

    pub(super) async fn take_after_body(&self) -> Result<(), Status> {
        let lane = match self.class.level.has_queues() {
            true => Lane::Returning,
            false => Lane::New,
        };
        let taken = self.take_in(lane).await;
        taken.map_err(|refusal| self.refused(reason(refusal)))
    }

    /// Becomes large at once, if there is room.
    pub(super) fn grow_now(&self) -> bool {
        let mut held = self.held.lock();
        let grown = match &mut held.token {
            Some(Token::Running(running)) => self.class.level.grow(running),
            _ => false,
        };
        held.large |= grown;
        grown
    }

    /// Waits until there is room for one more large request.
    pub(super) async fn grow(&self) -> Result<(), Status> {
        if !self.class.level.has_queues() && !self.class.level.exempt {
            return Err(self.refused(Reason::NoSeat));
        }
        self.leave();
        self.held.lock().large = true;
        let taken = tokio::time::timeout(self.visitor.patience, self.take_in(Lane::Large)).await;
        match taken {
            Ok(Ok(())) => Ok(()),
            Ok(Err(refusal)) => Err(self.refused(reason(refusal))),
            Err(_) => Err(self.refused(Reason::TimeOut)),
        }
    }

    pub(super) fn woke(&self, watchers: impl FnOnce() -> usize) {
        if self.class.level.exempt {
            return;
        }
        let watchers = watchers();
        self.class.meter.woke(watchers);
        self.held.lock().caused += cost::waking(watchers);
    }

    pub(super) fn retire(&self) {
        self.leave();
        let spent = self.held.lock().retire();
        self.measure(spent);
    }

    /// Counts how long a seat was held, in nanoseconds.
    fn measure(&self, spent: Option<u64>) {
        if let Some(spent) = spent {
            let watch = self.visitor.info.verb == "watch";
            self.class.meter.executed(spent, watch);
        }
    }
}

impl Drop for FairSeat {
    fn drop(&mut self) {
        let now = self.class.level.now();
        let held = self.held.get_mut();
        let (left, spent) = (held.end(now), held.retire());
        self.give_back(now, left);
        self.measure(spent);
    }
}

impl Held {
    /// Returns the token if there is one already: parts of a request may wait at the same time, but share one seat.
    fn begin_once(&mut self, token: Token, class: &Class) -> Option<Token> {
        if self.token.is_some() {
            return Some(token);
        }
        self.begin(token, class);
        None
    }

    fn begin(&mut self, token: Token, class: &Class) {
        self.since = match &token {
            Token::Exempt => class.level.now(),
            Token::Running(running) => running.since(),
        };
        self.token = Some(token);
    }

    /// Takes the token, with the work that the request caused; `None` if there is none.
    fn end(&mut self, now: u64) -> Option<(Token, u64)> {
        let token = self.token.take()?;
        self.spent += now.saturating_sub(self.since);
        Some((token, std::mem::take(&mut self.caused)))
    }

    /// Returns how long a seat was held; `None` if it never was, or on the second call.
    fn retire(&mut self) -> Option<u64> {
        let first = !std::mem::replace(&mut self.retired, true);
        (first && self.since > 0).then_some(self.spent)
    }
}

fn reason(refusal: Refusal) -> Reason {
    match refusal {
        Refusal::QueueFull => Reason::QueueFull,
        Refusal::NoSeat => Reason::NoSeat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowControl;

    #[test]
    fn parts_of_a_request_that_return_together_hold_one_seat() {
        let control = FlowControl::new();
        let visitor = Visitor {
            user: Arc::default(),
            info: Arc::default(),
            objects: 0,
            patience: Duration::from_secs(1),
        };
        let class = control.classify(&visitor.user, &visitor.info);
        let level = &class.level;
        let in_use = || level.look(|queues| queues.in_use());
        let seat = FairSeat::new(class.clone(), visitor);
        let arrive = || level.arrive(seat.flow, seat.seats, Lane::Returning, seat.waiter());
        let places = [arrive(), arrive(), arrive()];
        assert_eq!(in_use(), 3);
        for place in places {
            let Place::Seat(running) = place else {
                panic!("all three have room");
            };
            seat.hold(Token::Running(running));
        }
        assert_eq!(in_use(), 1);
        drop(seat);
        assert_eq!(in_use(), 0);
        assert_eq!(control.in_flight(), (0, 0));
    }
}
