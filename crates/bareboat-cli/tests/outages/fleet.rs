//! Several servers on one store, each behind a proxy of its own to the database.

use crate::database::Database;
use crate::process::run;
use crate::server::{Home, Running, bareboat};
use bareboat_rig::proxy::Proxy;
use std::process::Command;
use std::sync::Mutex;

/// A server and what belongs to it.
pub(crate) struct Replica {
    pub(crate) home: Home,
    pub(crate) proxy: Proxy,
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

    /// Starts servers on a store that another program creates first, if there is one.
    pub(crate) fn made_by(
        database: &Database,
        count: usize,
        flags: &[&str],
        program: Option<Command>,
    ) -> Self {
        let url = |port| database.url(port);
        Self::begin(count, flags, url, database.port(), program)
    }

    /// Starts servers whose address follows from the port of their proxy, which leads to `port`.
    pub(crate) fn with(
        count: usize,
        flags: &[&str],
        url: impl Fn(u16) -> String,
        port: u16,
    ) -> Self {
        Self::begin(count, flags, url, port, None)
    }

    fn begin(
        count: usize,
        flags: &[&str],
        url: impl Fn(u16) -> String,
        port: u16,
        first: Option<Command>,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys");
        let made = run(bareboat(["init-shared"]).arg(&keys), "");
        assert!(made.status.success(), "{}", made.all());
        if let Some(mut program) = first {
            let home = Home::with(&[&["--storage", &url(port)], flags].concat()).sharing(&keys);
            program.arg("serve");
            let mut creator = home.launch_with(program);
            creator.ready();
            creator.stop();
        }
        let replica = |_| {
            let proxy = Proxy::to(port);
            let url = url(proxy.port);
            let home = Home::with(&[&["--storage", &url], flags].concat()).sharing(&keys);
            let running = Mutex::new(Some(home.launch()));
            Replica {
                home,
                proxy,
                running,
            }
        };
        let fleet = Self {
            replicas: (0..count).map(replica).collect(),
            _keys: dir,
        };
        for replica in &fleet.replicas {
            replica.running.lock().unwrap().as_mut().unwrap().ready();
        }
        fleet
    }

    /// Returns a client of each server.
    pub(crate) async fn clients(&self) -> Vec<kube::Client> {
        let mut clients = Vec::new();
        for replica in &self.replicas {
            clients.push(replica.home.client().await);
        }
        clients
    }
}

impl Replica {
    /// Kills the server and starts it again.
    pub(crate) fn crash(&self) {
        let mut running = self.running.lock().unwrap();
        if let Some(running) = running.take() {
            running.kill();
        }
        *running = Some(self.home.serve());
    }

    /// Stops the server as an init system does, and starts it again.
    pub(crate) fn restart(&self) {
        self.replace(Home::launch);
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
