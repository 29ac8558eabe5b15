//! A server process: `bareboat serve` on a directory that goes with the test.

use crate::process::{PATIENCE, drain, signal, wait};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{JoinHandle, spawn};
use tempfile::TempDir;

/// A directory for a server, which outlives its processes.
pub(crate) struct Home {
    dir: TempDir,
    port: Port,
    flags: Vec<String>,
}

impl Home {
    /// A home with an address of its own, the same after each restart.
    pub(crate) fn new() -> Home {
        Home::with(&[])
    }

    /// A home whose servers get further flags.
    pub(crate) fn with(flags: &[&str]) -> Home {
        Home {
            dir: tempfile::tempdir().unwrap(),
            port: Port::free(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
        }
    }

    /// The directory beside the data, for files of the test.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data().join("admin.kubeconfig")
    }

    /// The address clients use.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number)
    }

    /// Starts a server and waits for its greeting.
    pub(crate) fn serve(&self) -> Running {
        let mut running = self.launch();
        running.ready();
        running
    }

    /// Starts a server without waiting for anything.
    pub(crate) fn launch(&self) -> Running {
        let mut command = bareboat(["serve"]);
        command
            .arg("--data-dir")
            .arg(self.data())
            .args(["--bind", &self.address()])
            .args(&self.flags);
        Running::start(command)
    }

    /// A client of kube-rs that goes over the socket, with connections of its own.
    pub(crate) async fn client(&self) -> kube::Client {
        self.client_of(&self.kubeconfig()).await
    }

    /// The same with a kubeconfig that lies elsewhere.
    pub(crate) async fn client_of(&self, kubeconfig: &Path) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        // Tests say themselves what is tried again: a repeated write would blur what happened.
        config.default_retry = false;
        kube::Client::try_from(config).unwrap()
    }
}

/// The program, with no setting from outside.
pub(crate) fn bareboat<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bareboat"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BAREBOAT_") {
            command.env_remove(name);
        }
    }
    command.args(args);
    command
}

/// A port that nobody has, below those the system gives to whoever asks for any: a server that is
/// down for a moment finds its own free again.
pub(crate) struct Port {
    pub(crate) number: u16,
    /// Locked as long as the port is taken, also while nobody listens: suites that run side by side
    /// share the ports. Where nothing can be locked, chance has to do.
    _claim: Option<File>,
}

impl Port {
    /// Takes one.
    pub(crate) fn free() -> Port {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let seed = u16::try_from(std::process::id() % 8000).unwrap();
        let claims = std::env::temp_dir().join("bareboat-test-ports");
        let _ = std::fs::create_dir_all(&claims);
        loop {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let number = 20_000 + (seed + step) % 10_000;
            let claim = File::create(claims.join(number.to_string())).ok();
            let ours = claim.as_ref().is_none_or(|claim| claim.try_lock().is_ok());
            if ours && TcpListener::bind(("127.0.0.1", number)).is_ok() {
                return Port {
                    number,
                    _claim: claim,
                };
            }
        }
    }
}

/// A server process; dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    stdout: Mutex<Receiver<String>>,
    stderr: Option<JoinHandle<String>>,
    /// What it said on standard output so far.
    pub(crate) greeting: String,
}

impl Running {
    /// Starts a command that serves.
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (to, stdout) = sync_channel(4096);
        spawn(move || {
            for line in lines.map_while(Result::ok) {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Running {
            stdout: Mutex::new(stdout),
            stderr: Some(drain(child.stderr.take().unwrap())),
            child,
            greeting: String::new(),
        }
    }

    /// Waits for the last line of the greeting, which comes when all is open.
    pub(crate) fn ready(&mut self) {
        while !self.greeting.contains("kubectl get namespaces") {
            let said = self.stdout.get_mut().unwrap().recv_timeout(PATIENCE);
            let why = match said {
                Ok(line) => {
                    self.greeting.push_str(&line);
                    self.greeting.push('\n');
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => "it says nothing",
                Err(RecvTimeoutError::Disconnected) => "it ended",
            };
            let _ = self.child.kill();
            let status = self.child.wait().unwrap();
            let stderr = self.stderr.take().expect("not stopped").join().unwrap();
            panic!(
                "the server did not start, {why} ({status}): {}{stderr}",
                self.greeting
            );
        }
    }

    /// The address in the greeting.
    pub(crate) fn url(&self) -> &str {
        self.greeting
            .split_whitespace()
            .find(|word| word.starts_with("https://"))
            .expect("the greeting names the address")
    }

    /// The number of the process. Only the hostile suite asks for it.
    #[allow(dead_code)]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// SIGKILL: nothing is finished, nothing is said.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ended with what it had logged.
    pub(crate) fn stop(self) -> (ExitStatus, String) {
        self.stop_by("TERM")
    }

    /// Any signal that asks for an end, and how it ended with what it had logged.
    pub(crate) fn stop_by(mut self, name: &str) -> (ExitStatus, String) {
        signal(&self.child, name);
        let status = wait(&mut self.child).expect("the server stops when asked");
        let stderr = self.stderr.take().expect("not stopped").join().unwrap();
        (status, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
