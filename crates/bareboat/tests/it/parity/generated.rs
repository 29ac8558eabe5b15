//! Random write sequences, generated from a seed and sent to a kube-apiserver and to Bareboat.
//!
//! `tests/parity/generated/*.yaml` lists the parts of writes, and `recorded.jsonl` beside it holds the responses of a
//! kube-apiserver. With a peer, the responses are recorded again, and `BAREBOAT_PARITY_MORE=300` compares as many
//! additional sequences.

mod author;
mod broken;
mod chance;
mod directives;
mod excuses;
mod history;
mod menu;
mod spoil;
mod tree;

use super::target::Target;
use super::{differences, folder};
use crate::ledger::Ledger;
use crate::support::{Value, json};
use author::Author;
use history::History;
use menu::Subject;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAMESPACE: &str = "parity-generated";
/// Number of recorded sequences, those of the first seeds.
const RECORDED: u64 = 5;
/// Number of concurrent sequences.
const ABREAST: usize = 72;

/// A write and its result.
struct Done {
    name: String,
    request: String,
    answer: Value,
}

fn place() -> PathBuf {
    folder().join("generated")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_writes_behave_as_on_kube_apiserver() {
    let golden = place().join("recorded.jsonl");
    let mut seeds: Vec<u64> = (0..RECORDED).collect();
    if let Some(theirs) = Target::theirs().await {
        let theirs = Arc::new(theirs);
        let lines: Vec<String> = run(theirs.clone(), &seeds)
            .await
            .into_iter()
            .flatten()
            .map(|done| json!({"step": done.name, "answer": done.answer}).to_string())
            .collect();
        std::fs::write(&golden, lines.join("\n") + "\n").unwrap();
        if let Some(more) = number("BAREBOAT_PARITY_MORE") {
            let from = number("BAREBOAT_PARITY_FROM").unwrap_or(RECORDED);
            seeds = (from..from + more).collect();
            let ours = Arc::new(Target::ours().await);
            let (theirs, ours) = tokio::join!(run(theirs, &seeds), run(ours, &seeds));
            return explore(theirs, ours);
        }
    }
    let text = std::fs::read_to_string(&golden).unwrap_or_default();
    let recorded: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ours = run(Arc::new(Target::ours().await), &seeds).await;
    let mut ledger = Ledger::read("docs/parity.md", "generated");
    let mut recorded = recorded.iter();
    for sequence in &ours {
        let mut ended = false;
        for given in sequence {
            let line = recorded.next().expect("`make parity` records afresh");
            if ended {
                continue;
            }
            let wanted = Done {
                name: line["step"].as_str().unwrap_or("").to_owned(),
                request: given.request.clone(),
                answer: line["answer"].clone(),
            };
            assert_eq!(wanted.name, given.name, "`make parity` records afresh");
            let found = differ(&wanted.answer, &given.answer);
            ended = !found.is_empty() && excuses::excuse(&wanted, given).is_some();
            if !ended {
                ledger.check(&given.name, found);
            }
        }
    }
    assert_eq!(recorded.next(), None, "`make parity` records afresh");
    ledger.finish();
}

/// Reports the first difference of two servers in each sequence.
fn explore(theirs: Vec<Vec<Done>>, ours: Vec<Vec<Done>>) {
    let (mut steps, mut problems) = (0, Vec::new());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        for (wanted, given) in theirs.iter().zip(ours) {
            if theirs.len() + ours.len() < 32 && number("BAREBOAT_PARITY_MORE") == Some(1) {
                println!(
                    "{}\n  {}\n  {}\n  {}",
                    wanted.name, wanted.request, wanted.answer, given.answer
                );
            }
            steps += 1;
            let found = differ(&wanted.answer, &given.answer);
            if found.is_empty() && wanted.name == given.name {
                continue;
            }
            if let Some(why) = excuses::excuse(wanted, given) {
                println!("no example, {why}: {}", wanted.name);
                break;
            }
            let mut text = format!("{}\n  {}", wanted.name, wanted.request);
            if wanted.name != given.name {
                text.push_str(&format!(
                    "\n  but ours: {}\n  {}",
                    given.name, given.request
                ));
            }
            for (path, what) in found {
                text.push_str(&format!("\n      {path}: {what}"));
            }
            problems.push(text);
            break;
        }
    }
    println!("{steps} steps compared");
    let count = problems.len();
    assert!(
        problems.is_empty(),
        "{count} sequences differ:\n{}",
        problems.join("\n")
    );
}

