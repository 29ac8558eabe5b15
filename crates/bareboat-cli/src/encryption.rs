//! Encryption at rest for the command line: the configuration file, rewriting a data directory, health.

use crate::args::MigrateFlags;
use crate::client::Client;
use crate::output::shown;
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat::encryption::{Config, EncryptedBackend, Rules};
use bareboat::server::Page;
use bareboat::sqlite;
use bareboat::storage::{BoxError, CommitError, Record, Rewritten, Store, StoredValue, Write};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Returns the rules of a configuration file; none without a file.
pub(crate) fn rules(path: Option<&Path>) -> Result<Rules> {
    let Some(path) = path else {
        return Ok(Rules::none());
    };
    let unusable = || {
        format!(
            "the encryption configuration {} cannot be used",
            path.display()
        )
    };
    let text = fs::read_to_string(path).with_context(unusable)?;
    let config = Config::parse(&text).with_context(unusable)?;
    keep_out_of_dumps();
    Rules::new(&config).with_context(unusable)
}

/// Disables core dumps, because keys and secrets are in memory unencrypted.
fn keep_out_of_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    if let Err(error) = setrlimit(Resource::Core, none) {
        tracing::warn!(%error, "core dumps could not be switched off");
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "other programs of the same user can read the memory of the server");
        }
    }
}

/// The path where clients start a rewrite (POST) and read its progress (GET).
pub(crate) const PATH: &str = "/bareboat/encryption";

/// Rewrites all data with the first providers, while the server runs.
///
/// A file of its own is built anew, history included. In a store that other servers use, objects are written again, and
/// old values remain in the history until it is compacted.
#[derive(Clone)]
pub(crate) struct Rewrites {
    backend: Arc<EncryptedBackend>,
    store: Store,
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Default)]
enum State {
    #[default]
    Idle,
    Running,
    Done(Rewritten),
    Failed(String),
}

impl Rewrites {
    /// Starts without a running rewrite.
    pub(crate) fn new(backend: &Arc<EncryptedBackend>, store: &Store) -> Rewrites {
        Rewrites {
            backend: backend.clone(),
            store: store.clone(),
            state: Arc::default(),
        }
    }

    /// The page of [`PATH`].
    pub(crate) fn page(&self) -> Page {
        let (shown, started) = (self.clone(), self.clone());
        Page::new("application/json", move || shown.describe()).on_post(move || started.start())
    }

    fn describe(&self) -> Vec<u8> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = match &*state {
            State::Idle => value!({"state": "idle"}),
            State::Running => value!({"state": "running"}),
            State::Done(done) => value!({
                "state": "done",
                "inPlace": (!self.store.is_shared()),
                "values": (i64::try_from(done.values).unwrap_or(i64::MAX)),
                "rewritten": (i64::try_from(done.rewritten).unwrap_or(i64::MAX)),
            }),
            State::Failed(why) => value!({"state": "failed", "message": (why.as_str())}),
        };
        state.to_json()
    }

    /// Starts a rewrite unless one is running.
    fn start(&self) -> Vec<u8> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, State::Running) {
            *state = State::Running;
            let rewrites = self.clone();
            tokio::spawn(async move {
                let outcome = match rewrites.run().await {
                    Ok(done) => State::Done(done),
                    Err(error) => {
                        tracing::error!(error = %format!("{error:#}"), "stored values could not be encrypted again");
                        State::Failed(format!("{error:#}"))
                    }
                };
                let state = rewrites.state.lock();
                *state.unwrap_or_else(PoisonError::into_inner) = outcome;
            });
        }
        drop(state);
        self.describe()
    }
}

impl Rewrites {
    async fn run(&self) -> Result<Rewritten> {
        let backend = self.backend.clone();
        if !self.store.is_shared() {
            let rewritten = tokio::task::spawn_blocking(move || backend.encrypt_again());
            return Ok(rewritten.await??);
        }
        let outdated = tokio::task::spawn_blocking(move || backend.outdated());
        let (values, outdated) = outdated.await??;
        let mut rewritten = 0;
        for one in outdated {
            let resource = self.store.resource(&one.resource);
            // What changed in the meantime has the new key already.
            let found = resource.get(&one.key);
            let Some(entry) = found.filter(|entry| entry.revision() == one.revision) else {
                continue;
            };
            let (head, tail) = entry.persisted();
            let write = Write::replace(&resource, &entry, [head, tail].concat().into());
            match self.store.commit(write).await {
                Ok(_) => rewritten += 1,
                Err(CommitError::Conflict { .. } | CommitError::NotFound) => {}
                Err(error) => {
                    let what = format!("{} {} cannot be written", one.resource, one.key);
                    return Err(error).context(what);
                }
            }
        }
        Ok(Rewritten { values, rewritten })
    }
}

/// Makes a running server rewrite all data with its first providers, and waits for it.
pub(crate) async fn migrate_running(client: &Client, quiet: bool) -> Result<()> {
    let mut answer = client
        .create(PATH, &Value::object())
        .await
        .context("the server did not start; it needs --encryption-provider-config")?;
    loop {
        let text = |key: &str| {
            answer
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        let number = |key: &str| answer.get(key).and_then(Value::as_i64).unwrap_or(0);
        match text("state").as_str() {
            "running" => {}
            "done" => {
                let (values, rewritten) = (number("values"), number("rewritten"));
                let in_place = answer.get("inPlace").and_then(Value::as_bool);
                match in_place {
                    _ if quiet => {}
                    Some(false) => println!(
                        "{values} objects, {rewritten} written again with the first keys. Old values remain in the history: keep the \
                         old keys in the files for as long as --retain-for says, then remove them; running servers take the files within seconds"
                    ),
                    _ => {
                        println!("{values} values, {rewritten} rewritten; the file was built anew")
                    }
                }
                return Ok(());
            }
            "failed" => bail!("nothing was rewritten: {}", shown(&text("message"))),
            other => bail!("the server returned an unexpected answer: {other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        answer = client
            .get(PATH, "application/json")
            .await
            .context("the answer of the server has no progress")?;
    }
}

/// Returns an error if a KMS plug-in does not work.
pub(crate) fn health(backend: &EncryptedBackend) -> Result<(), String> {
    for plug_in in backend.rules().health() {
        if let Some(problem) = plug_in.problem {
            return Err(format!("the KMS plug-in {}: {problem}", plug_in.name));
        }
    }
    Ok(())
}

/// Rewrites all data in a data directory with the first providers of a configuration.
pub(crate) fn migrate(config: &Path, flags: &MigrateFlags) -> Result<()> {
    let rules = rules(Some(config))?;
    let _alone = crate::serve::lock(&flags.data_dir)
        .context("stop the server first: its file is rebuilt")?;
    let path = flags.data_dir.join("state.db");
    let dry_run = flags.dry_run;
    if !path.exists() {
        bail!("there is no {}", path.display());
    }
    let mut outdated = 0u64;
    let mut change = |record: &Record| -> Result<Option<StoredValue>, BoxError> {
        let new = rules.rewritten(record)?;
        outdated += u64::from(new.is_some());
        Ok(new)
    };
    let done = match dry_run {
        true => sqlite::inspect(&path, &mut change),
        false => sqlite::rewrite(&path, &mut change),
    };
    let done = done.with_context(|| format!("{} was not rewritten", path.display()))?;
    if !flags.quiet {
        match dry_run {
            true => println!("{} values, {outdated} would be rewritten", done.values),
            false => println!(
                "{} values, {} rewritten; the file was built anew",
                done.values, done.rewritten
            ),
        }
    }
    Ok(())
}
