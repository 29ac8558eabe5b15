//! A cable between a server and one behind it, which a test can cut and mend.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A cable to another server.
pub(super) struct Cable {
    /// The port of this end.
    pub(super) port: u16,
    is_whole: watch::Sender<bool>,
}

impl Cable {
    pub(super) async fn to(other_end: SocketAddr) -> Cable {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_whole, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, other_end, state.clone()));
            }
        });
        Cable { port, is_whole }
    }

    /// Breaks all connections, and all that begin from now on.
    pub(super) fn cut(&self) {
        self.is_whole.send_replace(false);
    }

    pub(super) fn mend(&self) {
        self.is_whole.send_replace(true);
    }
}

async fn carry(mut near: TcpStream, other_end: SocketAddr, mut state: watch::Receiver<bool>) {
    let copy = async {
        if let Ok(mut far) = TcpStream::connect(other_end).await {
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        }
    };
    tokio::select! {
        biased;
        _ = state.wait_for(|is_whole| !is_whole) => {}
        () = copy => {}
    }
}