fn differ(wanted: &Value, given: &Value) -> Vec<(String, String)> {
    let mut found = differences(wanted, given);
    if wanted["code"] == given["code"] {
        crate::compare::compare(wanted["live"].clone(), given["live"].clone(), &mut found);
    }
    found
}

/// Sends the sequences of some seeds for every subject and returns the responses in this order.
async fn run(target: Arc<Target>, seeds: &[u64]) -> Vec<Vec<Done>> {
    let body = json!({"metadata": {"name": NAMESPACE}}).to_string();
    target.send("POST", "/api/v1/namespaces", &[], body).await;
    let only = std::env::var("BAREBOAT_PARITY_KINDS").unwrap_or_default();
    let subjects: Vec<Arc<Subject>> = menu::all(&place())
        .into_iter()
        .filter(|subject| subject.resource.contains(&only))
        .map(Arc::new)
        .collect();
    for subject in &subjects {
        define(&target, subject).await;
    }
    let mut all: Vec<Vec<Done>> = Vec::new();
    let work: Vec<(u64, Arc<Subject>)> = seeds
        .iter()
        .flat_map(|seed| subjects.iter().map(|subject| (*seed, subject.clone())))
        .collect();
    for some in work.chunks(ABREAST) {
        let mut running = Vec::new();
        for (seed, subject) in some.iter().cloned() {
            let target = target.clone();
            running.push(tokio::spawn(async move {
                sequence(&target, &subject, seed).await
            }));
        }
        for sequence in running {
            all.push(sequence.await.unwrap());
        }
    }
    all
}

