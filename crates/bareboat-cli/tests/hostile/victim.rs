//! The server under attack: one at a time, with its memory measured by the kernel.

use crate::client::Caller;
use crate::pulse::Pulse;
use crate::server::{Home, Running, bareboat};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;

/// One attack at a time, because others would be measured with it.
static TURN: Mutex<()> = Mutex::new(());

/// A running server and its clients.
pub(crate) struct Victim {
    pub(crate) admin: Caller,
    pub(crate) stranger: Caller,
    /// Whether writes wait for a disk.
    pub(crate) on_disk: bool,
    /// Whether the server may open few files, and so few connections.
    pub(crate) few_files: bool,
    server: Running,
    home: Home,
    _turn: MutexGuard<'static, ()>,
}

/// The memory of the server during an attack, in MiB.
struct Peak {
    /// Before the attack.
    before: u64,
    /// The peak since then.
    most: u64,
}

impl Victim {
    /// Starts a server that stores its objects in memory.
    pub(crate) fn start(flags: &[&str]) -> Victim {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let home = Home::with(&[&["--in-memory"], flags].concat());
        let server = home.serve();
        Victim::around(home, server, turn)
    }

    /// Starts a server that stores its objects on disk, so that their history takes no memory.
    pub(crate) fn on_disk() -> Victim {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let home = Home::new();
        let server = home.serve();
        Victim {
            on_disk: true,
            ..Victim::around(home, server, turn)
        }
    }

    /// Starts a server with a limit of open files.
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
        Victim {
            few_files: true,
            ..Victim::around(home, server, turn)
        }
    }

    fn around(home: Home, server: Running, turn: MutexGuard<'static, ()>) -> Victim {
        Victim {
            admin: Caller::admin(&home),
            stranger: Caller::stranger(&home),
            on_disk: false,
            few_files: false,
            server,
            home,
            _turn: turn,
        }
    }

    /// Creates config maps in a namespace with `each` bytes of data.
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

    /// Returns the path of the server's CA certificate (PEM).
    pub(crate) fn authority(&self) -> PathBuf {
        self.home.data().join("certificates/ca.crt")
    }

    /// Returns the newest revision of the store.
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

    /// Creates a custom kind and waits until it is served; returns the Status if it is refused.
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

    /// Runs an attack with so many threads while another client works; fails if that client waits.
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

    /// Returns the peak of the server's memory during some work; `None` if the kernel does not report it.
    fn peak(&self, work: impl FnOnce()) -> Option<Peak> {
        let process = format!("/proc/{}", self.server.pid());
        // 5 resets the peak to the current use.
        let reset = std::fs::write(format!("{process}/clear_refs"), "5").is_ok();
        let before = memory(&process, "VmRSS:");
        work();
        let most = memory(&process, "VmHWM:");
        reset.then_some(Peak {
            before: before?,
            most: most?,
        })
    }

    /// Fails if some work raises the server's memory by more than so many MiB.
    pub(crate) fn grows_at_most(&self, most: u64, work: impl FnOnce()) {
        let Some(peak) = self.peak(work) else {
            println!("skipped: this system does not tell the memory of a process");
            return;
        };
        println!("{} MiB before, {} MiB at the peak", peak.before, peak.most);
        assert!(
            peak.most <= peak.before + most,
            "{} MiB before, {} MiB at the peak: more than {most} MiB on top",
            peak.before,
            peak.most
        );
    }
}

impl Victim {
    /// Fails unless the memory that some work takes is given back soon, except for so many MiB.
    pub(crate) fn gives_back(&self, except: u64, work: impl FnOnce()) {
        let Some(peak) = self.peak(work) else {
            println!("skipped: this system does not tell the memory of a process");
            return;
        };
        let process = format!("/proc/{}", self.server.pid());
        let bound = peak.before + except;
        let mut now = peak.most;
        for _ in 0..60 {
            now = memory(&process, "VmRSS:").unwrap_or(0);
            if now <= bound {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        println!(
            "{} MiB before, {} MiB at the peak, {now} MiB after",
            peak.before, peak.most
        );
        assert!(
            now <= bound,
            "{} MiB before, {} MiB at the peak, and still {now} MiB half a minute later",
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
