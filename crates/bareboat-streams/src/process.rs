//! Local processes with the streams of pods, for programs whose pods, machines or jobs are processes.

use crate::command::{CommandStreams, Input, Output};
use crate::log_buffer::LogBuffer;
use bareboat_api::Status;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Mutex, watch};

/// How many lines of its output are kept.
const LINES: usize = 10_000;
/// How long output may still come after the end: another process may have inherited the stream.
const FAREWELL: Duration = Duration::from_secs(1);

/// A running process: its output is kept as a log, and clients may attach to it. It is killed when its last owner drops it.
///
/// ```
/// # mod bareboat { pub mod streams { pub use bareboat_streams::*; } }
/// use bareboat::streams::Process;
/// use std::process::Command;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo ahoy; exit 3"]);
/// let process = Process::start(command)?;
/// assert_eq!(process.ended().await, 3);
/// # Ok(()) }
/// ```
pub struct Process {
    child: Child,
    log: LogBuffer,
    stdin: Mutex<Option<Sender>>,
    ended: watch::Receiver<Option<i32>>,
}

bareboat_api::opaque_debug!(Process);

impl Process {
    /// Starts a command. Its standard streams are replaced.
    pub fn start(command: Command) -> io::Result<Arc<Process>> {
        let (child, streams) = Child::start(command)?;
        let (end, ended) = watch::channel(None);
        let log = LogBuffer::new(LINES);
        let (mut exit, kept) = (child.exit.clone(), log.clone());
        tokio::spawn(async move {
            let output =
                async { tokio::join!(kept.keep(streams.stdout), kept.keep(streams.stderr)) };
            let mut output = std::pin::pin!(output);
            let exited = async {
                exit.wait_for(Option::is_some)
                    .await
                    .map_or(None, |code| *code)
            };
            let mut exited = std::pin::pin!(exited);
            let code = tokio::select! {
                code = &mut exited => {
                    let _ = tokio::time::timeout(FAREWELL, output).await;
                    code
                }
                _ = &mut output => exited.await,
            };
            kept.end();
            end.send_replace(Some(code.unwrap_or(255)));
        });
        Ok(Arc::new(Process {
            child,
            log,
            stdin: Mutex::new(Some(streams.stdin)),
            ended,
        }))
    }

    /// Returns the number of the process.
    pub fn id(&self) -> u32 {
        self.child.id
    }

    /// Returns its output.
    pub fn log(&self) -> &LogBuffer {
        &self.log
    }

    /// Ends the process at once.
    pub fn kill(&self) {
        self.child.signal(Signal::KILL);
    }

    /// Stops the process where it is, or lets it go on.
    pub fn pause(&self, paused: bool) {
        self.child.signal(match paused {
            true => Signal::STOP,
            false => Signal::CONT,
        });
    }

    /// Waits for the end of the process and of its output. Returns its exit code, or 128 and the number of the signal that
    /// ended it.
    pub fn ended(&self) -> impl Future<Output = i32> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let code = ended.wait_for(Option::is_some).await;
            code.map_or(255, |code| code.unwrap_or(255))
        }
    }

    /// Writes to its standard input.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match &mut *self.stdin.lock().await {
            Some(stdin) => stdin.write_all(bytes).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Closes its standard input.
    pub async fn close_input(&self) {
        self.stdin.lock().await.take();
    }

    /// Connects a client until the process ends: its input goes to the process, and it gets the output from now on. With
    /// `once`, the input of the process ends with that of the client.
    pub async fn attach(&self, input: Option<Input>, output: Option<Output>, once: bool) {
        let shown = async {
            match output {
                Some(output) => self.log.follow(output).await,
                None => drop(self.ended().await),
            }
        };
        let typed = async {
            let Some(mut input) = input else { return };
            let mut piece = [0; 8192];
            while let Ok(length @ 1..) = input.read(&mut piece).await {
                if self.write(&piece[..length]).await.is_err() {
                    return;
                }
            }
            if once {
                self.close_input().await;
            }
        };
        let typed = async {
            tokio::select! { () = typed => {}, _ = self.ended() => {} }
        };
        tokio::join!(shown, typed);
    }
}

/// A child process; it is killed when this is dropped.
struct Child {
    id: u32,
    exit: watch::Receiver<Option<i32>>,
}

/// The ends of its streams in this process.
struct Pipes {
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

impl Child {
    fn start(mut command: Command) -> io::Result<(Child, Pipes)> {
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a process has three streams");
        let stdin = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
        let stdout = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
        let stderr = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
        let (exited, exit) = watch::channel(None);
        let id = child.id();
        // A thread waits for it, so that no signal handler is needed.
        std::thread::Builder::new()
            .name(format!("process {id}"))
            .spawn(move || {
                let code = child.wait().map_or(255, exit_code);
                exited.send_replace(Some(code));
            })?;
        let child = Child { id, exit };
        let pipes = Pipes {
            stdin: Sender::from_owned_fd(stdin)?,
            stdout: Receiver::from_owned_fd(stdout)?,
            stderr: Receiver::from_owned_fd(stderr)?,
        };
        Ok((child, pipes))
    }

    /// Sends a signal, unless the process has ended: its number may belong to another one then.
    fn signal(&self, signal: Signal) {
        if self.exit.borrow().is_none()
            && let Some(pid) = i32::try_from(self.id).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    let signal = status.signal().unwrap_or(0);
    status.code().unwrap_or(128 + signal)
}

/// Runs a command with the streams of a session, for [`crate::exec`]; returns its exit code. The command is killed when the
/// future is dropped.
pub async fn run(command: Command, streams: CommandStreams) -> Result<i32, Status> {
    let (child, pipes) = Child::start(command)
        .map_err(|error| Status::bad_request(format!("the command cannot be run: {error}")))?;
    let input = async {
        // Without input from the client, the pipe is closed.
        let mut to = pipes.stdin;
        if let Some(mut from) = streams.stdin {
            let _ = copy(&mut from, &mut to).await;
        }
    };
    let ended = async {
        let output = pass(pipes.stdout, streams.stdout);
        tokio::join!(output, pass(pipes.stderr, streams.stderr));
        let mut exit = child.exit.clone();
        let code = exit.wait_for(Option::is_some).await;
        code.map_or(255, |code| code.unwrap_or(255))
    };
    let mut ended = std::pin::pin!(ended);
    // The input may never end, and its end is not that of the command.
    Ok(tokio::select! {
        code = &mut ended => code,
        () = input => ended.await,
    })
}

/// Copies output of a command to the client.
async fn pass(mut from: Receiver, to: Option<Output>) {
    let mut to = to.unwrap_or_else(|| Box::new(tokio::io::sink()));
    let _ = copy(&mut from, &mut to).await;
    let _ = to.shutdown().await;
}
