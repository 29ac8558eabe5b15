//! Server processes: lifetime, processor time and memory, read from /proc. `server` knows how to start and reach them.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Kernel clock ticks per second in /proc/PID/stat; 100 on every Linux that Rust supports.
const TICKS: u64 = 100;

/// A child process that is killed when dropped.
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

    /// Returns an error if the process has ended.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} exited early: {status}", self.name);
        }
        Ok(())
    }

    /// Returns the processor time used so far.
    pub(crate) fn cpu(&self) -> Result<Cpu> {
        let pid = self.child.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
            .with_context(|| format!("{} has exited", self.name))?;
        // The name in the second field may contain blanks and parentheses.
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

    /// Returns the resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// Returns the peak resident memory since the start or since [`Self::forget_peak`], in bytes.
    pub(crate) fn peak(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    /// Resets the peak to the present value.
    pub(crate) fn forget_peak(&self) -> Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
            .with_context(|| format!("the peak of {} cannot be set back", self.name))
    }

    fn memory(&self, field: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .with_context(|| format!("{} has exited", self.name))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.map(|kib| kib * 1024)
            .with_context(|| format!("{} has no {field}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time from two sources: `coarse` counts all threads in steps of 10 ms, `fine` is exact but loses threads
/// that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    coarse: Duration,
    fine: Duration,
}

impl Cpu {
    /// Adds another process.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            coarse: self.coarse + other.coarse,
            fine: self.fine + other.fine,
        }
    }

    /// Returns the time used since an earlier reading: the exact value, unless a thread ended in between.
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
