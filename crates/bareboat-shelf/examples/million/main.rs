//! Measures the shelf with many members, and beside it Clusterpedia's table, indexes and queries with the same objects, on the same
//! SQLite and on PostgreSQL.
//!
//! ```text
//! million fill DIRECTORY [MEMBERS] [OBJECTS] [--postgres URL]     fills the shelf and the tables
//! million ask DIRECTORY [--postgres URL]                          opens them again, asks all, and prints a table
//! ```

mod objects;
mod ours;
mod postgres;
mod questions;
mod sqlite;

use objects::Fleet;
use questions::{Engine, QUESTIONS, Question};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What was asked for on the command line.
struct Arguments {
    directory: PathBuf,
    fleet: Fleet,
    postgres: Option<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match (words.first().map(String::as_str), arguments(&words)) {
        (Some("fill"), Some(arguments)) => fill(&arguments),
        (Some("ask"), Some(arguments)) => ask(&arguments),
        _ => Err("usage: million fill|ask DIRECTORY [MEMBERS] [OBJECTS] [--postgres URL]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("million: {error}");
            ExitCode::FAILURE
        }
    }
}

fn arguments(words: &[String]) -> Option<Arguments> {
    let mut plain = Vec::new();
    let mut postgres = None;
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--postgres" => postgres = Some(words.next()?.clone()),
            word => plain.push(word),
        }
    }
    let number = |at: usize, usual: usize| match plain.get(at) {
        Some(text) => text.parse().ok(),
        None => Some(usual),
    };
    Some(Arguments {
        directory: PathBuf::from(plain.first()?),
        fleet: Fleet {
            members: number(1, 100)?,
            objects: number(2, 10_000)?,
        },
        postgres,
    })
}

fn fill(arguments: &Arguments) -> Result<()> {
    let (directory, fleet) = (&arguments.directory, &arguments.fleet);
    std::fs::create_dir_all(directory)?;
    let total = fleet.members * fleet.objects;
    let report = |what: &str, begun: (Instant, Duration), more: &str| {
        let (wall, cpu) = (begun.0.elapsed(), cpu() - begun.1);
        let each = cpu.as_secs_f64() * 1e6 / total as f64;
        println!(
            "{what}: {total} objects in {:.1} s, {:.1} s of CPU in this process, {each:.1} µs per object{more}",
            wall.as_secs_f64(),
            cpu.as_secs_f64(),
        );
    };
    // What it takes to compute the objects is no part of any engine.
    let begun = (Instant::now(), cpu());
    for cluster in 0..fleet.members {
        for number in 0..fleet.objects {
            std::hint::black_box(objects::object(cluster, number).to_json());
        }
    }
    report("the objects themselves", begun, "");
    let begun = (Instant::now(), cpu());
    ours::fill(directory, fleet)?;
    let more = format!(
        ", {} MB of memory, {} MB on disk",
        memory(),
        size(&directory.join("fleet.db"))
    );
    report("shelf", begun, &more);
    let begun = (Instant::now(), cpu());
    sqlite::fill(directory, fleet)?;
    let more = format!(", {} MB on disk", size(&directory.join("resources.db")));
    report("Clusterpedia's table on SQLite", begun, &more);
    if let Some(url) = &arguments.postgres {
        let begun = (Instant::now(), cpu());
        let disk = postgres::fill(url, fleet)?;
        let more = format!(", {disk} MB on disk");
        report("Clusterpedia's table on PostgreSQL", begun, &more);
    }
    Ok(())
}

fn ask(arguments: &Arguments) -> Result<()> {
    let directory = &arguments.directory;
    let (opened, mut shelf) = timed(|| ours::Ours::open(directory))?;
    println!(
        "shelf: open again after {:.1} ms, {} MB of memory",
        millis(opened),
        memory()
    );
    let (began, mut table) = timed(|| sqlite::Sqlite::open(directory))?;
    println!(
        "Clusterpedia's table on SQLite: open again, with the versions of all objects, after {:.1} ms",
        millis(began)
    );
    let mut database = match &arguments.postgres {
        Some(url) => {
            let (began, database) = timed(|| postgres::Postgres::open(url))?;
            println!(
                "Clusterpedia's table on PostgreSQL: open again, with the versions of all objects, after {:.1} ms",
                millis(began)
            );
            Some(database)
        }
        None => None,
    };
    let members = shelf.members();
    let before = memory();
    let mut rows = Vec::new();
    for (what, target, times, question) in QUESTIONS {
        let own = median(&mut shelf, *question, *times, members)?;
        let sqlite = median(&mut table, *question, (*times).min(20), members)?;
        let postgres = match &mut database {
            Some(database) => median(database, *question, (*times).min(20), members)?,
            None => "not asked".to_owned(),
        };
        rows.push(format!(
            "| {what} | {target} | {own} | {sqlite} | {postgres} |"
        ));
    }
    println!(
        "memory of this process: {before} MB before the questions, {} MB after",
        memory()
    );
    println!(
        "\n| p50 in ms (rows found) | target | shelf | SQLite, Clusterpedia's table | PostgreSQL, Clusterpedia's table |"
    );
    println!("|---|---|---|---|---|");
    for row in rows {
        println!("{row}");
    }
    shelf.close()
}

/// Asks a question several times, and prints the median and how much was found.
fn median(
    engine: &mut dyn Engine,
    question: Question,
    times: usize,
    members: usize,
) -> Result<String> {
    let mut all = Vec::new();
    let mut found = 0;
    engine.prepare(question)?;
    for round in 0..times {
        let (took, count) = timed(|| engine.ask(question, round, members))?;
        let Some(count) = count else {
            return Ok("refused".to_owned());
        };
        all.push(took);
        found = count;
    }
    all.sort();
    let middle = all.get(all.len() / 2).copied().unwrap_or_default();
    Ok(format!("{:.2} ({found})", millis(middle)))
}

/// Runs something and returns how long it took.
fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let begun = Instant::now();
    let done = run()?;
    Ok((begun.elapsed(), done))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Returns the memory of this process in MB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    number.unwrap_or(0) / 1024
}

/// Returns the processor time of this process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|text| text.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// Returns the size of a file in MB.
fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len() >> 20)
}
