//! The bounded queue of the sequencer: tasks push, one thread drains.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Semaphore;

/// Commands for the sequencer, in order.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    ready: Condvar,
    room: Semaphore,
    /// The total capacity.
    size: u32,
}

struct State<T> {
    commands: Vec<T>,
    closed: bool,
}

/// The maximum of a semaphore on every platform.
const MOST: usize = 1 << 28;

/// The error of a closed queue.
pub(crate) struct Closed;

impl<T> Queue<T> {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            state: Mutex::new(State {
                commands: Vec::new(),
                closed: false,
            }),
            ready: Condvar::new(),
            room: Semaphore::new(room.clamp(1, MOST)),
            size: room.clamp(1, MOST) as u32,
        }
    }

    /// Queues a command once there is room for its weight. A queued command runs even if the caller stops waiting.
    pub(crate) async fn push(&self, command: T, weight: u32) -> Result<(), Closed> {
        let weight = weight.min(self.size);
        match self.room.try_acquire_many(weight) {
            Ok(permit) => permit.forget(),
            Err(_) => {
                let permit = self.room.acquire_many(weight).await;
                permit.map_err(|_| Closed)?.forget();
            }
        }
        self.push_now(command)
    }

    /// Queues a command without waiting for room.
    pub(crate) fn push_now(&self, command: T) -> Result<(), Closed> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Closed);
        }
        state.commands.push(command);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Releases the room of commands with these weights.
    pub(crate) fn make_room(&self, weights: impl Iterator<Item = u32>) {
        let room: usize = weights.map(|weight| weight.min(self.size) as usize).sum();
        self.room.add_permits(room);
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().commands.len()
    }

    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.room.close();
        self.ready.notify_one();
    }

    /// Takes all commands. If there are none, waits for a command until `until` (without limit if `None`). Returns
    /// `Closed` when the queue is closed and empty.
    pub(crate) fn drain(
        &self,
        into: &mut VecDeque<T>,
        until: Option<Instant>,
    ) -> Result<(), Closed> {
        let mut state = self.state.lock();
        while state.commands.is_empty() {
            if state.closed {
                return Err(Closed);
            }
            match until {
                None => self.ready.wait(&mut state),
                Some(until) => {
                    if self.ready.wait_until(&mut state, until).timed_out() {
                        break;
                    }
                }
            }
        }
        into.extend(state.commands.drain(..));
        Ok(())
    }
}
