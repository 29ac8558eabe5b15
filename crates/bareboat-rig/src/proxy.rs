//! A TCP proxy between a store and its database that loses connections at a chosen moment, delays data, or holds it
//! back.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

mod notifications;

use crate::link::Link;
use notifications::Filter;

/// Where the connection is cut for the next request that contains the given bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The connection is lost before the request arrives.
    Request(Vec<u8>),
    /// The connection is lost after the server answered.
    Answer(Vec<u8>),
    /// The connection is lost, and the request arrives when [`Proxy::release`] is called.
    Late(Vec<u8>),
}

impl Cut {
    fn mark(&self) -> &[u8] {
        match self {
            Self::Request(mark) | Self::Answer(mark) | Self::Late(mark) => mark,
        }
    }
}

#[derive(Default)]
struct State {
    server: u16,
    cut: Option<Cut>,
    /// Whether new connections are refused. Existing connections were cut.
    down: bool,
    /// Whether all data is held back without an error for either side.
    silent: bool,
    /// How often late requests were released. Each waits for the next time.
    releases: u64,
    /// How much later answers arrive.
    delay: Duration,
    /// Whether notifications of PostgreSQL are dropped.
    deaf: bool,
    open: Vec<TcpStream>,
    /// How often all connections were cut.
    cuts: u64,
}

/// A proxy in front of one server on this machine.
pub struct Proxy {
    /// The port of the proxy.
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a proxy to a port of this machine. Its threads end with the program.
    pub fn to(server: u16) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap(), server)
    }

    /// Starts a proxy at the far end of a link.
    pub fn behind(link: &Link, server: u16) -> Self {
        Self::at(link.listen(), server)
    }

    fn at(listener: TcpListener, server: u16) -> Self {
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            server,
            ..State::default()
        }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, cuts) = match &*shared.lock() {
                    state if state.down => continue,
                    state => (state.server, state.cuts),
                };
                let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                for stream in [&client, &upstream] {
                    let _ = stream.set_nodelay(true);
                }
                let both = |from: &TcpStream| from.try_clone().unwrap();
                {
                    let mut state = shared.lock();
                    // All connections may have been cut since this one was accepted, and it must not outlive them.
                    if state.cuts != cuts {
                        continue;
                    }
                    state.open.extend([both(&client), both(&upstream)]);
                }
                let (to_server, to_client) = ((both(&client), both(&upstream)), (upstream, client));
                let state = shared.clone();
                std::thread::spawn(move || pass(to_server.0, to_server.1, &state, true));
                let state = shared.clone();
                std::thread::spawn(move || pass(to_client.0, to_client.1, &state, false));
            }
        });
        Self { port, state }
    }

    /// Cuts the connection of the next request that contains certain bytes.
    pub fn cut(&self, cut: Cut) {
        self.state.lock().cut = Some(cut);
    }

    /// Returns whether the last requested cut has happened.
    pub fn has_cut(&self) -> bool {
        self.state.lock().cut.is_none()
    }

    /// Sends the late requests of all cuts so far to the server.
    pub fn release(&self) {
        self.state.lock().releases += 1;
    }

    /// Cuts all connections and refuses new ones, or accepts them again.
    pub fn set_down(&self, down: bool) {
        self.state.lock().down = down;
        if down {
            self.drop_all();
        }
    }

    /// Cuts all connections. New ones are accepted.
    pub fn drop_all(&self) {
        let mut state = self.state.lock();
        state.cuts += 1;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Cuts existing connections, and leads new connections to the port `server`.
    pub fn lead_to(&self, server: u16) {
        self.state.lock().server = server;
        self.drop_all();
    }

    /// Holds back all data without an error for either side, or passes it on again.
    pub fn set_silent(&self, silent: bool) {
        self.state.lock().silent = silent;
    }

    /// Delays everything that the server sends.
    pub fn set_delay(&self, delay: Duration) {
        self.state.lock().delay = delay;
    }

    /// Drops the notifications that PostgreSQL sends.
    pub fn set_deaf(&self, deaf: bool) {
        self.state.lock().deaf = deaf;
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &Mutex<State>, request: bool) {
    let mut buffer = vec![0; 1 << 18];
    let mut filter = Filter::default();
    while let Ok(len) = from.read(&mut buffer) {
        let bytes = &buffer[..len];
        if len == 0 {
            break;
        }
        while state.lock().silent {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (cut, releases, delay, deaf) = {
            let mut state = state.lock();
            let has = |cut: &Cut| {
                let mark = cut.mark();
                request && bytes.windows(mark.len()).any(|window| window == mark)
            };
            let cut = state.cut.take_if(|cut| has(cut));
            (cut, state.releases, state.delay, state.deaf)
        };
        if !request && delay > Duration::ZERO {
            std::thread::sleep(delay);
        }
        match cut {
            Some(Cut::Request(_)) => break,
            Some(Cut::Answer(_)) => {
                // The other direction ends first; the server commits and its answer reaches no client.
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.write_all(bytes);
                std::thread::sleep(Duration::from_millis(30));
                break;
            }
            Some(Cut::Late(_)) => {
                let _ = from.shutdown(Shutdown::Both);
                while state.lock().releases == releases {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _ = to.write_all(bytes);
                std::thread::sleep(Duration::from_millis(200));
                break;
            }
            None => {
                let kept = match deaf && !request {
                    true => &filter.keep(bytes)[..],
                    false => bytes,
                };
                if to.write_all(kept).is_err() {
                    break;
                }
            }
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
