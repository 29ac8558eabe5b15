//! A session: the page, what it needs, and its run.

use crate::compare::{matches, missing};
use crate::page::{Action, Manner, Step, steps};
use crate::port::Port;
use crate::shell::{Broken, Shell, quoted, read};
use crate::tools::{peers, root};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time for one block.
const LIMIT: Duration = Duration::from_secs(180);
/// How long something that is expected may take to appear.
const EVENTUALLY: Duration = Duration::from_secs(60);
/// Folders of the repository that a session sees.
const LINKED: &[&str] = &["crates", "deploy", "docs", "examples", "tests"];

/// A page to run. See the crate's documentation for the form of pages.
#[derive(Clone, Debug)]
pub struct Session {
    page: PathBuf,
    programs: BTreeMap<String, PathBuf>,
    replaced: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    path: Vec<PathBuf>,
    /// Reserved until the session is over.
    ports: Vec<Arc<Port>>,
}

/// What was run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of blocks, or commands of `console` blocks, that ran.
    pub ran: usize,
    /// Blocks that were not run.
    pub skipped: Vec<Skipped>,
}

/// A block that was not run.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The line of the page.
    pub line: usize,
    /// The reason given on the page.
    pub reason: String,
}

/// A step that did not go as the page says.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The page.
    pub page: PathBuf,
    /// The line where the block begins.
    pub line: usize,
    /// What is wrong, with the commands and their output.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.page.display(), self.line, self.what)
    }
}

impl std::error::Error for Failure {}

/// A program in the background.
struct Running {
    line: usize,
    pid: String,
    output: PathBuf,
}

impl Session {
    /// Takes a page. A relative path begins at the folder of the tested crate.
    pub fn new(page: impl AsRef<Path>) -> Session {
        let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        Session {
            page: Path::new(&crate_folder).join(page),
            programs: BTreeMap::new(),
            replaced: Vec::new(),
            environment: Vec::new(),
            path: Vec::new(),
            ports: Vec::new(),
        }
    }

    /// Runs this binary for `cargo run -p NAME` and for the command NAME.
    #[must_use]
    pub fn program(mut self, name: &str, binary: impl Into<PathBuf>) -> Session {
        self.programs.insert(name.to_owned(), binary.into());
        self
    }

    /// Replaces a port of the page with a free one, in commands, files and expected output.
    #[must_use]
    pub fn port(mut self, port: u16) -> Session {
        let free = Port::free();
        let number = free.number.to_string();
        self.ports.push(Arc::new(free));
        self.replace(&port.to_string(), &number)
    }

