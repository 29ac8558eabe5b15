//! A network link between a server and its database that can lose packets. The far end is in a network namespace, which needs
//! root.
//!
//! The proxy of the server listens at the far end, so all that the server sends to its database crosses a pair of
//! virtual Ethernet devices. A device that is down drops packets, and neither side hears of it, as with a cable that is cut.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// How many links this machine can have at once.
const MOST: u8 = 250;

/// A link, and the namespace of its far end.
#[derive(Debug)]
pub struct Link {
    number: u8,
    /// A process in the namespace. It ends with the test program for any reason, and then the namespace and the link are gone.
    holder: Child,
}

impl Link {
    /// Makes a link; `None` if this machine does not allow it.
    pub fn make() -> Option<Self> {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--net", "sh", "-c", "echo made; read _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut holder = unshare.spawn().ok()?;
        let mut made = [0; 5];
        let answer = holder.stdout.take()?.read_exact(&mut made);
        let pid = holder.id().to_string();
        // The name of a device is taken by one program only.
        let free = |number: &u8| {
            let (near, far) = (format!("bareboat{number}"), format!("far{number}"));
            let add = ["link", "add", "name", &near, "type", "veth", "peer"];
            ip(&[&add[..], &["name", &far, "netns", &pid]].concat())
        };
        let number = answer.ok().and_then(|()| (0..MOST).find(free));
        let Some(number) = number else {
            let _ = holder.kill();
            let _ = holder.wait();
            return None;
        };
        let link = Self { number, holder };
        let near = format!("bareboat{number}");
        let up = ip(&["addr", "add", &link.address(1), "dev", &near])
            && ip(&["link", "set", &near, "up"])
            && link.inside(&["addr", "add", &link.address(2), "dev", &link.far()])
            && link.inside(&["link", "set", &link.far(), "up"]);
        up.then_some(link)
    }

    /// Makes a link, or says that it cannot be made. CI requires it.
    pub fn required() -> Option<Self> {
        let link = Self::make();
        if link.is_none() {
            let why = "network namespaces need root, unshare and ip";
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{why}");
            println!("left out: {why}");
        }
        link
    }

    /// Returns the address at the far end.
    pub fn host(&self) -> String {
        format!("10.213.{}.2", self.number)
    }

    fn address(&self, end: u8) -> String {
        format!("10.213.{}.{end}/30", self.number)
    }

    fn far(&self) -> String {
        format!("far{}", self.number)
    }

    /// Runs `ip` at the far end.
    fn inside(&self, args: &[&str]) -> bool {
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["--net", "--target", &self.holder.id().to_string(), "ip"]);
        succeeds(nsenter.args(args))
    }

    /// Listens at the far end.
    pub(crate) fn listen(&self) -> TcpListener {
        let namespace = format!("/proc/{}/ns/net", self.holder.id());
        let address = format!("{}:0", self.host());
        // A thread enters the namespace and ends there; the socket stays.
        let entered = std::thread::spawn(move || {
            enter(&namespace);
            TcpListener::bind(address).unwrap()
        });
        entered.join().unwrap()
    }

    /// Drops all packets in both directions, or lets them pass again.
    pub fn set_down(&self, down: bool) {
        let state = if down { "down" } else { "up" };
        assert!(self.inside(&["link", "set", &self.far(), state]));
    }

    /// Drops the packets from the database to the server, or lets them pass again. Requests still arrive.
    pub fn set_mute(&self, mute: bool) {
        let change = if mute { "add" } else { "del" };
        let near = format!("10.213.{}.1", self.number);
        assert!(self.inside(&["route", change, "blackhole", &near]));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        ip(&["link", "del", &format!("bareboat{}", self.number)]);
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Moves this thread into a namespace.
#[cfg(target_os = "linux")]
fn enter(namespace: &str) {
    use std::os::fd::AsFd as _;
    let namespace = std::fs::File::open(namespace).unwrap();
    let network = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(namespace.as_fd(), network).unwrap();
}

/// There are no namespaces, and so there is no link.
#[cfg(not(target_os = "linux"))]
fn enter(_: &str) {}

fn ip(args: &[&str]) -> bool {
    succeeds(Command::new("ip").args(args))
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
