//! One measurement of one server: shared helpers of rows, and their order.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::{Args, Row, Side};
use crate::http1::{self, Answer, Connection};
use crate::load::{Load, Outcome};
use crate::objects::{self, GROUP, Template};
use crate::report::{FAILED, Figures};
use crate::server::{Programs, Server};
use crate::{attack, extension, neighbour, quiet, rows, watchers};

/// The namespace of the measured collection.
pub(crate) const NAMESPACE: &str = "bench";

/// A measurement in progress.
pub(crate) struct Bench<'a> {
    /// The command line.
    pub(crate) args: &'a Args,
    /// Paths of programs.
    pub(crate) programs: &'a Programs,
    /// The server under load.
    pub(crate) server: Server,
    /// The results.
    pub(crate) figures: Figures,
    /// An object of the standard kind.
    pub(crate) item: Template,
}

/// Measures one server completely.
pub(crate) async fn measure(args: &Args, side: Side) -> Result<Figures> {
    let programs = Programs::find(args, side)?;
    let mut figures = Figures::default();
    // The folder is dropped after the bench, and so after the server that writes to it.
    let (server, _folder) = start(args, side, &programs, &mut figures).await?;
    let mut bench = Bench {
        args,
        programs: &programs,
        server,
        figures,
        item: objects::item(),
    };
    bench.rows().await?;
    Ok(bench.figures)
}

/// Creates a temporary folder for a server's data.
pub(crate) fn folder(args: &Args) -> Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("bareboat-bench-");
    Ok(match &args.work_dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)?;
            builder.disable_cleanup(true).tempdir_in(dir)?
        }
        None => builder.tempdir()?,
    })
}

/// Starts the server a few times with empty data, records the median, and keeps the last one.
async fn start(
    args: &Args,
    side: Side,
    programs: &Programs,
    figures: &mut Figures,
) -> Result<(Server, tempfile::TempDir)> {
    let times = match (args.wants(Row::Start), args.quick, side) {
        (false, _, _) | (_, true, Side::Theirs) => 1,
        (true, _, Side::Ours) => 7,
        (true, false, Side::Theirs) => 3,
    };
    let mut taken = Vec::new();
    loop {
        say(side, "start");
        let dir = folder(args)?;
        let server = Server::start(side, programs, dir.path(), &[]).await?;
        taken.push(server.ready_after);
        if taken.len() == times {
            taken.sort_unstable();
            if args.wants(Row::Start) {
                figures.set("start", taken[taken.len() / 2].as_secs_f64() * 1e3);
            }
            return Ok((server, dir));
        }
    }
}

/// Prints progress.
pub(crate) fn say(side: Side, what: &str) {
    let name = match side {
        Side::Theirs => "theirs",
        Side::Ours => "ours",
    };
    eprintln!("bench: {name}: {what}");
}

