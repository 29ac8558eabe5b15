//! Joins events into frames.

use super::body::FRAME;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Events being joined into frames: small ones share a frame; a large one is its own frame and is not copied.
#[derive(Default)]
pub(super) struct Coalesced {
    done: VecDeque<Bytes>,
    open: BytesMut,
    /// How many bytes were added.
    pub(super) size: usize,
}

impl Coalesced {
    pub(super) fn push(&mut self, event: Bytes) {
        self.size += event.len();
        if self.open.len() + event.len() > FRAME {
            self.close();
        }
        if event.len() >= FRAME {
            self.done.push_back(event);
        } else {
            self.open.extend_from_slice(&event);
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.done.push_back(std::mem::take(&mut self.open).freeze());
        }
    }

    pub(super) fn finish(mut self) -> VecDeque<Bytes> {
        self.close();
        self.done
    }
}
