//! Measures the shelf with many members, and beside it Clusterpedia's table with the same objects on the same SQLite.
//!
//! ```text
//! million fill DIRECTORY [MEMBERS] [OBJECTS]     fills both files
//! million ask DIRECTORY                          opens the shelf again and asks both
//! ```

mod objects;
mod ours;
mod theirs;

use objects::Fleet;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["fill", directory, rest @ ..] => {
            let number = |at: usize, usual: usize| {
                let given = rest.get(at).and_then(|text| text.parse().ok());
                given.unwrap_or(usual)
            };
            let fleet = Fleet {
                members: number(0, 100),
                objects: number(1, 10_000),
            };
            fill(Path::new(directory), &fleet)
        }
        ["ask", directory] => ask(Path::new(directory)),
        _ => {
            Err("usage: million fill DIRECTORY [MEMBERS] [OBJECTS] | million ask DIRECTORY".into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("million: {error}");
            ExitCode::FAILURE
        }
    }
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn fill(directory: &Path, fleet: &Fleet) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let total = fleet.members * fleet.objects;
    let (took, ()) = timed(|| ours::fill(directory, fleet))?;
    report(
        "shelf: fill",
        took,
        &format!("{total} objects, {} MB", memory()),
    );
    let (took, ()) = timed(|| theirs::fill(directory, fleet))?;
    report("table: fill", took, &format!("{total} objects"));
    for name in ["fleet.db", "resources.db"] {
        let size = std::fs::metadata(directory.join(name))?.len() >> 20;
        println!("{name}: {size} MiB on disk");
    }
    Ok(())
}

fn ask(directory: &Path) -> Result<()> {
    ours::ask(directory)?;
    theirs::ask(directory)
}

/// Runs something and returns how long it took.
fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let begun = Instant::now();
    let done = run()?;
    Ok((begun.elapsed(), done))
}

/// Runs something several times, and prints the median.
fn median(what: &str, times: usize, mut run: impl FnMut(usize) -> Result<usize>) -> Result<()> {
    let mut all = Vec::new();
    let mut found = 0;
    for round in 0..times {
        let (took, count) = timed(|| run(round))?;
        all.push(took);
        found = count;
    }
    all.sort();
    let middle = all.get(all.len() / 2).copied().unwrap_or_default();
    report(what, middle, &format!("{found} rows, median of {times}"));
    Ok(())
}

fn report(what: &str, took: Duration, more: &str) {
    println!(
        "{what:<44} {:>12.3} ms   {more}",
        took.as_secs_f64() * 1000.0
    );
}

/// Returns the memory of this process in MB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    number.unwrap_or(0) / 1024
}
