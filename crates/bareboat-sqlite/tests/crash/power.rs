//! Tests of power failures: all writes of the child are recorded, and the disk is rebuilt as it may have been at some
//! moment.
//!
//! Synced data is present. Unsynced data may be partly present: the first writes of each file, or any of them. The last
//! of them may be torn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::check::Ledger;
use crate::child::Work;
use crate::preload::{self, Dice};

#[test]
fn every_acknowledged_write_survives_a_power_cut() {
    let Some(library) = preload::library() else {
        return;
    };
    let (time, mut dice) = preload::plan();
    let start = Instant::now();
    let (mut runs, mut cuts) = (0, 0);
    while runs < 2 || start.elapsed() < time {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let journal = folder.path().join("journal");
        let environment = [
            ("LD_PRELOAD", library.display().to_string()),
            ("TORTURE_DIR", data.display().to_string()),
            ("TORTURE_RECORD", journal.display().to_string()),
        ];
        let answers = 100 + dice.roll(500);
        Work::start(&data.join("state.db"), runs, &environment).killed_after(answers);
        let journal = Journal::read(&journal);
        assert!(journal.syncs > 10, "only {} syncs", journal.syncs);
        cuts += cut_here_and_there(&journal, &mut dice, folder.path());
        runs += 1;
    }
    println!("{cuts} power cuts in {runs} runs");
}

/// Simulates power failures at several moments of a run.
fn cut_here_and_there(journal: &Journal, dice: &mut Dice, folder: &Path) -> u64 {
    const CUTS: u64 = 12;
    let mut at: Vec<usize> = (0..CUTS)
        .map(|_| dice.roll(journal.steps.len() as u64) as usize)
        .collect();
    at.sort_unstable();
    let mut disk = Disk::default();
    let mut said = String::new();
    let mut done = 0;
    for (number, cut) in at.into_iter().enumerate() {
        for step in &journal.steps[done..cut] {
            match step {
                Step::Said(text) => said.push_str(text),
                step => disk.take(step),
            }
        }
        done = cut;
        let mut ledger = Ledger::default();
        // The last line may be incomplete; then it does not count.
        let heard = said.rsplit_once('\n').map_or("", |(heard, _)| heard);
        heard.lines().for_each(|line| ledger.hear(line));
        let place = folder.join(format!("cut-{number}"));
        std::fs::create_dir(&place).unwrap();
        disk.after_a_cut(dice, &place);
        ledger.check(&place.join("state.db"));
        std::fs::remove_dir_all(&place).unwrap();
    }
    CUTS
}

/// The recorded operations, in order.
pub(crate) struct Journal {
    pub(crate) steps: Vec<Step>,
    syncs: usize,
}

pub(crate) enum Step {
    Name(u32, String),
    Write(u32, u64, Vec<u8>),
    Truncate(u32, u64),
    Sync(u32),
    Remove(u32),
    Said(String),
}

impl Journal {
    pub(crate) fn read(path: &Path) -> Journal {
        let bytes = std::fs::read(path).unwrap();
        let mut rest = bytes.as_slice();
        let mut steps = Vec::new();
        // The child was killed: the last record may be incomplete.
        while let Some((head, behind)) = rest.split_at_checked(21) {
            let file = u32::from_ne_bytes(head[1..5].try_into().unwrap());
            let offset = u64::from_ne_bytes(head[5..13].try_into().unwrap());
            let length = u64::from_ne_bytes(head[13..21].try_into().unwrap());
            let Some((data, behind)) = behind.split_at_checked(length as usize) else {
                break;
            };
            let text = || String::from_utf8_lossy(data).into_owned();
            steps.push(match head[0] {
                b'N' => Step::Name(file, text()),
                b'W' => Step::Write(file, offset, data.to_vec()),
                b'T' => Step::Truncate(file, offset),
                b'S' => Step::Sync(file),
                b'U' => Step::Remove(file),
                b'A' => Step::Said(text()),
                other => panic!("{other} is no record"),
            });
            rest = behind;
        }
        let syncs = steps.iter().filter(|s| matches!(s, Step::Sync(_))).count();
        Journal { steps, syncs }
    }
}

/// The files of a disk.
#[derive(Default)]
pub(crate) struct Disk(BTreeMap<u32, File>);

#[derive(Default)]
struct File {
    name: String,
    there: bool,
    synced: Vec<u8>,
    /// The writes since the last sync: bytes at an offset, or a new length.
    pending: Vec<(u64, Option<Vec<u8>>)>,
}

impl Disk {
    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Name(file, name) => self.0.entry(*file).or_default().name = name.clone(),
            Step::Write(file, offset, data) => {
                let file = self.0.entry(*file).or_default();
                file.there = true;
                file.pending.push((*offset, Some(data.clone())));
            }
            Step::Truncate(file, length) => {
                let file = self.0.entry(*file).or_default();
                file.there = true;
                file.pending.push((*length, None));
            }
            Step::Sync(file) => {
                let file = self.0.entry(*file).or_default();
                for step in std::mem::take(&mut file.pending) {
                    apply(&mut file.synced, &step, usize::MAX);
                }
            }
            Step::Remove(file) => {
                let file = self.0.entry(*file).or_default();
                *file = File {
                    name: std::mem::take(&mut file.name),
                    ..File::default()
                };
            }
            Step::Said(_) => {}
        }
    }

    /// Makes everything durable that was written so far.
    pub(crate) fn sync_all(&mut self) {
        let files: Vec<u32> = self.0.keys().copied().collect();
        for file in files {
            self.take(&Step::Sync(file));
        }
    }

    /// Writes the files to `place` as they may be after a power failure.
    pub(crate) fn after_a_cut(&self, dice: &mut Dice, place: &Path) {
        let any = dice.roll(2) == 0;
        for file in self.0.values().filter(|file| file.there) {
            // Shared memory is created again, and the other files have no content.
            if ["-shm", ".lock", ".reserve"]
                .iter()
                .any(|end| file.name.ends_with(end))
            {
                continue;
            }
            let mut bytes = file.synced.clone();
            let kept = dice.roll(file.pending.len() as u64 + 1) as usize;
            for (at, step) in file.pending.iter().enumerate() {
                let arrived = match (any, &step.1) {
                    (true, Some(_)) => dice.roll(2) == 0,
                    _ => at < kept,
                };
                if arrived {
                    // A sector is always written completely.
                    let torn = at + 1 == kept && dice.roll(2) == 0;
                    let most = match torn {
                        true => dice.roll(9) as usize * 512,
                        false => usize::MAX,
                    };
                    apply(&mut bytes, step, most);
                }
            }
            std::fs::write(place.join(&file.name), bytes).unwrap();
        }
    }
}

fn apply(bytes: &mut Vec<u8>, (offset, data): &(u64, Option<Vec<u8>>), most: usize) {
    let offset = *offset as usize;
    match data {
        None => bytes.resize(offset, 0),
        Some(data) => {
            let data = &data[..data.len().min(most)];
            if bytes.len() < offset + data.len() {
                bytes.resize(offset + data.len(), 0);
            }
            bytes[offset..offset + data.len()].copy_from_slice(data);
        }
    }
}
