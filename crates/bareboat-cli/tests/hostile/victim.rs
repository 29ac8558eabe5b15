//! The server under attack: one at a time, with its memory measured by the kernel.

use crate::client::Caller;
use crate::pulse::Pulse;
use crate::server::{Home, Running, bareboat};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;

/// Only one attack at a time: others would be measured with it.
static TURN: Mutex<()> = Mutex::new(());

/// A running server and those who call it.
pub(crate) struct Victim {
    pub(crate) admin: Caller,
    pub(crate) stranger: Caller,
    server: Running,
    home: Home,
    _turn: MutexGuard<'static, ()>,
}

/// What an attack did to the server's memory, in MiB.
struct Peak {
    /// What it had before.
    before: u64,
    /// The most it had since.
    most: u64,
}

impl Victim {
    /// Starts a server that keeps its objects in memory.
    pub(crate) fn start(flags: &[&str]) -> Victim {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let home = Home::with(&[&["--in-memory"], flags].concat());
        let server = home.serve();
        Victim::around(home, server, turn)
    }

    /// Starts a server that may open so many files.
    pub(crate) fn with_files(most: u32) -> Victim {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let home = Home::new();
        let program = bareboat(["serve", "--in-memory"]);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\"")])
            .arg(program.get_program())
            .args(program.get_args())
            .args(["--bind", &home.address(), "--data-dir"])
            .arg(home.data());
        let mut server = Running::start(command);
        server.ready();
        Victim::around(home, server, turn)
    }

    fn around(home: Home, server: Running, turn: MutexGuard<'static, ()>) -> Victim {
        Victim {
            admin: Caller::admin(&home),
            stranger: Caller::stranger(&home),
            server,
            home,
            _turn: turn,
        }
    }

    /// Creates config maps of a namespace, `each` bytes of data in every one.
    pub(crate) fn fill(&self, namespace: &str, count: usize, each: usize) {
        let name = json!({"metadata": {"name": namespace}});
        self.admin.post("/api/v1/namespaces", &name).accepted();
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let mut connection = self.admin.connect().unwrap();
        for at in 0..count {
            let object = json!({
                "metadata": {"name": format!("filled-{at:05}")},
                "data": {"value": "x".repeat(each)},
            });
            let body = serde_json::to_vec(&object).unwrap();
            connection
                .send("POST", &path, "application/json", &body)
                .unwrap();
            connection.receive().unwrap().accepted();
        }
    }

    /// The certificate of the server's authority, a PEM file.
    pub(crate) fn authority(&self) -> PathBuf {
        self.home.data().join("certificates/ca.crt")
    }

    /// The newest version of the store.
    pub(crate) fn version(&self) -> String {
        let list = self
            .admin
            .get("/api/v1/namespaces?limit=1")
            .accepted()
            .json();
        list["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Installs a custom kind and waits until it is served; gives the refusal if it is refused.
    pub(crate) fn define(&self, plural: &str, schema: Value) -> Result<(), Value> {
        let kind = plural.trim_end_matches('s');
        let body = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.hostile.example")},
            "spec": {
                "group": "hostile.example",
                "scope": "Cluster",
                "names": {"plural": plural, "singular": kind, "kind": kind.to_uppercase()},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let answer = self.admin.post(path, &body);
        if answer.code != 201 {
            return Err(answer.json());
        }
        crate::process::eventually("the kind is served", || {
            let list = self
                .admin
                .get(&format!("/apis/hostile.example/v1/{plural}"));
            (list.code == 200).then_some(())
        });
        Ok(())
    }

    /// Runs an attack by so many at once while another client works, and fails if that one waits.
    pub(crate) fn attack(&self, attackers: usize, attack: impl Fn(usize) + Sync) {
        let pulse = Pulse::quiet(self).beats(self);
        scope(|scope| {
            for number in 0..attackers {
                let attack = &attack;
                scope.spawn(move || attack(number));
            }
        });
        pulse.never_waited();
    }

    /// The peak of the server's memory during some work. `None` where the kernel does not tell.
    fn peak(&self, work: impl FnOnce()) -> Option<Peak> {
        let process = format!("/proc/{}", self.server.pid());
        // 5 sets the peak back to what is used now.
        let reset = std::fs::write(format!("{process}/clear_refs"), "5").is_ok();
        let before = memory(&process, "VmRSS:");
        work();
        let most = memory(&process, "VmHWM:");
        reset.then_some(Peak {
            before: before?,
            most: most?,
        })
    }

    /// Fails when some work raises the server's memory by more than so many MiB.
    pub(crate) fn grows_at_most(&self, most: u64, work: impl FnOnce()) {
        let Some(peak) = self.peak(work) else {
            println!("skipped: this system does not tell the memory of a process");
            return;
        };
        assert!(
            peak.most <= peak.before + most,
            "{} MiB before, {} MiB at the peak: more than {most} MiB on top",
            peak.before,
            peak.most
        );
    }
}

fn memory(process: &str, what: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1024)
}
