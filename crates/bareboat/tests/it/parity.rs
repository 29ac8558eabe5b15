//! Compares the same requests on a kube-apiserver 1.36 and on Bareboat, field by field.
//!
//! `tests/parity/*.yaml` is the corpus: valid, changed and invalid objects of every built-in kind. The responses of a
//! kube-apiserver are recorded beside it (`*.jsonl`), with placeholders for volatile values. If `BAREBOAT_PARITY_PEER`
//! names a kubeconfig, they are recorded again first; `make parity` does that. Remaining differences are listed in
//! `docs/parity.md` with their reasons. An unlisted difference fails the test, and so does a listed one that no longer
//! occurs.

mod admission;
mod corpus;
mod edit;
mod generated;
mod normal;
mod run;
mod target;

use crate::compare::compare;
use crate::ledger::Ledger;
use crate::support::{Value, json};
use crate::vectors::workspace;
use bareboat_builtin::kinds;
use corpus::Corpus;
use std::collections::HashSet;
use std::path::PathBuf;
use target::Target;

/// The result of one file of the corpus.
struct Outcome {
    file: String,
    steps: usize,
    /// Steps whose response equals the recorded one in every field.
    same: usize,
    problems: Vec<String>,
}

fn folder() -> PathBuf {
    workspace().join("crates/bareboat/tests/parity")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_responds_as_kube_apiserver_does() {
    let wanted = std::env::var("BAREBOAT_PARITY_ONLY").unwrap_or_default();
    let mut files = tokio::task::JoinSet::new();
    for corpus in Corpus::all(&folder()) {
        if corpus.file.contains(&wanted) {
            files.spawn(check(corpus));
        }
    }
    let mut outcomes = files.join_all().await;
    outcomes.sort_by(|a, b| a.file.cmp(&b.file));
    println!(
        "{:<24} {:>6} {:>6} {:>7} {:>9}",
        "file", "steps", "same", "listed", "unlisted"
    );
    for outcome in &outcomes {
        let unlisted = outcome.problems.len();
        let listed = (outcome.steps - outcome.same).saturating_sub(unlisted);
        println!(
            "{:<24} {:>6} {:>6} {:>7} {:>9}",
            outcome.file, outcome.steps, outcome.same, listed, unlisted
        );
    }
    let problems: Vec<String> = outcomes
        .into_iter()
        .flat_map(|outcome| outcome.problems)
        .collect();
    assert!(
        problems.is_empty(),
        "{} differences are not in docs/parity.md, or no longer are:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Records one file again if there is a peer, then compares ours with the record.
async fn check(corpus: Corpus) -> Outcome {
    let golden = folder().join(format!("{}.jsonl", corpus.file));
    if let Some(theirs) = Target::theirs().await {
        let lines: Vec<String> = run::run(&theirs, &corpus)
            .await
            .into_iter()
            .map(|step| json!({"step": step.name, "answer": step.answer}).to_string())
            .collect();
        std::fs::write(&golden, lines.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&golden).unwrap_or_default();
    let recorded: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ours = run::run(&Target::ours().await, &corpus).await;
    let mut ledger = Ledger::read("docs/parity.md", &corpus.file);
    let mut same = 0;
    let mut missing = Vec::new();
    for step in &ours {
        let Some(line) = recorded.iter().find(|line| line["step"] == *step.name) else {
            missing.push(format!("{}: not recorded: {}", corpus.file, step.name));
            continue;
        };
        let found = differences(&line["answer"], &step.answer);
        same += usize::from(found.is_empty());
        ledger.check(&step.name, found);
    }
    for line in &recorded {
        let name = line["step"].as_str().unwrap();
        if name.starts_with("create ") && line["answer"]["code"] != 201 {
            let message = &line["answer"]["body"]["message"];
            missing.push(format!(
                "{}: theirs refuses to {name}: {message}",
                corpus.file
            ));
        }
    }
    let asked: HashSet<&str> = ours.iter().map(|step| step.name.as_str()).collect();
    for line in &recorded {
        let name = line["step"].as_str().unwrap();
        if !asked.contains(name) {
            missing.push(format!("{}: recorded but not sent: {name}", corpus.file));
        }
    }
    let mut problems = ledger.problems();
    problems.extend(missing);
    Outcome {
        steps: ours.len(),
        same,
        problems,
        file: corpus.file,
    }
}

fn differences(wanted: &Value, given: &Value) -> Vec<(String, String)> {
    if wanted["code"] != given["code"] {
        let what = format!("{wanted} became {given}");
        // With a different code, the rest is not comparable.
        return vec![("code".to_owned(), what)];
    }
    let mut found = Vec::new();
    if wanted["warning"] != given["warning"] {
        let what = format!("{} became {}", wanted["warning"], given["warning"]);
        found.push(("warning".to_owned(), what));
    }
    compare(wanted["body"].clone(), given["body"].clone(), &mut found);
    found
}

#[test]
fn every_stored_kind_is_in_the_corpus() {
    let all = Corpus::all(&folder());
    let known: HashSet<String> = all
        .iter()
        .flat_map(|corpus| corpus.cases.iter().map(|case| case.resource.clone()))
        .collect();
    let mut absent = Vec::new();
    for kind in kinds::all() {
        if !kind.verbs.has(bareboat_api::kind::Verb::Update) {
            continue;
        }
        for version in &kind.versions {
            let resource = format!("{}/{}", kind.api_version(&version.name), kind.names.plural);
            if !known.contains(&resource) {
                absent.push(resource);
            }
        }
    }
    assert!(absent.is_empty(), "{absent:?}");
}
