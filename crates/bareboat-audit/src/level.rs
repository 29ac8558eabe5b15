//! How much is audited, and at which moments of a request.

use std::fmt;

/// How much of a request is audited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is recorded.
    #[default]
    None,
    /// The user, the time, the target and the outcome, but no bodies.
    Metadata,
    /// Also the request body.
    Request,
    /// Also the body of the answer.
    RequestResponse,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 4] = [
        Level::None,
        Level::Metadata,
        Level::Request,
        Level::RequestResponse,
    ];

    /// The name in policies and events.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// A moment of a request at which an event is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request arrived.
    RequestReceived,
    /// The head of a long-running answer is sent: a watch, a connection.
    ResponseStarted,
    /// The answer is complete.
    ResponseComplete,
    /// The server panicked.
    Panic,
}

impl Stage {
    /// All stages.
    pub const ALL: [Stage; 4] = [
        Stage::RequestReceived,
        Stage::ResponseStarted,
        Stage::ResponseComplete,
        Stage::Panic,
    ];

    /// The name in policies and events.
    pub fn name(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of stages.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Whether a stage is in the set.
    pub fn has(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Returns the set with one more stage.
    #[must_use]
    pub fn with(self, stage: Stage) -> Stages {
        Stages(self.0 | 1 << stage as u8)
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn or(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }
}

impl fmt::Debug for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Stage::ALL.into_iter().filter(|stage| self.has(*stage));
        f.debug_set().entries(all).finish()
    }
}
