//! Runs other programs: to their end with a deadline, or line by line.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Timeout of anything, even on a busy machine. Only a failure waits this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The output of a program that ended.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// Returns both streams, for a message.
    pub(crate) fn all(&self) -> String {
        format!("{}\n{}\n{}", self.status, self.stdout, self.stderr)
    }
}

/// Runs a program to its end; one that exceeds the timeout is killed and fails the test.
pub(crate) fn run(command: &mut Command, input: &str) -> Output {
    let shown = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{shown} cannot be started: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // A program may close its input without reading it.
    let feeding = spawn(move || drop(stdin.write_all(input.as_bytes())));
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    let status = wait(&mut child);
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    feeding.join().unwrap();
    let Some(status) = status else {
        panic!("{shown} did not end within {PATIENCE:?}:\n{stdout}\n{stderr}");
    };
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Waits for the end of a child; kills it after the timeout.
pub(crate) fn wait(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        sleep(Duration::from_millis(5));
    }
}

/// Sends a signal: `TERM` as an init system does, `INT` as a terminal does.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "SIG{name} cannot be sent");
}

/// Reads a stream to its end in the background.
pub(crate) fn drain(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    spawn(move || {
        let mut bytes = Vec::new();
        // Output before an error is still useful.
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A program that runs while its lines are read.
pub(crate) struct Followed {
    name: String,
    child: Child,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    seen: Vec<String>,
}

impl Followed {
    /// Starts a program.
    pub(crate) fn start(name: &str, command: &mut Command) -> Followed {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        let (to, lines) = sync_channel(4096);
        spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if to.send(line).is_err() {
                    return;
                }
            }
        });
        Followed {
            name: name.to_owned(),
            child,
            lines,
            stderr: Some(stderr),
            seen: Vec::new(),
        }
    }

    /// Returns the next line.
    pub(crate) fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.seen.push(line.clone());
                line
            }
            Err(why) => {
                let seen = self.seen.join("\n");
                let complaints = self.end();
                panic!(
                    "{}: no line within {PATIENCE:?} ({why}); before it:\n{seen}\nit complained:\n{complaints}",
                    self.name
                );
            }
        }
    }

    /// Returns the next line as JSON.
    pub(crate) fn json(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{}: {error} in {line}", self.name))
    }

    /// Stops the program and returns its remaining lines.
    pub(crate) fn stop(mut self) -> Vec<String> {
        signal(&self.child, "TERM");
        let ended = wait(&mut self.child);
        assert!(ended.is_some(), "{} does not end", self.name);
        self.lines.iter().collect()
    }

    fn end(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        match self.stderr.take() {
            Some(stderr) => stderr.join().unwrap_or_default(),
            None => String::new(),
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.end();
    }
}

/// Calls `ask` until it returns a value.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(50));
    }
}
