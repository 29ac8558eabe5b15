//! A noisy neighbour: one user lists everything in a loop over 200 connections, at the lowest priority, while another user
//! works. Both are ordinary users with a share of their own; nobody here is exempt from flow control.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::args::Side;
use crate::attack::{Attack, Attacker, beat, create_pulse, fill};
use crate::bench::{Bench, namespace, say};
use crate::credentials::Access;
use crate::rows::Measuring;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const MAPS: &str = "/api/v1/namespaces/neighbour/configmaps";
/// Number of objects in each list.
const OBJECTS: usize = 2_000;

/// Compares the p99 of a user with and without the neighbour.
pub(crate) fn neighbour<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        if bench.server.side == Side::Theirs {
            return Ok(());
        }
        bench
            .post("/api/v1/namespaces", namespace("neighbour"))
            .await?;
        fill(bench, MAPS, bench.args.scaled(OBJECTS), 200).await?;
        create_pulse(bench).await?;
        let folder = tempfile::tempdir()?;
        let noisy = account(bench, folder.path(), "noisy").await?;
        let calm = Access::from_kubeconfig(&account(bench, folder.path(), "calm").await?)?;
        bench.settle().await?;
        let span = Duration::from_secs(if bench.args.quick { 2 } else { 10 });
        let quiet = beat(&calm, span).await?;
        let attacker = Attacker::start(Attack::Neighbour, &noisy)?;
        // All connections must be at work before the other user is measured.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let beside = beat(&calm, span).await;
        attacker.end()?;
        let beside = beside?;
        let times = beside.p99.as_secs_f64() / quiet.p99.as_secs_f64();
        say(
            bench.server.side,
            &format!(
                "beside a noisy user: p99 {:?} instead of {:?} ({times:.1}×), slowest health {:?}",
                beside.p99, quiet.p99, beside.health
            ),
        );
        bench.figures.set("neighbour.p99", times);
        bench
            .figures
            .set("neighbour.health", beside.health.as_secs_f64() * 1e3);
        Ok(())
    })
}

/// Makes a service account that may do everything, and returns the path of its kubeconfig.
pub(crate) async fn account(bench: &Bench<'_>, folder: &Path, name: &str) -> Result<PathBuf> {
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    bench.post(ACCOUNTS, object).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("bench-{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
    });
    bench.post(BINDINGS, binding).await?;
    let path = format!("{ACCOUNTS}/{name}/token");
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = bench
        .ask("POST", &path, request.to_string().as_bytes())
        .await?;
    let issued: Value = serde_json::from_slice(&answer.body)?;
    let token = issued["status"]["token"].as_str();
    let token = token.with_context(|| format!("no token: status {}", answer.status))?;
    let admin = std::fs::read_to_string(&bench.server.kubeconfig)?;
    let kubeconfig = folder.join(format!("{name}.kubeconfig"));
    std::fs::write(&kubeconfig, with_token(&admin, token))?;
    Ok(kubeconfig)
}

/// Replaces the client certificate of a kubeconfig by a token.
fn with_token(kubeconfig: &str, token: &str) -> String {
    let mut lines = Vec::new();
    for line in kubeconfig.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        match line.trim_start().split(':').next() {
            Some("client-certificate-data" | "client-certificate") => {
                lines.push(format!("{indent}token: {token}"));
            }
            Some("client-key-data" | "client-key") => {}
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_takes_the_place_of_the_certificate() {
        let before = "users:\n- name: a\n  user:\n    client-certificate-data: x\n    client-key-data: y\nend: z";
        let after = "users:\n- name: a\n  user:\n    token: t\nend: z";
        assert_eq!(with_token(before, "t"), after);
    }
}
