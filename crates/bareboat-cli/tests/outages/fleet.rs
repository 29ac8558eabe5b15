//! Several servers on one store, each behind a proxy of its own to the database.

use crate::database::Database;
use crate::process::run;
use crate::server::{Home, Running, bareboat};
use bareboat_rig::link::Link;
use bareboat_rig::proxy::Proxy;
use bareboat_rig::wall_clock::WallClock;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A server and what belongs to it.
pub(crate) struct Replica {
    pub(crate) home: Home,
    pub(crate) proxy: Proxy,
    /// The network between the server and the proxy, if it is not that of this machine.
    pub(crate) link: Option<Link>,
    /// The clock of the server, if it is not that of this machine.
    pub(crate) clock: Option<WallClock>,
    /// `None` while it is down.
    pub(crate) running: Mutex<Option<Running>>,
}

/// The servers of one store.
pub(crate) struct Fleet {
    pub(crate) replicas: Vec<Replica>,
    _keys: tempfile::TempDir,
}

impl Fleet {
    /// Starts `count` servers with additional flags.
    pub(crate) fn start(database: &Database, count: usize, flags: &[&str]) -> Self {
        Self::with(count, flags, |port| database.url(port), database.port())
    }

    /// Starts servers whose packets to the database can be lost and whose clocks can jump, where this machine allows it.
    pub(crate) fn fragile(database: &Database, count: usize, flags: &[&str]) -> Self {
        let url = |port| database.url(port);
        let fleet = Plan {
            count,
            flags,
            fragile: true,
            first: None,
        };
        fleet.begin(url, database.port())
    }

    /// Starts servers on a store that another program creates first, if there is one.
    pub(crate) fn made_by(
        database: &Database,
        count: usize,
        flags: &[&str],
        program: Option<Command>,
    ) -> Self {
        let url = |port| database.url(port);
        let fleet = Plan {
            count,
            flags,
            fragile: false,
            first: program,
        };
        fleet.begin(url, database.port())
    }

    /// Starts servers whose address follows from the port of their proxy, which leads to `port`.
    pub(crate) fn with(
        count: usize,
        flags: &[&str],
        url: impl Fn(u16) -> String,
        port: u16,
    ) -> Self {
        let fleet = Plan {
            count,
            flags,
            fragile: false,
            first: None,
        };
        fleet.begin(url, port)
    }

    /// Returns a client of each server, when controllers have done their work in the namespace `default`.
    pub(crate) async fn clients(&self) -> Vec<kube::Client> {
        let mut clients = Vec::new();
        for replica in &self.replicas {
            clients.push(replica.home.client().await);
        }
        // Servers are ready before their controllers lead. What those write late must not be among the events of a test.
        let maps: Api<ConfigMap> = Api::namespaced(clients[0].clone(), "default");
        let deadline = Instant::now() + Duration::from_secs(60);
        while !matches!(maps.get_opt("kube-root-ca.crt").await, Ok(Some(_))) {
            assert!(Instant::now() < deadline, "no controller works");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        clients
    }
}

/// What a fleet is to be.
struct Plan<'a> {
    count: usize,
    flags: &'a [&'a str],
    /// Whether servers have links and clocks of their own.
    fragile: bool,
    /// The program that creates the store.
    first: Option<Command>,
}

impl Plan<'_> {
    fn begin(self, url: impl Fn(u16) -> String, port: u16) -> Fleet {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys");
        let made = run(bareboat(["init-shared"]).arg(&keys), "");
        assert!(made.status.success(), "{}", made.all());
        if let Some(mut program) = self.first {
            let url = url(port);
            let home = Home::with(&[&["--storage", &url], self.flags].concat()).sharing(&keys);
            program.arg("serve");
            let mut creator = home.launch_with(program);
            creator.ready();
            creator.stop();
        }
        let replica = |_| {
            let link = self.fragile.then(Link::required).flatten();
            let proxy = match &link {
                Some(link) => Proxy::behind(link, port),
                None => Proxy::to(port),
            };
            let url = match &link {
                Some(link) => across(&url(proxy.port), proxy.port, link),
                None => url(proxy.port),
            };
            let home = Home::with(&[&["--storage", &url], self.flags].concat()).sharing(&keys);
            let clock = self.fragile.then(|| WallClock::make(home.path()));
            let replica = Replica {
                clock: clock.flatten(),
                home,
                proxy,
                link,
                running: Mutex::new(None),
            };
            *replica.running.lock().unwrap() = Some(replica.launch());
            replica
        };
        let fleet = Fleet {
            replicas: (0..self.count).map(replica).collect(),
            _keys: dir,
        };
        for replica in &fleet.replicas {
            replica.running.lock().unwrap().as_mut().unwrap().ready();
        }
        fleet
    }
}

/// Returns the address of a store whose port `port` is at the far end of a link.
fn across(url: &str, port: u16, link: &Link) -> String {
    let far = format!("{}:{port}", link.host());
    let url = url.replace(&format!("127.0.0.1:{port}"), &far);
    // Without TLS, which is the default on this machine only.
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres") => format!("{url}&sslmode=disable"),
        _ => format!("{url}?tls=off"),
    }
}

impl Replica {
    /// Starts the server without waiting.
    fn launch(&self) -> Running {
        let mut command = bareboat(["serve"]);
        if let Some(clock) = &self.clock {
            clock.wind(&mut command);
        }
        self.home.launch_with(command)
    }

    /// Kills the server and starts it again.
    pub(crate) fn crash(&self) {
        let mut running = self.running.lock().unwrap();
        if let Some(running) = running.take() {
            running.kill();
        }
        let mut next = self.launch();
        next.ready();
        *running = Some(next);
    }

    /// Stops the server as an init system does, and starts it again.
    pub(crate) fn restart(&self) {
        self.replace(|_| self.launch());
    }

    /// Stops the server as an init system does, and starts another one in its place.
    pub(crate) fn replace(&self, start: impl FnOnce(&Home) -> Running) {
        let mut running = self.running.lock().unwrap();
        if let Some(running) = running.take() {
            let (status, log) = running.stop();
            assert!(status.success(), "{log}");
        }
        let mut next = start(&self.home);
        next.ready();
        *running = Some(next);
    }

    /// Sends a signal to the server.
    pub(crate) fn signal(&self, name: &str) {
        if let Some(running) = &*self.running.lock().unwrap() {
            crate::database::send(name, running.pid());
        }
    }
}
