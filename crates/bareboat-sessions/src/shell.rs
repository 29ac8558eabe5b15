//! One bash for a whole session. It gets one step at a time and reports when the step is done.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Job control puts every background program into a process group of its own, so that a signal reaches its children, too. When the
/// test ends early, bash reads the end of its input and ends all programs.
const PROLOGUE: &str = r#"
set -mE -o pipefail
trap '__failed=$?' ERR
__end() { local job; for job in $(jobs -p); do kill -TERM -- "-$job" 2>/dev/null; done; }
trap __end EXIT
"#;

/// Returns the command for bash. Tests that run in the background of a script inherit an ignored SIGINT, and bash cannot trap a
/// signal that was ignored when it started. GNU env resets it.
fn bash() -> Command {
    if !cfg!(target_os = "linux") {
        return Command::new("bash");
    }
    let mut env = Command::new("env");
    env.args(["--default-signal=INT", "bash"]);
    env
}

/// How a step ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// The exit code of the last command.
    pub(crate) last: i32,
    /// The exit code of a command that failed, or 0.
    pub(crate) failed: i32,
}

/// The running bash.
pub(crate) struct Shell {
    bash: Child,
    input: Option<ChildStdin>,
    reports: Receiver<String>,
    folder: PathBuf,
    steps: usize,
}

/// Why a step has no result.
pub(crate) enum Broken {
    /// It took too long.
    TooLong,
    /// The commands ended the shell.
    Exited,
}

impl Shell {
    /// Starts bash in a folder; its scripts and outputs are written to another.
    pub(crate) fn start(
        cwd: &Path,
        folder: PathBuf,
        environment: &[(String, String)],
    ) -> std::io::Result<Shell> {
        let mut bash = bash()
            .args(["--noprofile", "--norc"])
            .current_dir(cwd)
            .env_remove("KUBECONFIG")
            // Errors look as they do for a user.
            .env_remove("RUST_BACKTRACE")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = bash.stdout.take().expect("stdout is piped");
        let (sender, reports) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = bash.stdin.take();
        let mut shell = Shell {
            bash,
            input,
            reports,
            folder,
            steps: 0,
        };
        shell.send(PROLOGUE)?;
        Ok(shell)
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        match &mut self.input {
            Some(input) => input.write_all(text.as_bytes()),
            None => Ok(()),
        }
    }

    /// Writes a script and returns it, quoted for bash, with the file for its output.
    fn script(&mut self, commands: &str) -> std::io::Result<(String, PathBuf)> {
        self.steps += 1;
        let script = self.folder.join(format!("{}.bash", self.steps));
        let output = self.folder.join(format!("{}.out", self.steps));
        std::fs::write(&script, commands)?;
        std::fs::write(&output, "")?;
        Ok((quoted(&script), output))
    }

    /// Runs commands to their end.
    pub(crate) fn run(
        &mut self,
        commands: &str,
        limit: Duration,
    ) -> (Result<Ended, Broken>, String) {
        let Ok((script, output)) = self.script(commands) else {
            return (Err(Broken::Exited), String::new());
        };
        let step = self.steps;
        let line = format!(
            "__failed=0; . {script} >{} 2>&1 </dev/null; echo \"{step} $? $__failed\"\n",
            quoted(&output)
        );
        let ended = match self.send(&line) {
            Ok(()) => self.report(step, limit),
            Err(_) => Err(Broken::Exited),
        };
        (ended, read(&output))
    }

    fn report(&self, step: usize, limit: Duration) -> Result<Ended, Broken> {
        loop {
            let line = match self.reports.recv_timeout(limit) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => return Err(Broken::TooLong),
                Err(RecvTimeoutError::Disconnected) => return Err(Broken::Exited),
            };
            let mut numbers = line.split(' ').map_while(|word| word.parse::<i32>().ok());
            let (Some(number), Some(last), Some(failed)) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                continue;
            };
            if number == i32::try_from(step).unwrap_or_default() {
                return Ok(Ended { last, failed });
            }
        }
    }

    /// Starts commands that keep running. Returns the file with their output and the id of their process group.
    pub(crate) fn background(&mut self, commands: &str) -> Option<(PathBuf, String)> {
        let (script, output) = self.script(commands).ok()?;
        let start = format!(
            "( . {script} ) >{} 2>&1 </dev/null & echo $!",
            quoted(&output)
        );
        let (ended, pid) = self.run(&start, Duration::from_secs(30));
        ended.ok()?;
        Some((output, pid.trim().to_owned()))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.input.take());
        for _ in 0..100 {
            if matches!(self.bash.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.bash.kill();
        let _ = self.bash.wait();
    }
}

/// Reads the output of a step.
pub(crate) fn read(output: &Path) -> String {
    let bytes = std::fs::read(output).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Quotes a path for bash.
pub(crate) fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