    /// Replaces a text of the page where it is a whole word, in commands, files and expected output. For example, the address of a
    /// database.
    #[must_use]
    pub fn replace(mut self, text: &str, by: &str) -> Session {
        self.replaced.push((text.to_owned(), by.to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Session {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a folder in front of PATH.
    #[must_use]
    pub fn path(mut self, folder: impl Into<PathBuf>) -> Session {
        self.path.push(folder.into());
        self
    }

    /// Runs the page, and panics with a description of the first step that fails.
    pub fn run(self) -> Report {
        match self.try_run() {
            Ok(report) => report,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Runs the page.
    pub fn try_run(self) -> Result<Report, Failure> {
        let io = |error: std::io::Error| self.failure(0, error.to_string());
        let text = std::fs::read_to_string(&self.page).map_err(io)?;
        let steps = steps(&text).map_err(|(line, what)| self.failure(line, what))?;
        let place = tempfile::tempdir().map_err(io)?;
        let cwd = place.path().join("home");
        let shell = self.open(place.path(), &cwd).map_err(io)?;
        let mut run = Run {
            session: &self,
            shell,
            cwd: &cwd,
            background: Vec::new(),
            report: Report::default(),
        };
        for step in &steps {
            run.step(step)?;
        }
        run.end()
    }

    fn failure(&self, line: usize, what: String) -> Failure {
        let page = self.page.clone();
        Failure { page, line, what }
    }

    /// Makes the folders and starts bash.
    fn open(&self, place: &Path, cwd: &Path) -> std::io::Result<Shell> {
        let (bin, steps) = (place.join("bin"), place.join("steps"));
        for folder in [cwd, &bin, &steps] {
            std::fs::create_dir_all(folder)?;
        }
        for folder in LINKED {
            std::os::unix::fs::symlink(root().join(folder), cwd.join(folder))?;
        }
        for (name, binary) in &self.programs {
            std::os::unix::fs::symlink(binary, bin.join(name))?;
        }
        self.write_cargo(&bin)?;
        let old = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.path.iter().cloned().chain([bin, peers()]);
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&old)))
            .map_err(std::io::Error::other)?;
        let mut environment = vec![
            ("HOME".to_owned(), cwd.display().to_string()),
            ("PATH".to_owned(), path.to_string_lossy().into_owned()),
            ("TERM".to_owned(), "dumb".to_owned()),
        ];
        environment.extend(self.environment.iter().cloned());
        Shell::start(cwd, steps, &environment)
    }

    /// Writes a command `cargo` whose `cargo run -p NAME` runs a given binary.
    fn write_cargo(&self, bin: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let mut cases = String::new();
        for (name, binary) in &self.programs {
            let _ = writeln!(cases, "{name}) exec {} \"$@\" ;;", quoted(binary));
        }
        let script = format!(
            "#!/bin/bash\nwhile [ $# -gt 0 ]; do case $1 in\n  -p|--package) name=$2; shift 2 ;;\n  --) shift; break ;;\n  *) shift ;;\nesac; done\n\
             case $name in\n{cases}*) echo \"cargo: the test of this page has no program $name\" >&2; exit 101 ;;\nesac\n"
        );
        let file = bin.join("cargo");
        std::fs::write(&file, script)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
    }

    fn replaced(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.replaced {
            text = replace_words(&text, from, to);
        }
        text
    }
}

/// Replaces a text where it is not part of a longer word.
fn replace_words(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    let word = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
    while let Some(at) = rest.find(from) {
        let before = rest[..at]
            .chars()
            .next_back()
            .or_else(|| replaced.chars().next_back());
        let after = rest[at + from.len()..].chars().next();
        replaced.push_str(&rest[..at]);
        replaced.push_str(if word(before) || word(after) {
            from
        } else {
            to
        });
        rest = &rest[at + from.len()..];
    }
    replaced.push_str(rest);
    replaced
}

/// A session in progress.
struct Run<'a> {
    session: &'a Session,
    shell: Shell,
    cwd: &'a Path,
    background: Vec<Running>,
    report: Report,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Failure> {
        let line = step.line;
        match &step.action {
            Action::Skip { reason } => {
                let reason = reason.clone();
                self.report.skipped.push(Skipped { line, reason });
                Ok(())
            }
            Action::Write { name, text } => {
                let text = self.session.replaced(text);
                let written = std::fs::write(self.cwd.join(name), text);
                written.map_err(|error| self.session.failure(line, format!("{name}: {error}")))
            }
            Action::Run {
                manner,
                commands,
                expected,
            } => {
                self.report.ran += 1;
                let commands = self.session.replaced(commands);
                let expected = expected.as_ref().map(|text| self.session.replaced(text));
                let expected = expected.as_deref();
                let done = match manner {
                    Manner::Background => self.background(line, &commands, expected),
                    Manner::Eventually => self.eventually(&commands, expected),
                    Manner::Succeeds => self.once(&commands, expected, false),
                    Manner::Fails => self.once(&commands, expected, true),
                };
                done.map_err(|what| self.failure(line, &what))
            }
        }
    }

    /// Runs commands once; returns a description of what went wrong.
    fn once(&mut self, commands: &str, expected: Option<&str>, fails: bool) -> Result<(), String> {
        let (ended, output) = self.shell.run(commands, LIMIT);
        let shown = || format!("\n--- commands\n{commands}--- output\n{output}");
        let why = match ended {
            Err(Broken::TooLong) => "the commands did not end".to_owned(),
            Err(Broken::Exited) => "the commands ended the shell".to_owned(),
            Ok(ended) if fails && ended.last == 0 => "the last command must fail".to_owned(),
            Ok(ended) if !fails && ended.failed != 0 => {
                format!("a command failed with {}", ended.failed)
            }
            Ok(_) => match expected {
                Some(expected) if !matches(expected, &output) => {
                    return Err(format!(
                        "another output was expected{}--- expected\n{expected}",
                        shown()
                    ));
                }
                _ => return Ok(()),
            },
        };
        Err(why + &shown())
    }

    fn eventually(&mut self, commands: &str, expected: Option<&str>) -> Result<(), String> {
        let start = Instant::now();
        loop {
            match self.once(commands, expected, false) {
                Err(_) if start.elapsed() < EVENTUALLY => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                done => return done,
            }
        }
    }

    fn background(
        &mut self,
        line: usize,
        commands: &str,
        expected: Option<&str>,
    ) -> Result<(), String> {
        let Some((output, pid)) = self.shell.background(commands) else {
            return Err("the commands could not be started".to_owned());
        };
        let start = Instant::now();
        let expected = expected.unwrap_or_default();
        while let [first, ..] = &missing(expected, &read(&output))[..] {
            if start.elapsed() > EVENTUALLY {
                return Err(format!(
                    "the line {first:?} did not appear\n--- commands\n{commands}--- output\n{}",
                    read(&output)
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.background.push(Running { line, pid, output });
        Ok(())
    }

    fn failure(&self, line: usize, what: &str) -> Failure {
        let mut what = what.to_owned();
        for running in &self.background {
            let output = read(&running.output);
            let _ = write!(
                what,
                "\n--- output of the program of line {}\n{output}",
                running.line
            );
        }
        self.session.failure(line, what)
    }

    /// Ends the programs in the background, the last one first. A block that runs in the background must exit with 0, unless the
    /// session ended it before.
    fn end(mut self) -> Result<Report, Failure> {
        while let Some(running) = self.background.pop() {
            let pid = &running.pid;
            let commands = format!("if kill -INT -- -{pid} 2>/dev/null; then wait {pid}; fi");
            if let Err(what) = self.once(&commands, None, false) {
                let output = read(&running.output);
                let what = format!("the program did not end cleanly: {what}{output}");
                return Err(self.failure(running.line, &what));
            }
        }
        Ok(self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::replace_words;

    #[test]
    fn ports_are_replaced_as_whole_words() {
        let text = "--port 8443 https://h:8443/ 18443 84431";
        assert_eq!(
            replace_words(text, "8443", "1"),
            "--port 1 https://h:1/ 18443 84431"
        );
    }
}
