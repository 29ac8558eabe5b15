//! Compares webhooks and policies on a kube-apiserver 1.36 and on Bareboat: the same requests, the same hook process.
//!
//! `tests/parity/admission/*.yaml` are scenes: configurations of admission, what the hooks answer, and requests. A step is
//! recorded with code, warnings and object, with the reviews that hooks received, and with the annotations of its audit
//! event. The hooks run in the process of the test. If `BAREBOAT_PARITY_ADMISSION` names a kubeconfig of a kube-apiserver,
//! its responses are recorded again; `BAREBOAT_PARITY_AUDIT` names its audit log. Differences are listed in
//! `docs/differences.md`. Scenes of a file without a record are played, so that every setup and every hook is proved to
//! work, and compared with nothing.

mod run;
mod scene;
mod stage;

use super::target::Target;
use super::{differences, folder};
use crate::audit::Log;
use crate::ledger::Ledger;
use crate::support::{Value, json};
use bareboat_testing::TestServer;
use scene::Scene;
use stage::Stage;
use std::path::PathBuf;

/// A step with its answer in recorded form.
struct Recorded {
    step: String,
    answer: Value,
}

fn golden(file: &str) -> PathBuf {
    folder().join(format!("admission/{file}.jsonl"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_and_policies_behave_as_on_kube_apiserver() {
    let wanted = std::env::var("BAREBOAT_PARITY_ONLY").unwrap_or_default();
    let mut problems = Vec::new();
    for (file, scenes) in scene::all(&folder().join("admission")) {
        if format!("admission {file}").contains(&wanted) {
            problems.extend(check(&file, &scenes).await);
        }
    }
    assert!(
        problems.is_empty(),
        "{} differences are not in docs/differences.md, or no longer are:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Records a file again if there is a peer, then compares ours with the record.
async fn check(file: &str, scenes: &[Scene]) -> Vec<String> {
    if let Some(theirs) = Target::named("BAREBOAT_PARITY_ADMISSION").await {
        let audit = std::env::var("BAREBOAT_PARITY_AUDIT").expect("the peer writes an audit log");
        let stage = Stage::new(theirs, audit.into()).await;
        let lines: Vec<String> = run::run(&stage, scenes)
            .await
            .into_iter()
            .map(|done| json!({"step": done.step, "answer": done.answer}).to_string())
            .collect();
        std::fs::write(golden(file), lines.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(golden(file)).unwrap_or_default();
    let has_record = !text.is_empty();
    let recorded: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let log = Log::new("[{level: Metadata}]");
    let server = log.of(TestServer::builder()).start().await;
    let stage = Stage::new(Target::Ours(Box::new(server)), log.path()).await;
    let ours = run::run(&stage, scenes).await;
    if !has_record {
        println!(
            "{file}: no record, {} steps were only played; see `make parity`",
            ours.len()
        );
        return unexpected(file, &ours);
    }
    let mut ledger = Ledger::read("docs/differences.md", &format!("admission/{file}"));
    let (mut missing, mut same) = (Vec::new(), 0);
    for done in &ours {
        let Some(line) = recorded.iter().find(|line| line["step"] == *done.step) else {
            missing.push(format!("{file}: not recorded: {}", done.step));
            continue;
        };
        let found = differ(&line["answer"], &done.answer);
        same += usize::from(found.is_empty());
        ledger.check(&done.step, found);
    }
    for line in &recorded {
        if !ours.iter().any(|done| line["step"] == *done.step) {
            missing.push(format!("{file}: recorded but not sent: {}", line["step"]));
        }
    }
    println!("{file}: {same} of {} steps are the same", ours.len());
    let mut problems = ledger.problems();
    problems.extend(missing);
    problems
}

/// Returns the steps that no server would answer in this way: a hook without a reply, or an answer that is no JSON.
fn unexpected(file: &str, steps: &[Recorded]) -> Vec<String> {
    let is_odd = |done: &&Recorded| {
        let (body, status) = (&done.answer["body"], &done.answer["status"]);
        !body.is_object() && !status.is_object()
    };
    let odd = steps.iter().filter(is_odd);
    odd.map(|done| format!("{file}: {}: {}", done.step, done.answer))
        .collect()
}

fn differ(wanted: &Value, given: &Value) -> Vec<(String, String)> {
    let mut found = differences(wanted, given);
    for part in ["calls", "annotations", "status"] {
        let (wanted, given) = (json!({part: wanted[part]}), json!({part: given[part]}));
        crate::compare::compare(wanted, given, &mut found);
    }
    found
}
