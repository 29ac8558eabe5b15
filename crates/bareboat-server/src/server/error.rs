//! The error of a request at the edge of the server: the client gets the Status, the log the causes.

use bareboat_api::Status;
use std::error;
use std::fmt;
use std::sync::Arc;

/// The error of a request.
#[derive(Clone, Debug)]
pub struct Error {
    status: Box<Status>,
    cause: Option<Arc<dyn error::Error + Send + Sync>>,
}

impl Error {
    /// Returns the Status for the client.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// An error with its cause.
    pub fn new(status: Status, cause: impl error::Error + Send + Sync + 'static) -> Error {
        Error {
            status: Box::new(status),
            cause: Some(Arc::new(cause)),
        }
    }
}

impl From<Status> for Error {
    fn from(mut status: Status) -> Error {
        Error {
            cause: status.take_source(),
            status: Box::new(status),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.status.fmt(f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.cause {
            Some(cause) => Some(cause.as_ref()),
            None => None,
        }
    }
}
