//! The seat of one request: taken, left while the request waits, taken again, released at the end.

use super::fair::Class;
use super::level::{Place, Waiter, Waiting};
use super::memory::{DECODED, Share, UNIT};
use super::meters::Reason;
use super::plain::PlainSeat;
use super::{Budgets, LargePlace, Visitor, later, reads};
use bareboat_api::Status;
use bareboat_flow::{Lane, Refusal, Running, cost};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;

/// Counts a request as running, except while it waits for something outside this server.
pub(crate) struct Seat {
    kind: Kind,
    budgets: Arc<Budgets>,
    /// The memory of its decoded body.
    share: Mutex<Option<Share>>,
}

enum Kind {
    Plain(PlainSeat),
    Fair(FairSeat),
}

impl Seat {
    pub(super) fn plain(seat: PlainSeat, budgets: Arc<Budgets>) -> Seat {
        Seat {
            kind: Kind::Plain(seat),
            budgets,
            share: Mutex::default(),
        }
    }

    pub(super) fn fair(class: Arc<Class>, visitor: Visitor, budgets: Arc<Budgets>) -> Seat {
        Seat {
            kind: Kind::Fair(FairSeat::new(class, visitor)),
            budgets,
            share: Mutex::default(),
        }
    }

    /// Takes a seat for a new request.
    pub(super) async fn enter(&mut self) -> Result<(), Status> {
        match &mut self.kind {
            Kind::Plain(seat) => seat.take_now(),
            Kind::Fair(seat) => seat.enter().await,
        }
    }

    /// Gives it to the next request.
    pub(crate) fn leave(&self) {
        match &self.kind {
            Kind::Plain(seat) => seat.leave(),
            Kind::Fair(seat) => seat.leave(),
        }
    }

    /// Takes a seat again as soon as it is the request's turn.
    pub(crate) async fn take(&self) {
        match &self.kind {
            Kind::Plain(seat) => seat.take().await,
            Kind::Fair(seat) => seat.take().await,
        }
    }

    /// Takes a seat again after the body has arrived; refuses without queues.
    pub(super) async fn take_after_body(&self) -> Result<(), Status> {
        match &self.kind {
            Kind::Plain(seat) => seat.take_now(),
            Kind::Fair(seat) => seat.take_after_body().await,
        }
    }

    /// Continues as a large request, which holds a body of so many bytes.
    pub(super) async fn grow(&self, body: usize) -> Result<LargePlace, Status> {
        match &self.kind {
            Kind::Plain(seat) => seat.grow(),
            Kind::Fair(seat) => {
                if seat.grow_now() {
                    return Ok(LargePlace { _permit: None });
                }
                let size = u32::try_from(body).map_err(|_| later())?;
                let parked = self.budgets.parked.try_acquire_many(size);
                let _parked = parked.map_err(|_| seat.refused(Reason::QueueFull))?;
                seat.grow().await?;
                Ok(LargePlace { _permit: None })
            }
        }
    }

    /// Takes so much memory for a decoded body of `body` bytes. Waits without a seat until there is enough; without
    /// queues it refuses.
    pub(super) async fn decode(
        &self,
        memory: usize,
        body: usize,
    ) -> Result<OwnedSemaphorePermit, Status> {
        let units = memory.min(DECODED).div_ceil(UNIT);
        let units = u32::try_from(units).map_err(|_| later())?;
        let decoded = &self.budgets.decoded;
        if let Ok(permit) = decoded.clone().try_acquire_many_owned(units) {
            return Ok(permit);
        }
        let Kind::Fair(seat) = &self.kind else {
            return Err(later());
        };
        let size = u32::try_from(body).map_err(|_| later())?;
        let parked = self.budgets.parked.try_acquire_many(size);
        let _parked = parked.map_err(|_| seat.refused(Reason::QueueFull))?;
        self.leave();
        let waiting = decoded.clone().acquire_many_owned(units);
        let waited = tokio::time::timeout(seat.visitor.patience, waiting).await;
        self.take().await;
        match waited {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(seat.refused(Reason::TimeOut)),
        }
    }

    /// Returns the memory of its decoded body.
    pub(super) fn share(&self) -> MutexGuard<'_, Option<Share>> {
        self.share.lock()
    }

    /// Returns the limits on bytes of bodies.
    pub(super) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Returns the answer to a request that there is no memory for.
    pub(super) fn without_memory(&self) -> Status {
        match &self.kind {
            Kind::Fair(seat) => seat.refused(Reason::QueueFull),
            Kind::Plain(_) => later(),
        }
    }

    pub(super) fn woke(&self, watchers: impl FnOnce() -> usize) {
        if let Kind::Fair(seat) = &self.kind {
            seat.woke(watchers);
        }
    }

    /// Leaves for good. Further work of the request, such as sending the rest of a stream, is only charged.
    pub(crate) fn retire(&self) {
        match &self.kind {
            Kind::Plain(seat) => seat.leave(),
            Kind::Fair(seat) => seat.retire(),
        }
    }

    /// Charges the flow of the request for work that was done without a seat since a moment.
    pub(crate) fn charge(&self, since: Instant) {
        if let Kind::Fair(seat) = &self.kind {
            let work = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            seat.class.level.charge(seat.flow, work);
        }
    }
}

/// A seat of a priority level.
struct FairSeat {
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
    fn new(class: Arc<Class>, visitor: Visitor) -> FairSeat {
        let request = super::request(&visitor.info);
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

    fn refused(&self, reason: Reason) -> Status {
        self.class.meter.rejected(reason);
        later()
    }

    async fn enter(&mut self) -> Result<(), Status> {
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

    fn leave(&self) {
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

    async fn take(&self) {
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

    async fn take_after_body(&self) -> Result<(), Status> {
        let lane = match self.class.level.has_queues() {
            true => Lane::Returning,
            false => Lane::New,
        };
        let taken = self.take_in(lane).await;
        taken.map_err(|refusal| self.refused(reason(refusal)))
    }

    /// Becomes large at once, if there is room.
    fn grow_now(&self) -> bool {
        let mut held = self.held.lock();
        let grown = match &mut held.token {
            Some(Token::Running(running)) => self.class.level.grow(running),
            _ => false,
        };
        held.large |= grown;
        grown
    }

    /// Waits until there is room for one more large request.
    async fn grow(&self) -> Result<(), Status> {
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

    fn woke(&self, watchers: impl FnOnce() -> usize) {
        if self.class.level.exempt {
            return;
        }
        let watchers = watchers();
        self.class.meter.woke(watchers);
        self.held.lock().caused += cost::waking(watchers);
    }

    fn retire(&self) {
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
    use super::super::{FlowControl, request};
    use super::*;
    use std::time::Duration;

    #[test]
    fn parts_of_a_request_that_return_together_hold_one_seat() {
        let control = FlowControl::new();
        let visitor = Visitor {
            user: Arc::default(),
            info: Arc::default(),
            objects: 0,
            patience: Duration::from_secs(1),
        };
        let class = control.classify(&visitor.user, &request(&visitor.info));
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
