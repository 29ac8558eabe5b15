//! API priority and fairness as Kubernetes defines it, as pure algorithms.
//!
//! [`Classifier`] finds the flow schema of a request. [`LevelSpec`] is the specification of a priority level;
//! [`limits`] computes how many seats each level has and may borrow. [`QueueSet`] holds the queues of one level: which
//! requests run, wait or are refused. [`defaults`] holds the objects of a fresh server.
//!
//! This crate does no I/O and reads no clock. Times are passed in as nanoseconds since any fixed moment.

mod classify;
pub mod cost;
pub mod defaults;
mod level;
pub mod limits;
mod queues;
mod schema;
mod shuffle;

pub use classify::Classifier;
pub use level::{LevelSpec, Queuing};
pub use queues::{Arrival, Lane, QueueSet, QueueView, Refusal, Running, WaitingView};
pub use schema::{Distinguisher, Request, Schema};
pub use shuffle::deal;
