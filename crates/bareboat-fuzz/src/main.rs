//! Mutates seeds and feeds them to every target, for a while each, on a stable compiler.
//!
//! `cargo run -p bareboat-fuzz -- --seconds 10`. The same `--seed` gives the same inputs. An input that breaks a rule is
//! written to `fuzz/artifacts/TARGET`; run it again with `--input FILE`.

use anyhow::{Context as _, Result, bail};
use bareboat_fuzz::mutate::Mutator;
use bareboat_fuzz::{TARGETS, Target};
use clap::Parser;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An input that takes longer is a finding.
const LONGEST: Duration = Duration::from_secs(20);
/// A process that needs more is a finding.
const MOST_MEMORY: usize = 3 << 30;

#[derive(Parser)]
struct Args {
    /// Run each target for this long
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Where the sequence of inputs begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run a target on this file only
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Write every input to fuzz/artifacts/TARGET/last before it is run, for a target that ends the process
    #[arg(long)]
    trace: bool,
    /// The targets to run; all when none is named
    targets: Vec<String>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for name in &args.targets {
        if !TARGETS.iter().any(|target| target.name == name) {
            bail!("there is no target {name}");
        }
    }
    let mut found = 0;
    for target in TARGETS {
        if !args.targets.is_empty() && !args.targets.iter().any(|name| name == target.name) {
            continue;
        }
        if let Some(file) = &args.input {
            let input =
                fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
            println!("{}: accepted: {}", target.name, (target.run)(&input));
            continue;
        }
        found += fuzz(target, &args, &root)?;
    }
    match found {
        0 => Ok(()),
        count => bail!(
            "{count} inputs broke a rule; they are in {}",
            root.join("artifacts").display()
        ),
    }
}

/// Runs a target for a while; returns how many findings there were.
fn fuzz(target: &Target, args: &Args, root: &Path) -> Result<usize> {
    let mut seeds = read_all(&root.join("seeds").join(target.name))?;
    if seeds.is_empty() {
        bail!("{} has no seeds", target.name);
    }
    // What coverage-guided runs have found here before.
    seeds.extend(read_all(&root.join("corpus").join(target.name))?);
    let artifacts = root.join("artifacts").join(target.name);
    let running = watchdog(target.name, &artifacts);
    let mut mutator = Mutator::new(args.seed, seeds.clone());
    let mut untouched = seeds.into_iter();
    let (began, limit) = (Instant::now(), Duration::from_secs(args.seconds));
    let (mut runs, mut accepted, mut findings) = (0_u64, 0_u64, 0);
    loop {
        let input = match untouched.next() {
            Some(seed) => seed,
            None if began.elapsed() < limit => mutator.input(),
            None => break,
        };
        if args.trace {
            save(&artifacts, "last", &input)?;
        }
        set(&running, Some((Instant::now(), input.clone())));
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        set(&running, None);
        runs += 1;
        match outcome {
            Ok(true) => {
                accepted += 1;
                mutator.keep(input);
            }
            Ok(false) => {}
            Err(_) => {
                let path = save(&artifacts, &name_of("panic", &input), &input)?;
                eprintln!("{}: broke a rule: {}", target.name, path.display());
                findings += 1;
                if findings == 10 {
                    break;
                }
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{:<12} {runs:>9} inputs, {accepted:>8} accepted, {findings} findings in {seconds:.1} s",
        target.name
    );
    Ok(findings)
}

/// What a target runs at the moment, and since when.
type Running = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Ends the process when an input takes too long or too much memory, and saves the input.
fn watchdog(name: &'static str, artifacts: &Path) -> Running {
    let artifacts = artifacts.to_owned();
    let running = Running::default();
    let watched = Arc::downgrade(&running);
    std::thread::spawn(move || {
        while let Some(running) = watched.upgrade() {
            let slot = running.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((since, input)) = &*slot {
                let slow = since.elapsed() > LONGEST;
                if slow || memory() > MOST_MEMORY {
                    let why = if slow { "slow" } else { "large" };
                    let path = save(&artifacts, &name_of(why, input), input);
                    eprintln!("{name}: {why}: {path:?}");
                    std::process::abort();
                }
            }
            drop(slot);
            drop(running);
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    running
}

fn set(running: &Running, input: Option<(Instant, Vec<u8>)>) {
    *running.lock().unwrap_or_else(PoisonError::into_inner) = input;
}

/// The resident memory of this process; 0 where that is not known.
fn memory() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|text| text.parse().ok());
    resident.unwrap_or(0_usize).saturating_mul(4096)
}

fn read_all(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).with_context(|| format!("cannot read {}", path.display())))
        .collect()
}

fn name_of(why: &str, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    format!("{why}-{:016x}", hasher.finish())
}

fn save(folder: &Path, name: &str, input: &[u8]) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(name);
    fs::write(&path, input)?;
    Ok(path)
}
