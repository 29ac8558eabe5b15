//! Rows about extensions of the API: aggregation, webhooks and policies.
//!
//! One backend serves both servers: this program in its own process, so that its processor time is not counted.

mod aggregation;
mod backend;
mod policies;
mod storms;
mod unmatched;
mod webhooks;

pub(crate) use aggregation::{aggregated, api_services};
pub(crate) use backend::run;
pub(crate) use policies::policies;
pub(crate) use storms::storms;
pub(crate) use unmatched::unmatched;
pub(crate) use webhooks::webhooks;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::bench::{Bench, items};
use crate::objects::GROUP;

/// How long a server may take until a configuration is in effect.
const PATIENCE: Duration = Duration::from_secs(60);

/// The rule of a configuration that names the standard kind.
fn creation_of_items() -> serde_json::Value {
    serde_json::json!({
        "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["items"], "operations": ["CREATE"],
    })
}

/// Creates an object without storing it, with this label, and returns the status and the beginning of the body.
async fn rehearse(bench: &Bench<'_>, namespace: &str, label: &str) -> Result<(u16, String)> {
    let mut object: serde_json::Value = serde_json::from_slice(&bench.item.render("rehearsal", 0))?;
    object["metadata"]["labels"]["rehearsal"] = label.into();
    let path = format!("{}?dryRun=All", items(namespace));
    let answer = bench
        .ask("POST", &path, object.to_string().as_bytes())
        .await?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    Ok((answer.status, text))
}

/// Repeats a check until it holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await? {
        if Instant::now() > deadline {
            bail!("{what}: not within a minute");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Deletes an object that exists.
async fn remove(bench: &Bench<'_>, path: &str) -> Result<()> {
    let answer = bench.ask("DELETE", path, b"").await?;
    if answer.status != 200 {
        bail!("DELETE {path}: status {}", answer.status);
    }
    Ok(())
}
