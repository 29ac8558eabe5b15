//! A TCP proxy that loses connections at a chosen moment.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// Where the connection is cut for the next request that contains the given bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The connection is lost before the request arrives.
    Request(Vec<u8>),
    /// The connection is lost after the server answered.
    Answer(Vec<u8>),
}

#[derive(Default)]
struct State {
    cut: Option<Cut>,
    /// Whether new connections are refused. Existing connections were cut.
    down: bool,
    /// Whether all data is held back without an error for either side.
    silent: bool,
    open: Vec<TcpStream>,
}

/// A proxy in front of one server.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.lock().down {
                    continue;
                }
                let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let both = |from: &TcpStream| from.try_clone().unwrap();
                shared.lock().open.extend([both(&client), both(&upstream)]);
                let (to_server, to_client) = ((both(&client), both(&upstream)), (upstream, client));
                let state = shared.clone();
                std::thread::spawn(move || pass(to_server.0, to_server.1, &state, true));
                let state = shared.clone();
                std::thread::spawn(move || pass(to_client.0, to_client.1, &state, false));
            }
        });
        Self { port, state }
    }

    pub(crate) fn cut(&self, cut: Cut) {
        self.state.lock().cut = Some(cut);
    }

    /// Returns whether the last requested cut has happened.
    pub(crate) fn has_cut(&self) -> bool {
        self.state.lock().cut.is_none()
    }

    pub(crate) fn set_down(&self, down: bool) {
        let mut state = self.state.lock();
        state.down = down;
        if down {
            for stream in state.open.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    pub(crate) fn set_silent(&self, silent: bool) {
        self.state.lock().silent = silent;
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &Mutex<State>, request: bool) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(len) = from.read(&mut buffer) {
        let bytes = &buffer[..len];
        if len == 0 {
            break;
        }
        while state.lock().silent {
            std::thread::sleep(Duration::from_millis(5));
        }
        let cut = {
            let mut state = state.lock();
            let has = |cut: &Cut| {
                let (Cut::Request(mark) | Cut::Answer(mark)) = cut;
                request && bytes.windows(mark.len()).any(|window| window == mark)
            };
            state.cut.take_if(|cut| has(cut))
        };
        match cut {
            Some(Cut::Request(_)) => break,
            Some(Cut::Answer(_)) => {
                // The other direction ends first; the server commits and its answer reaches no client.
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.write_all(bytes);
                std::thread::sleep(Duration::from_millis(30));
                break;
            }
            None => {
                if to.write_all(bytes).is_err() {
                    break;
                }
            }
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