/// Creates a custom kind and waits until it is served.
async fn define(target: &Target, subject: &Subject) {
    let Some(definition) = &subject.definition else {
        return;
    };
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    target.send("POST", path, &[], definition.to_string()).await;
    for version in 0..subject.versions.len() {
        let path = format!("{}?limit=1", collection(subject, version));
        while target.send("GET", &path, &[], String::new()).await.code != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn collection(subject: &Subject, version: usize) -> String {
    let api_version = &subject.versions[version].api_version;
    let root = if api_version.contains('/') {
        "apis"
    } else {
        "api"
    };
    format!(
        "/{root}/{api_version}/namespaces/{NAMESPACE}/{}",
        subject.plural
    )
}

/// Runs one sequence of writes to one object, and deletes it at the end.
async fn sequence(target: &Target, subject: &Subject, seed: u64) -> Vec<Done> {
    // Events of both groups are the same objects.
    let name = match subject.resource.starts_with("events") {
        true => format!("newer-{seed}"),
        false => format!("made-up-{seed}"),
    };
    let mut author = Author::new(subject, seed, name.clone());
    let mut history = History::default();
    let mut done = Vec::new();
    let plural = &subject.plural;
    remove(target, subject, &name).await;
    for step in 1..=author.length() {
        let version = author.version();
        let object = format!("{}/{name}", collection(subject, version));
        let live = target.send("GET", &object, &[], String::new()).await;
        let live = (live.code == 200).then(|| live.json());
        let write = author.write(version, live.as_ref());
        let address = match write.method {
            "POST" => collection(subject, version),
            _ => object,
        };
        let path = format!("{address}{}{}", write.under, write.query);
        // Times have a resolution of a second; each step must have a different one.
        next_second().await;
        let headers = [("content-type", write.media)];
        let answer = target
            .send(write.method, &path, &headers, write.body.clone())
            .await;
        let read = format!("{}/{name}", collection(subject, 0));
        let after = target.send("GET", &read, &[], String::new()).await;
        let after = match after.code {
            200 => after.json(),
            _ => Value::Null,
        };
        let api_version = &subject.versions[version].api_version;
        done.push(Done {
            name: format!(
                "{plural} {seed}.{step}: {} in {api_version}",
                write.what.trim()
            ),
            request: format!("{} {path}\n  {}", write.method, write.body),
            answer: history.record(&answer, after),
        });
    }
    remove(target, subject, &name).await;
    done
}

/// Deletes an object, including its finalizers.
async fn remove(target: &Target, subject: &Subject, name: &str) {
    let path = format!("{}/{name}", collection(subject, 0));
    let now = format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background");
    target.send("DELETE", &now, &[], String::new()).await;
    let patch = json!({"metadata": {"finalizers": null}}).to_string();
    let headers = [("content-type", crate::support::MERGE)];
    target.send("PATCH", &path, &headers, patch).await;
}

/// Number of broken bodies per kind.
const BROKEN: usize = 45;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_bodies_are_rejected_as_kube_apiserver_does() {
    let golden = place().join("broken.jsonl");
    let mut recorded: Vec<Value> = Vec::new();
    let seed = number("BAREBOAT_PARITY_FROM").unwrap_or(0);
    if let Some(theirs) = Target::theirs().await {
        let answers = refusals(&theirs, seed).await;
        recorded = answers.iter().map(line).collect();
        if seed == 0 {
            let lines: Vec<String> = recorded.iter().map(Value::to_string).collect();
            std::fs::write(&golden, lines.join("\n") + "\n").unwrap();
        }
    } else {
        let text = std::fs::read_to_string(&golden).unwrap_or_default();
        recorded.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
    }
    let ours = refusals(&Target::ours().await, seed).await;
    assert_eq!(ours.len(), recorded.len(), "`make parity` records afresh");
    let mut ledger = Ledger::read("docs/parity.md", "broken");
    for (wanted, given) in recorded.iter().zip(&ours) {
        assert_eq!(wanted["step"], *given.name, "`make parity` records afresh");
        let (theirs, ours) = (&wanted["answer"], &line(given)["answer"]);
        // kube-apiserver panicked, so there is nothing to compare.
        if theirs != ours && *theirs != "0 " {
            let what = format!("{theirs} became {ours}\n      {}", given.request);
            ledger.check(&given.name, vec![("code".to_owned(), what)]);
        }
    }
    ledger.finish();
}

/// Returns code and reason of a response.
fn line(done: &Done) -> Value {
    let reason = done.answer["reason"].as_str().unwrap_or("");
    let code = &done.answer["code"];
    json!({"step": done.name, "answer": format!("{code} {reason}")})
}

/// Returns the responses of a server to broken bodies.
async fn refusals(target: &Target, seed: u64) -> Vec<Done> {
    let body = json!({"metadata": {"name": NAMESPACE}}).to_string();
    target.send("POST", "/api/v1/namespaces", &[], body).await;
    let mut all = Vec::new();
    for (number, subject) in menu::all(&place()).iter().enumerate() {
        define(target, subject).await;
        let version = &subject.versions[0];
        let name = format!("broken-{number}");
        remove(target, subject, &name).await;
        let there = author::with_name(version, version.base.clone(), &name);
        let path = collection(subject, 0);
        let created = target.send("POST", &path, &[], there.to_string()).await;
        assert_eq!(created.code, 201, "{}", created.text());
        let mut chance = chance::Chance::new(seed * 1000 + number as u64);
        for step in 1..=BROKEN {
            let absent = format!("{name}-absent");
            let about = if chance.percent(50) { &name } else { &absent };
            let broken = broken::broken(&mut chance, subject, about);
            let about = if broken.method == "POST" { "" } else { about };
            let slash = if about.is_empty() { "" } else { "/" };
            let path = format!(
                "{}{slash}{about}?dryRun=All&fieldManager=m",
                collection(subject, 0)
            );
            let headers = [("content-type", broken.media)];
            let shown = String::from_utf8_lossy(&broken.body).into_owned();
            let answer = target
                .send(broken.method, &path, &headers, broken.body)
                .await;
            let status: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
            let resource = &subject.resource;
            all.push(Done {
                name: format!("{resource} {seed}.{step} {about}: {}", broken.what)
                    .replace('|', "/"),
                request: format!(
                    "{} {path}\n      {shown}\n      {}",
                    broken.method,
                    answer.text()
                ),
                answer: match status["kind"] == "Status" {
                    true => json!({"code": answer.code, "reason": status["reason"]}),
                    false => json!({"code": answer.code}),
                },
            });
        }
        remove(target, subject, &name).await;
    }
    all
}

async fn next_second() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let rest = 1_000_000_000 - u64::from(now.subsec_nanos());
    tokio::time::sleep(Duration::from_nanos(rest + 5_000_000)).await;
}
