//! A cable between a server and one behind it, which a test can cut, hold and mend.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A cable to another server.
pub(super) struct Cable {
    /// The port of this end.
    pub(super) port: u16,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    Cut,
    Held,
}

impl Cable {
    pub(super) async fn to(other_end: SocketAddr) -> Cable {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, seen) = watch::channel(State::Whole);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, other_end, seen.clone()));
            }
        });
        Cable { port, state }
    }

    /// Breaks all connections, and all that begin from now on.
    pub(super) fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Leaves connections open, but passes nothing on.
    pub(super) fn hold(&self) {
        self.state.send_replace(State::Held);
    }

    /// Passes new connections on. Those that were held break.
    pub(super) fn mend(&self) {
        self.state.send_replace(State::Whole);
    }
}

async fn carry(mut near: TcpStream, other_end: SocketAddr, mut state: watch::Receiver<State>) {
    let copy = async {
        if let Ok(mut far) = TcpStream::connect(other_end).await {
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        }
    };
    tokio::select! {
        biased;
        _ = state.wait_for(|state| *state != State::Whole) => {}
        () = copy => return,
    }
    let _ = state.wait_for(|state| *state != State::Held).await;
}
