//! A server process: `bareboat serve` on a temporary directory.

use crate::process::{PATIENCE, drain, signal, wait};
use bareboat_sessions::Port;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
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
    /// A directory with its own address, which stays the same after a restart.
    pub(crate) fn new() -> Home {
        Home::with(&[])
    }

    /// A directory whose servers get additional flags.
    pub(crate) fn with(flags: &[&str]) -> Home {
        Home {
            dir: tempfile::tempdir().unwrap(),
            port: Port::free(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
        }
    }

    /// Gives the data directory the keys that `bareboat init-shared` made.
    pub(crate) fn sharing(self, keys: &Path) -> Home {
        let mut copy = Command::new("cp");
        copy.arg("-rp").arg(keys).arg(self.data());
        assert!(copy.status().unwrap().success());
        self
    }

    /// Returns the directory beside the data, for files of the test.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Returns the path of the administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data().join("admin.kubeconfig")
    }

    /// Returns the port for clients.
    #[allow(dead_code, reason = "only some suites balance connections")]
    pub(crate) fn port(&self) -> u16 {
        self.port.number
    }

    /// Returns the address for clients.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number)
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn serve(&self) -> Running {
        let mut running = self.launch();
        running.ready();
        running
    }

    /// Starts a server without waiting.
    pub(crate) fn launch(&self) -> Running {
        self.launch_with(bareboat(["serve"]))
    }

    /// Starts a server by a command, such as that of another release.
    pub(crate) fn launch_with(&self, mut command: Command) -> Running {
        command
            .arg("--data-dir")
            .arg(self.data())
            .args(["--bind", &self.address()])
            .args(&self.flags);
        Running::start(command)
    }

    /// Returns a client of kube-rs with its own connections.
    pub(crate) async fn client(&self) -> kube::Client {
        self.client_of(&self.kubeconfig()).await
    }

    /// The same with another kubeconfig.
    pub(crate) async fn client_of(&self, kubeconfig: &Path) -> kube::Client {
        client_with(Kubeconfig::read_from(kubeconfig).unwrap()).await
    }

    /// The same with a token.
    #[allow(dead_code, reason = "the hostile suite needs none")]
    pub(crate) async fn client_with_token(&self, token: &str) -> kube::Client {
        let mut kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        for user in &mut kubeconfig.auth_infos {
            let shown = serde_json::json!({"token": token});
            user.auth_info = Some(serde_json::from_value(shown).unwrap());
        }
        client_with(kubeconfig).await
    }
}

async fn client_with(kubeconfig: Kubeconfig) -> kube::Client {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    // No automatic retries: a repeated write would hide what happened.
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

/// Returns a command for the program, with no setting from outside.
pub(crate) fn bareboat<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_bareboat"));
    command.args(args);
    command
}

/// Returns a command for a program of any release, with no setting from outside.
pub(crate) fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("BAREBOAT_") || text.starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
}

/// A server process; it is killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Mutex<Receiver<String>>,
    stderr: Option<JoinHandle<String>>,
    /// Its standard output so far.
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

    /// Waits for the last line of the greeting, which is printed when the server is ready.
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

    /// Returns the URL in the greeting.
    pub(crate) fn url(&self) -> &str {
        self.greeting
            .split_whitespace()
            .find(|word| word.starts_with("https://"))
            .expect("the greeting names the address")
    }

    /// Returns the process ID. Only the hostile suite needs it.
    #[allow(dead_code)]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGKILL, and keeps what the server printed.
    #[allow(
        dead_code,
        reason = "only some suites kill a server that they start again"
    )]
    pub(crate) fn kill_now(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM; returns the exit status and the log.
    pub(crate) fn stop(self) -> (ExitStatus, String) {
        self.stop_by("TERM")
    }

    /// Sends a signal; returns the exit status and the log.
    pub(crate) fn stop_by(mut self, name: &str) -> (ExitStatus, String) {
        signal(&self.child, name);
        let status = wait(&mut self.child).expect("the server stops when asked");
        let stderr = self.stderr.take().expect("not stopped").join().unwrap();
        no_credentials(&self.greeting, &stderr);
        (status, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Every server of the suite is searched, whatever its test is about.
        if let (Some(stderr), false) = (self.stderr.take(), std::thread::panicking()) {
            no_credentials(&self.greeting, &stderr.join().unwrap());
        }
    }
}

/// Fails if a server printed a credential: a signed token, a header with one, or a private key.
fn no_credentials(greeting: &str, log: &str) {
    // The first is how every JSON Web Token begins.
    for secret in ["eyJ", "Bearer ", "PRIVATE KEY", "-may-read"] {
        let lines = greeting.lines().chain(log.lines());
        let found = lines.filter(|line| line.contains(secret)).count();
        assert_eq!(found, 0, "a server printed {secret:?}");
    }
}
