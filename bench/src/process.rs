//! Processes of a server: their life, their processor time and their memory, read from /proc.
//! What runs in them and how it is reached is the business of `server`.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Kernel clock ticks per second in /proc/PID/stat; 100 on every Linux that Rust runs on.
const TICKS: u64 = 100;

/// A child process that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
}

impl Process {
    /// Starts a program with its output in `log`.
    pub(crate) fn spawn(name: &'static str, command: &mut Command, log: &Path) -> Result<Self> {
        let out = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let err = out.try_clone()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child })
    }

    /// An error when the process has ended.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended early: {status}", self.name);
        }
        Ok(())
    }

    /// Processor time used so far.
    pub(crate) fn cpu(&self) -> Result<Cpu> {
        let pid = self.child.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
            .with_context(|| format!("{} is gone", self.name))?;
        // The name in the second field may hold anything, blanks and parentheses too.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut fields = after_name.split_ascii_whitespace().skip(11);
        let mut ticks = || {
            fields
                .next()
                .and_then(|field| field.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let coarse = Duration::from_nanos((ticks() + ticks()) * (1_000_000_000 / TICKS));
        let mut fine = Duration::ZERO;
        for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            let line = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let run = line
                .split_ascii_whitespace()
                .next()
                .and_then(|field| field.parse().ok());
            fine += Duration::from_nanos(run.unwrap_or(0));
        }
        Ok(Cpu { coarse, fine })
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .with_context(|| format!("{} is gone", self.name))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.map(|kib| kib * 1024)
            .with_context(|| format!("{} has no VmRSS", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Failing means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time, read twice: `coarse` counts all threads in steps of 10 ms, `fine` is exact but
/// forgets threads that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    coarse: Duration,
    fine: Duration,
}

impl Cpu {
    /// Both processes together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            coarse: self.coarse + other.coarse,
            fine: self.fine + other.fine,
        }
    }

    /// What was used since an earlier reading: the exact figure, unless a thread that ended took
    /// its share with it.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        let coarse = self.coarse.saturating_sub(earlier.coarse);
        let fine = self.fine.saturating_sub(earlier.fine);
        if fine + Duration::from_millis(40) < coarse {
            coarse
        } else {
            fine
        }
    }
}
