//! The book: every command of its pages is run, or the page says why not.

use crate::kubectl::Kubectl;
use crate::tools;
use bareboat_sessions::{Session, workspace_binary};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What pages that start no server take for granted.
const SERVER: &str = "\
```bash background
bareboat serve --in-memory --bind 127.0.0.1:6443
```
```text
  kubectl get namespaces
```
```bash
export KUBECONFIG=$PWD/bareboat-data/admin.kubeconfig
```
";

fn docs() -> PathBuf {
    tools::workspace().join("docs")
}

/// Returns the pages in the order of the summary.
fn pages() -> Vec<String> {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1);
    links
        .map(|rest| rest.split(')').next().unwrap().to_owned())
        .collect()
}

/// Returns the first line and the language of each block of a page.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            if !inside {
                found.push((index + 1, info.trim().to_owned()));
            }
            inside = !inside;
        }
    }
    found
}

fn is_command(info: &str) -> bool {
    matches!(
        info.split([' ', ',']).next(),
        Some("bash" | "sh" | "console")
    )
}

/// Runs a page; returns how many blocks ran, and why others did not.
fn run(page: &str) -> (usize, Vec<String>) {
    let text = fs::read_to_string(docs().join(page)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let runs = |(_, info): &(usize, String)| is_command(info) && !info.contains("skip=");
    let starts = text.contains("bareboat serve") && text.contains("background")
        || text.contains("cargo run");
    let own = starts || page == "how-to/projects.md" || !blocks(&text).iter().any(runs);
    let preamble = if own { "" } else { SERVER };
    let copy = folder.path().join(Path::new(page).file_name().unwrap());
    fs::write(&copy, format!("{preamble}{text}")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_bareboat")).parent().unwrap();
    let mut session = Session::new(&copy).path(bin);
    for port in [6443, 6444, 8080, 8443, 9443] {
        session = session.port(port);
    }
    for name in ["journal", "yachts"] {
        if text.contains(&format!("cargo run -p {name}")) {
            session = session.program(name, workspace_binary(name, name));
        }
    }
    match session.try_run() {
        Ok(report) => {
            let reasons = report.skipped.into_iter().map(|skipped| skipped.reason);
            (report.ran, reasons.collect())
        }
        Err(failure) => panic!("docs/{page}: {failure}"),
    }
}

fn run_all(wanted: impl Fn(&str) -> bool, notes: &str) {
    if tools::kubectl().is_none() {
        return;
    }
    let (mut ran, mut skipped) = (0, BTreeMap::new());
    for page in pages().iter().filter(|page| wanted(page)) {
        let (blocks, reasons) = run(page);
        ran += blocks;
        for reason in reasons {
            assert!(reason.len() > 8, "docs/{page}: {reason:?} is not a reason");
            *skipped.entry(reason).or_insert(0) += 1;
        }
    }
    let mut text = format!(
        "{ran} blocks ran, {} did not",
        skipped.values().sum::<usize>()
    );
    println!("{text}");
    for (reason, count) in &skipped {
        println!("  {count} × {reason}");
    }
    if let Some(folder) = std::env::var_os("BAREBOAT_TEST_NOTES") {
        let _ = writeln!(text);
        fs::write(Path::new(&folder).join(notes), text.trim_end()).unwrap();
    }
}

#[test]
fn the_tutorial_runs() {
    run_all(|page| page.starts_with("tutorial/"), "tutorial");
}

#[test]
fn the_other_pages_run() {
    run_all(|page| !page.starts_with("tutorial/"), "pages");
}

#[test]
fn every_page_is_in_the_summary_and_every_block_has_a_language() {
    let listed = pages();
    for page in &listed {
        assert!(
            docs().join(page).is_file(),
            "SUMMARY.md names {page}, which is not there"
        );
    }
    for folder in ["", "tutorial", "how-to", "reference", "explanation"] {
        for entry in fs::read_dir(docs().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(docs())
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if !name.ends_with(".md") || name == "SUMMARY.md" {
                continue;
            }
            assert!(listed.contains(&name), "docs/{name} is not in SUMMARY.md");
            let text = fs::read_to_string(&path).unwrap();
            for (line, info) in blocks(&text) {
                assert!(
                    !info.is_empty(),
                    "docs/{name}:{line}: name the language of this block"
                );
            }
            links_exist(&path, &text);
        }
    }
}

/// Fails if a link to a file of the repository leads nowhere.
fn links_exist(page: &Path, text: &str) {
    for rest in text.split("](").skip(1) {
        let link = rest.split([')', '#', ' ']).next().unwrap();
        if link.is_empty() || link.contains("://") || !link.contains('.') {
            continue;
        }
        let target = page.parent().unwrap().join(link);
        assert!(target.exists(), "{}: {link} is not there", page.display());
    }
}

#[test]
fn the_page_of_metrics_has_what_a_server_prints() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives("create configmap any");
    let page = fs::read_to_string(docs().join("reference/metrics.md")).unwrap();
    let printed = kubectl.gives("get --raw /metrics");
    let names = printed
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP "));
    let names: Vec<&str> = names.filter_map(|rest| rest.split(' ').next()).collect();
    assert!(names.len() > 20, "{printed}");
    let missing: Vec<&&str> = names
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/reference/metrics.md lacks {missing:?}"
    );
}