impl Bench<'_> {
    async fn rows(&mut self) -> Result<()> {
        use Row::{
            Aggregated, ApiServices, Apply, Attacks, Cel, Crds, Create, Create1, Delete, Get,
            GetByToken, Idle, Label, List, ListH2, Memory, Namespace, Neighbour, Page, Patch,
            Policies, Protobuf, Quiet, Storms, Unmatched, Watch, Webhooks,
        };
        if self.wants(Idle) {
            self.settle().await?;
            tokio::time::sleep(Duration::from_secs(if self.args.quick { 1 } else { 5 })).await;
            self.figures
                .set("idle", self.server.resident()? as f64 / MIB);
        }
        self.post("/api/v1/namespaces", namespace(NAMESPACE))
            .await?;
        let needed = [
            Create1, Create, Memory, Get, GetByToken, List, ListH2, Page, Label, Patch, Apply,
            Delete, Watch, Webhooks, Policies, Unmatched,
        ];
        if needed.into_iter().any(|row| self.args.wants(row)) {
            self.define(&objects::item_definition()).await?;
        }
        if [
            Create, Memory, Get, GetByToken, List, ListH2, Page, Label, Patch, Apply,
        ]
        .into_iter()
        .any(|row| self.args.wants(row))
        {
            rows::create(self).await?;
        }
        if self.wants(Memory) {
            self.settle().await?;
            self.figures
                .set("memory", self.server.resident()? as f64 / MIB);
        }
        for (row, id, measure) in [
            (
                Get,
                "get.cpu",
                rows::get as for<'b> fn(&'b mut Self) -> rows::Measuring<'b>,
            ),
            (GetByToken, "token.cpu", rows::get_by_token),
            (List, "list.cpu", rows::list),
            (ListH2, "listh2.cpu", rows::list_h2),
            (Page, "page.cpu", rows::page),
            (Label, "label.cpu", rows::label),
            (Create1, "create1.cpu", rows::create_one_by_one),
            (Patch, "patch.cpu", rows::patch),
            (Apply, "apply.cpu", rows::apply),
            (Delete, "delete.cpu", rows::delete),
            (Watch, "watch.one", watchers::watch),
            (Cel, "cel.cpu", rows::cel),
            (Protobuf, "protobuf.cpu", rows::protobuf),
            (Aggregated, "aggregated.cpu", extension::aggregated),
            (Webhooks, "webhooks.cpu", extension::webhooks),
            (Policies, "policies.cpu", extension::policies),
            (Unmatched, "unmatched", extension::unmatched),
            (ApiServices, "apiservices", extension::api_services),
            (Quiet, "quiet", quiet::quiet),
            (Namespace, "namespace", rows::namespace),
            (Crds, "crd.cpu", rows::crds),
            (Neighbour, "neighbour.p99", neighbour::neighbour),
            (Storms, "storm.p99", extension::storms),
            (Attacks, "attack.p99", attack::attacks),
        ] {
            if self.wants(row) {
                self.settle().await?;
                // A row that fails must not stop the others.
                if let Err(error) = measure(self).await {
                    say(self.server.side, &format!("{row:?} failed: {error:#}"));
                    self.figures.explain(id, FAILED);
                }
            }
        }
        Ok(())
    }

    fn wants(&self, row: Row) -> bool {
        let wanted = self.args.wants(row);
        if wanted {
            say(self.server.side, &format!("{row:?}").to_lowercase());
        }
        wanted
    }

    /// Returns a load within the limits of the command line.
    pub(crate) fn load(&self, clients: usize, operations: usize) -> Load {
        let seconds = if self.args.quick {
            self.args.row_seconds.div_ceil(5)
        } else {
            self.args.row_seconds
        };
        let limit = Duration::from_secs(seconds);
        Load {
            clients,
            operations: self.args.scaled(operations),
            limit,
            buffer: 16 * 1024,
        }
    }

    /// Records processor time, rate and latency of a load.
    pub(crate) fn note(&mut self, id: &str, outcome: &Outcome) {
        self.figures.set(&format!("{id}.cpu"), outcome.cpu_micros());
        self.figures.set(&format!("{id}.rate"), outcome.rate());
        self.figures
            .set(&format!("{id}.p50"), outcome.percentile(0.50));
        self.figures
            .set(&format!("{id}.p99"), outcome.percentile(0.99));
    }

    /// Waits until the server is idle: less than a tenth of a processor for half a second.
    pub(crate) async fn settle(&self) -> Result<()> {
        for _ in 0..120 {
            let before = self.server.cpu()?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            if self.server.cpu()?.since(before) < Duration::from_millis(50) {
                break;
            }
        }
        Ok(())
    }

    /// Builds a request with a JSON body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        http1::request(&self.server.access, method, path, "application/json", body)
    }

    /// Sends one request and returns the response with any status.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
        let mut connection = Connection::open(&self.server.access, 64 * 1024).await?;
        connection.fetch(&self.request(method, path, body)).await
    }

    /// Gets a path as JSON.
    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.ask("GET", path, b"").await?;
        if answer.status != 200 {
            bail!(
                "GET {path}: status {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
        }
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// Creates one object.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<()> {
        let answer = self.ask("POST", path, body.to_string().as_bytes()).await?;
        if answer.status != 201 {
            bail!(
                "POST {path}: status {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
        }
        Ok(())
    }

    /// Creates a CRD and waits until its kind is served.
    pub(crate) async fn define(&self, definition: &Value) -> Result<()> {
        self.post(CRDS, definition.clone()).await?;
        let name = definition["metadata"]["name"]
            .as_str()
            .context("a CRD has a name")?;
        let plural = definition["spec"]["names"]["plural"]
            .as_str()
            .context("a CRD has a plural")?;
        self.established(name).await?;
        let collection = format!("/apis/{GROUP}/v1/{plural}");
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.ask("GET", &collection, b"").await?.status != 200 {
            if Instant::now() > deadline {
                bail!("{collection} is not served");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Waits for the condition `Established` of a CRD.
    pub(crate) async fn established(&self, name: &str) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let definition = self.get(&format!("{CRDS}/{name}")).await?;
            let conditions = definition["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            if conditions.iter().any(|condition| {
                condition["type"] == "Established" && condition["status"] == "True"
            }) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("{name} was not established within a minute")
    }
}

/// The path of CRDs.
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Bytes in a MiB.
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// Returns a Namespace object.
pub(crate) fn namespace(name: &str) -> Value {
    serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Returns the collection path of the standard kind in a namespace.
pub(crate) fn items(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/items")
}
