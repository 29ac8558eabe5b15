//! What stands for `outbound` and `proxy` in a build without the feature `outbound`: no other server can be named, so none is called.

pub(crate) mod outbound {
    //! No calls.

    use bareboat_storage::Store;
    use std::net::SocketAddr;
    use std::sync::Arc;

    /// There is nothing to set.
    #[derive(Default)]
    pub(crate) struct Outward;

    impl Outward {
        pub(crate) fn connect(self, _: &Store) -> Outgoing {
            Outgoing {
                outbound: Arc::new(Outbound),
                reach: Arc::new(Reach),
            }
        }
    }

    /// No client.
    pub(crate) struct Outgoing {
        pub(crate) outbound: Arc<Outbound>,
        pub(crate) reach: Arc<Reach>,
    }

    /// A client that sends no requests.
    pub(crate) struct Outbound;

    /// Judges no addresses.
    pub(crate) struct Reach;

    impl Reach {
        pub(crate) fn listens_on(&self, _: SocketAddr) {}
    }

    /// Why a call fails. There are none.
    pub(crate) type OutboundError = std::convert::Infallible;
}

pub(crate) mod proxy {
    //! No servers to pass requests on to.

    use super::outbound::{Outbound, OutboundError};
    use crate::server::state::{Ending, UnderWay};
    use std::sync::Arc;

    /// Passes nothing on.
    pub(crate) struct Proxy;

    impl Proxy {
        pub(crate) fn new(_: Arc<Outbound>, _: Ending, _: UnderWay) -> Proxy {
            Proxy
        }
    }

    /// An upstream server. There are none.
    pub(crate) enum Remote {}

    /// A server that answers for a subresource. There are none.
    #[derive(Clone)]
    pub(crate) enum RemoteServer {}

    impl RemoteServer {
        pub(crate) fn check(&self) -> Result<(), OutboundError> {
            match *self {}
        }

        pub(crate) fn remote(&self) -> Remote {
            match *self {}
        }
    }
}
