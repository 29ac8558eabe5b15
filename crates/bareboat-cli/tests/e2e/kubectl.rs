//! kubectl, as people use it: one module per thing they do.

mod actions;
mod addresses;
mod apply;
mod changes;
mod custom;
mod deletion;
pub(crate) mod fixtures;
mod generators;
mod limits;
mod objects;
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

/// A kubectl with a server of its own.
pub(crate) struct Kubectl {
    program: PathBuf,
    pub(crate) home: Home,
    pub(crate) server: Running,
}

impl Kubectl {
    /// Starts a server; nothing when there is no kubectl.
    pub(crate) fn start() -> Option<Kubectl> {
        Kubectl::start_with(&[])
    }

    /// The same for a server with further flags.
    pub(crate) fn start_with(flags: &[&str]) -> Option<Kubectl> {
        let program = tools::kubectl()?;
        let home = Home::with(flags);
        let server = home.serve();
        Some(Kubectl {
            program,
            home,
            server,
        })
    }

    /// The same after a good end of the server and a new start.
    pub(crate) fn restarted(self) -> Kubectl {
        let (status, stderr) = self.server.stop();
        assert!(status.success(), "{stderr}");
        let server = self.home.serve();
        Kubectl { server, ..self }
    }

    /// A command, written as on a command line; single quotes keep words together.
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

    /// What kubectl prints; it must succeed.
    pub(crate) fn gives(&self, line: &str) -> String {
        self.gives_for(line, "")
    }

    /// What kubectl prints for an input; it must succeed.
    pub(crate) fn gives_for(&self, line: &str, input: &str) -> String {
        let output = self.run(line, input);
        assert!(output.status.success(), "kubectl {line}: {}", output.all());
        output.stdout
    }

    /// kubectl succeeds, and all these words are in what it prints, however it spaces them.
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

    /// Asks until the words are in the answer, and gives that.
    pub(crate) fn until(&self, line: &str, wanted: &str) -> String {
        self.until_so(line, wanted, true)
    }

    /// Asks until the words are in the answer no more.
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

    /// kubectl fails and says why.
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

/// Columns are padded and lines wrapped as kubectl likes; only the words count.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            match words.last_mut() {
                // A quote in the middle of a word goes on with it.
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

/// Whether the quoted part starts a word.
fn line_breaks_before(line: &str, index: usize) -> bool {
    let before = line.split('\'').nth(index - 1).unwrap_or_default();
    before.is_empty() || before.ends_with(char::is_whitespace)
}
