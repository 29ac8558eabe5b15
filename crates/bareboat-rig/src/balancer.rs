//! A TCP balancer before several servers: each new connection goes to the next server that accepts it.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Starts a balancer; returns its port. Its threads end with the program.
pub fn balance(servers: Vec<u16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let next = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let (servers, next) = (servers.clone(), next.clone());
            std::thread::spawn(move || serve(client, &servers, &next));
        }
    });
    port
}

fn serve(client: TcpStream, servers: &[u16], next: &AtomicUsize) {
    for _ in servers {
        let at = next.fetch_add(1, Ordering::Relaxed) % servers.len();
        let Ok(server) = TcpStream::connect(("127.0.0.1", servers[at])) else {
            continue;
        };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
        }
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let back = std::thread::spawn(move || copy(server, client));
        copy(from, to);
        let _ = back.join();
        return;
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
