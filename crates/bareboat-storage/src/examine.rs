//! Examines a log while servers use it: whether it is complete, what it contains, and which settings its engine has.
//!
//! An examination changes nothing. Stored values are compared with digests as they are; encrypted values are not
//! decrypted.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::backend::{Backend, BackendError, BackendStats, Stop};
use crate::batch::Mark;

mod walk;

use walk::Walk;

/// A setting of an engine that matters for durability, or a number that shows how the engine does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of the setting in the engine.
    pub name: String,
    /// The current value of the setting.
    pub value: String,
    /// What to do about the setting, if it is wrong.
    pub advice: Option<String>,
}

impl Setting {
    /// Returns a setting that needs no change.
    pub fn good(name: &str, value: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
            advice: None,
        }
    }

    /// Returns a setting with `advice`, unless it is `good`.
    pub fn judged(name: &str, value: impl Into<String>, good: bool, advice: &str) -> Self {
        Self {
            advice: (!good).then(|| advice.to_owned()),
            ..Self::good(name, value)
        }
    }

    /// Returns how far compaction has deleted what the history no longer needs. `left` is the number of records between
    /// `swept` and the floor, which compaction has not looked at yet.
    pub fn swept(swept: u64, left: u64) -> Self {
        let value = match left {
            0 => format!("up to revision {swept}"),
            left => format!("up to revision {swept}, {left} records are left"),
        };
        let advice = "compaction does not go on: look for warnings of the servers, or run bareboat doctor --repair";
        Self::judged("swept", value, left <= BACKLOG, advice)
    }
}

/// The most records that compaction leaves for later: it begins when the floor is raised, and takes seconds.
const BACKLOG: u64 = 100_000;

/// A problem that an examination found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A description of the problem.
    pub problem: String,
    /// What to do about the problem.
    pub advice: String,
}

/// The space that a resource takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of live objects.
    pub objects: u64,
    /// The bytes of the keys and values of these objects.
    pub bytes: u64,
    /// The number of records in the history above the floor.
    pub history: u64,
    /// The bytes of the keys and values of these records.
    pub history_bytes: u64,
}

/// The result of an examination.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Examination {
    /// The end of the log.
    pub end: Mark,
    /// The floor.
    pub floor: u64,
    /// When the oldest history was written, if there is history and the engine knows its time.
    pub history_since: Option<SystemTime>,
    /// The number of batches whose digest was compared.
    pub batches: u64,
    /// The size of the log in its engine.
    pub stats: BackendStats,
    /// The space that each resource takes.
    pub resources: BTreeMap<String, Share>,
    /// The space that each namespace takes, largest first; at most [`NAMESPACES`]. Objects without a namespace are not
    /// included.
    pub namespaces: Vec<(String, Share)>,
    /// The largest objects, as `resource key` with their bytes, largest first.
    pub largest: Vec<(String, u64)>,
    /// The objects with the most records in the history, as `resource key` with their number, most first.
    pub busiest: Vec<(String, u64)>,
    /// The settings of the engine.
    pub settings: Vec<Setting>,
    /// The problems that were found; at most [`MOST`].
    pub findings: Vec<Finding>,
    /// Whether there are more problems than `findings` contains.
    pub more_findings: bool,
}

/// The maximum number of namespaces.
pub const NAMESPACES: usize = 20;

/// The maximum number of findings.
pub const MOST: usize = 100;

/// The advice for damage.
const RESTORE: &str = "restore a backup";

impl Examination {
    fn add(&mut self, problem: impl Into<String>, advice: &str) {
        if self.findings.len() >= MOST {
            self.more_findings = true;
            return;
        }
        self.findings.push(Finding {
            problem: problem.into(),
            advice: advice.to_owned(),
        });
    }
}

/// Examines `log`.
pub fn examine(log: &dyn Backend) -> Result<Examination, BackendError> {
    // If the floor is raised in the meantime, the records that were read are incomplete.
    let mut tries = 0;
    loop {
        tries += 1;
        let begun = log.mark()?;
        let floor = log.compacted().min(begun.last);
        let found = attempt(log, floor)?;
        if tries == 3 || log.compacted() == floor && found.end.epoch == begun.epoch {
            return Ok(found);
        }
    }
}

fn attempt(log: &dyn Backend, floor: u64) -> Result<Examination, BackendError> {
    let mut found = Examination {
        floor,
        ..Examination::default()
    };
    if !log.is_complete()? {
        found.add("a restore into this store was interrupted", "run it again");
        found.end = log.mark()?;
        return Ok(found);
    }
    let mut places = Vec::new();
    if let Err(error) = log.places(&mut |place| places.push(place)) {
        found.add(told(error)?, RESTORE);
    }
    let mut walk = Walk::new(floor, places);
    let read = log.dump(floor, &mut |record| walk.see(&record), &Stop::default());
    let read = read.map_err(told);
    walk.finish(&mut found);
    match read {
        Ok(end) => {
            found.end = end;
            if let Some(next) = walk.missing(end.last) {
                found.add(format!("the log ends before revision {next}"), RESTORE);
            }
        }
        Err(problem) => {
            found.add(problem?, RESTORE);
            found.end = log.mark()?;
        }
    }
    let history = log.history(&mut |part| {
        found.history_since.get_or_insert(part.at);
    });
    if let Err(error) = history {
        found.add(told(error)?, RESTORE);
    }
    found.stats = log.stats();
    found.settings = log.settings()?;
    let wrong: Vec<Setting> = found.settings.clone();
    for setting in wrong {
        if let Some(advice) = &setting.advice {
            found.add(format!("{} is {}", setting.name, setting.value), advice);
        }
    }
    Ok(found)
}

/// Returns the text of an error about the content of the log. Other errors are returned as errors.
fn told(error: BackendError) -> Result<String, BackendError> {
    let BackendError::Failed(source) = &error else {
        return Err(error);
    };
    let mut text = source.to_string();
    let mut cause = source.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    Ok(text)
}
