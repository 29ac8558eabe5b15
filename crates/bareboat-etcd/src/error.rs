//! Errors: why a cluster cannot be used, and what the error of a call means.

use bareboat_storage::{BackendError, BoxError};

use crate::address::AddressError;

/// The reason why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// The address cannot be understood.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A certificate, a key or a password cannot be used.
    #[error("{what} cannot be used")]
    Credentials {
        /// The file, or its purpose.
        what: String,
        /// The reason why the file or password cannot be used.
        #[source]
        source: BoxError,
    },
    /// No member of the cluster can be reached.
    #[error("etcd cannot be reached at {endpoint}")]
    Unreachable {
        /// The member that was tried last.
        endpoint: String,
        /// The reason why this member cannot be reached.
        #[source]
        source: BoxError,
    },
    /// The cluster returned an error.
    #[error("etcd cannot be used")]
    Refused(#[source] BoxError),
    /// The cluster has a version or a state that is not safe to use.
    #[error("{0}")]
    Unsafe(String),
    /// The store does not exist, and was not to be created.
    #[error("there is no store under {prefix}; check the address")]
    Missing {
        /// The prefix of the address.
        prefix: String,
    },
    /// A newer program has written the store.
    #[error("the store has format {found}, this program knows formats up to {known}")]
    Newer {
        /// The format of the store.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The runtime for connections cannot be started.
    #[error("cannot start threads for etcd")]
    Runtime(#[source] std::io::Error),
}

/// The error of one call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// There is no answer: the call may or may not have been executed.
    #[error("the connection was lost")]
    Lost(#[source] BoxError),
    /// etcd returned an error.
    #[error("etcd answered {message:?} (code {code})")]
    Refused { code: u32, message: String },
    /// The answer is not the expected message.
    #[error("the answer cannot be read: {0}")]
    Unreadable(&'static str),
}

/// What an error means for the call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The call may or may not have been executed, or the member cannot be used at the moment.
    Lost,
    /// The call was not executed, and may be repeated after a short pause.
    Again,
    /// The call was not executed, for lack of space.
    Full,
    /// The call was not executed: the request is larger than this etcd accepts.
    TooLarge,
    /// The call needs a compacted revision.
    Compacted,
    /// The cluster is damaged, or the request is wrong.
    Failed,
}

impl CallError {
    pub(crate) fn meaning(&self) -> Meaning {
        let (code, message) = match self {
            Self::Lost(_) => return Meaning::Lost,
            Self::Unreadable(_) => return Meaning::Failed,
            Self::Refused { code, message } => (*code, message.as_str()),
        };
        let says = |what: &str| message.contains(what);
        match code {
            8 if says("space exceeded") => Meaning::Full,
            8 => Meaning::Again,
            3 if says("too large") => Meaning::TooLarge,
            3 if says("duplicate key") || says("too many operations") => Meaning::Failed,
            11 if says("compacted") => Meaning::Compacted,
            15 => Meaning::Failed,
            // Elections, timeouts, members that stop or are learners, expired tokens, permissions that are being
            // changed.
            _ => Meaning::Lost,
        }
    }
}

/// Converts `error`, which a read has caused.
pub(crate) fn read_failed(error: CallError) -> BackendError {
    match error.meaning() {
        Meaning::Failed | Meaning::TooLarge => BackendError::Failed(Box::new(error)),
        _ => BackendError::Unreachable(Box::new(error)),
    }
}

/// Converts `error`, which opening a connection has caused.
pub(crate) fn unreachable(error: EtcdError) -> BackendError {
    BackendError::Unreachable(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_etcd_have_a_meaning() {
        let of = |code, message: &str| {
            let message = message.to_owned();
            CallError::Refused { code, message }.meaning()
        };
        let known = [
            (
                8,
                "etcdserver: mvcc: database space exceeded",
                Meaning::Full,
            ),
            (8, "etcdserver: too many requests", Meaning::Again),
            (3, "etcdserver: request is too large", Meaning::TooLarge),
            (
                3,
                "etcdserver: revision of auth store is old",
                Meaning::Lost,
            ),
            (
                11,
                "etcdserver: mvcc: required revision has been compacted",
                Meaning::Compacted,
            ),
            (
                11,
                "etcdserver: mvcc: required revision is a future revision",
                Meaning::Lost,
            ),
            (14, "etcdserver: leader changed", Meaning::Lost),
            (14, "etcdserver: no leader", Meaning::Lost),
            (16, "etcdserver: invalid auth token", Meaning::Lost),
            (15, "etcdserver: corrupt cluster", Meaning::Failed),
        ];
        for (code, message, meaning) in known {
            assert_eq!(of(code, message), meaning, "{message}");
        }
    }
}
