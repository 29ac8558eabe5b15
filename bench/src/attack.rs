//! Runs one attack at a time while another client works.
//!
//! The attacker is this program in its own process at the lowest priority, so that the server is measured and not a
//! shortage of processors. The attacks are in `attack/kinds`; `attack/past` and `attack/unread` have the
//! larger ones.

mod kinds;
mod past;
mod storms;
mod unread;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::args::Side;
use crate::bench::{Bench, MIB, say};
use crate::credentials::Access;
use crate::http1::{self, Connection};
use crate::rows::Measuring;

pub(crate) use kinds::{Attack, STORMS, fill, run};
pub(crate) use storms::{CONVERTED, NAMESPACE};

/// The object that the other client reads and writes.
const PULSE: &str = "/api/v1/namespaces/default/configmaps/pulse";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Creates the object that the measured client reads and writes, unless another row created it.
pub(crate) async fn create_pulse(bench: &mut Bench<'_>) -> Result<()> {
    let pulse = serde_json::json!({"metadata": {"name": "pulse"}, "data": {"beat": "0"}});
    let path = PULSE.trim_end_matches("/pulse");
    let answer = bench
        .ask("POST", path, pulse.to_string().as_bytes())
        .await?;
    if ![201, 409].contains(&answer.status) {
        bail!("POST {path}: status {}", answer.status);
    }
    Ok(())
}

/// Measures every attack in turn and records the worst results.
pub(crate) fn attacks<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        if bench.server.side == Side::Theirs {
            return Ok(());
        }
        create_pulse(bench).await?;
        kinds::prepare(bench).await?;
        bench.settle().await?;
        let span = Duration::from_secs(if bench.args.quick { 2 } else { 6 });
        let mut worst = Worst::default();
        let chosen = &bench.args.attacks;
        let wanted = |attack: &&Attack| chosen.is_empty() || chosen.contains(attack);
        for attack in kinds::ALL.iter().filter(wanted) {
            past::prepare(*attack, bench).await?;
            bench.settle().await?;
            // The baseline is measured each time, because the machine's state changes.
            let quiet = beat(&bench.server.access, span).await?;
            bench.server.forget_peak()?;
            let before = bench.server.resident()?;
            let attacker = Attacker::start(*attack, &bench.server.kubeconfig)?;
            // The attack must be in full progress before the other client is measured.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let under_attack = beat(&bench.server.access, span).await?;
            attacker.end()?;
            let grown = bench.server.peak()?.saturating_sub(before) as f64 / MIB;
            let times = under_attack.p99.as_secs_f64() / quiet.p99.as_secs_f64();
            say(
                bench.server.side,
                &format!(
                    "attack {attack:?}: p99 {:?} instead of {:?} ({times:.1}×), slowest health {:?}, {grown:.0} MiB more",
                    under_attack.p99, quiet.p99, under_attack.health
                ),
            );
            worst.p99 = worst.p99.max(times);
            worst.health = worst.health.max(under_attack.health);
            worst.memory = worst.memory.max(grown);
            bench.settle().await?;
        }
        bench.figures.set("attack.p99", worst.p99);
        bench
            .figures
            .set("attack.health", worst.health.as_secs_f64() * 1e3);
        bench.figures.set("attack.memory", worst.memory);
        Ok(())
    })
}

#[derive(Default)]
struct Worst {
    p99: f64,
    health: Duration,
    memory: f64,
}

/// The latencies of the other client.
pub(crate) struct Beats {
    pub(crate) p99: Duration,
    /// The slowest answer to a health check over a new connection.
    pub(crate) health: Duration,
}

/// Reads continuously, writes at every fifth step and checks health at every tenth.
pub(crate) async fn beat(access: &Access, span: Duration) -> Result<Beats> {
    let read = http1::request(access, "GET", PULSE, "", b"");
    let health = http1::request(access, "GET", "/livez", "", b"");
    let mut connection = Connection::open(access, 16 * 1024).await?;
    let (mut waits, mut slowest) = (Vec::new(), Duration::ZERO);
    let begun = Instant::now();
    let mut step = 0_usize;
    while begun.elapsed() < span {
        waits.push(timed(&mut connection, &read).await?);
        if step.is_multiple_of(5) {
            let patch = format!(r#"{{"data":{{"beat":"{step}"}}}}"#);
            let write = http1::request(access, "PATCH", PULSE, MERGE_PATCH, patch.as_bytes());
            waits.push(timed(&mut connection, &write).await?);
        }
        if step.is_multiple_of(10) {
            let asked = Instant::now();
            let mut fresh = Connection::open(access, 4 * 1024).await?;
            timed(&mut fresh, &health).await?;
            slowest = slowest.max(asked.elapsed());
        }
        step += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    waits.sort_unstable();
    Ok(Beats {
        p99: waits[(waits.len() - 1) * 99 / 100],
        health: slowest,
    })
}

async fn timed(connection: &mut Connection, request: &[u8]) -> Result<Duration> {
    let begun = Instant::now();
    let answer = connection.send(request).await?;
    if answer.status != 200 {
        bail!(
            "another client was answered with {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
    }
    Ok(begun.elapsed())
}

/// The attacking process.
pub(crate) struct Attacker(Child);

impl Attacker {
    /// Starts an attack with the credentials of a kubeconfig.
    pub(crate) fn start(attack: Attack, kubeconfig: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let child = Command::new("nice")
            .args(["-n", "19"])
            .arg(program)
            .arg("--attack")
            .arg(attack.name())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start the attacker")?;
        Ok(Self(child))
    }

    /// Ends the attack; fails if it ended by itself, because then nothing was measured.
    pub(crate) fn end(mut self) -> Result<()> {
        if let Some(status) = self.0.try_wait()? {
            bail!("the attacker ended early: {status}");
        }
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Attacker {
    /// Ends the attack of a row that failed, too. An attacker that has ended needs nothing.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
