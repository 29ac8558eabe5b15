//! kubectl: one module per group of commands.

mod actions;
mod addresses;
mod apply;
mod changes;
mod custom;
mod deletion;
mod fairness;
pub(crate) mod fixtures;
mod generators;
mod limits;
mod objects;
mod policies;
mod published;
mod reviews;
mod subresources;
mod views;
mod workloads;

use crate::process::{Output, PATIENCE, run};
use crate::server::{Home, Running};
use crate::tools;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A kubectl with its own server.
pub(crate) struct Kubectl {
    program: PathBuf,
    pub(crate) home: Home,
    pub(crate) server: Running,
}

impl Kubectl {
    /// Starts a server; `None` if there is no kubectl.
    pub(crate) fn start() -> Option<Kubectl> {
        Kubectl::start_with(&[])
    }

    /// The same for a server with additional flags.
    pub(crate) fn start_with(flags: &[&str]) -> Option<Kubectl> {
        Kubectl::over(Home::with(flags))
    }

    /// The same for the server of a directory.
    pub(crate) fn over(home: Home) -> Option<Kubectl> {
        let program = tools::kubectl()?;
        let server = home.serve();
        Some(Kubectl {
            program,
            home,
            server,
        })
    }

    /// Stops the server with SIGTERM and starts it again.
    pub(crate) fn restarted(self) -> Kubectl {
        let (status, stderr) = self.server.stop();
        assert!(status.success(), "{stderr}");
        let server = self.home.serve();
        Kubectl { server, ..self }
    }

    /// Kills the server with SIGKILL. [`Kubectl::started`] starts it again.
    pub(crate) fn killed(mut self) -> Kubectl {
        self.server.kill_now();
        self
    }

    /// Starts the server again on the same data and address.
    pub(crate) fn started(self) -> Kubectl {
        let server = self.home.serve();
        Kubectl { server, ..self }
    }

    /// Builds a command from a command line; single quotes keep words together.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words(line))
            .env("KUBECONFIG", self.home.kubeconfig())
            .env("HOME", self.home.path())
            .current_dir(self.home.path());
        command
    }

    fn run(&self, line: &str, input: &str) -> Output {
        run(&mut self.command(line), input)
    }

    /// Returns kubectl's output; kubectl must succeed.
    pub(crate) fn gives(&self, line: &str) -> String {
        self.gives_for(line, "")
    }

    /// Returns kubectl's output for an input; kubectl must succeed.
    pub(crate) fn gives_for(&self, line: &str, input: &str) -> String {
        let output = self.run(line, input);
        assert!(output.status.success(), "kubectl {line}: {}", output.all());
        output.stdout
    }

    /// Checks that kubectl succeeds and prints all these words, with any spacing.
    pub(crate) fn says(&self, line: &str, wanted: &[&str]) {
        self.says_for(line, "", wanted);
    }

    /// The same for an input.
    pub(crate) fn says_for(&self, line: &str, input: &str, wanted: &[&str]) {
        let output = self.run(line, input);
        assert!(output.status.success(), "kubectl {line}: {}", output.all());
        let text = spaced(&format!("{}\n{}", output.stdout, output.stderr));
        for words in wanted {
            assert!(
                text.contains(&spaced(words)),
                "kubectl {line}: {words:?} is not in {}",
                output.all()
            );
        }
    }

    /// Repeats a command until its output contains the words, and returns the output.
    pub(crate) fn until(&self, line: &str, wanted: &str) -> String {
        self.until_so(line, wanted, true)
    }

    /// Repeats a command until its output no longer contains the words.
    pub(crate) fn until_no_more(&self, line: &str, unwanted: &str) {
        self.until_so(line, unwanted, false);
    }

    fn until_so(&self, line: &str, words: &str, there: bool) -> String {
        let begun = Instant::now();
        loop {
            let given = spaced(&self.gives(line));
            if given.contains(words) == there {
                return given;
            }
            assert!(begun.elapsed() < PATIENCE, "kubectl {line}: {given}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Checks that kubectl fails with these words.
    pub(crate) fn refuses(&self, line: &str, wanted: &[&str]) {
        self.refuses_for(line, "", wanted);
    }

    /// The same for an input.
    pub(crate) fn refuses_for(&self, line: &str, input: &str, wanted: &[&str]) {
        let output = self.run(line, input);
        assert!(
            !output.status.success(),
            "kubectl {line} should fail: {}",
            output.all()
        );
        let text = spaced(&format!("{}\n{}", output.stdout, output.stderr));
        for words in wanted {
            assert!(
                text.contains(&spaced(words)),
                "kubectl {line}: {words:?} is not in {}",
                output.all()
            );
        }
    }
}

/// Normalizes white space, because kubectl pads columns and wraps lines.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            match words.last_mut() {
                // A quote in the middle of a word continues the word.
                Some(word) if !line_breaks_before(line, index) => {
                    let word: &mut String = word;
                    word.push_str(part);
                }
                _ => words.push(part.to_owned()),
            }
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Returns whether the quoted part starts a word.
fn line_breaks_before(line: &str, index: usize) -> bool {
    let before = line.split('\'').nth(index - 1).unwrap_or_default();
    before.is_empty() || before.ends_with(char::is_whitespace)
}
