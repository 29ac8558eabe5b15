//! Functions of a program that run when a server starts, while it runs, and when it stops.

use super::Server;
use super::health::Check;
use super::state::Ending;
use bareboat_api::kind::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Why a hook failed.
pub(crate) type HookError = Box<dyn std::error::Error + Send + Sync>;

type OnStart = Box<dyn FnOnce(Server) -> BoxFuture<'static, Result<(), HookError>> + Send>;
type Task = Box<dyn FnOnce(Server, Stopping) -> BoxFuture<'static, ()> + Send>;
type OnStop = Box<dyn FnOnce(Server) -> BoxFuture<'static, ()> + Send>;

/// Resolves when the server begins to shut down.
pub struct Stopping(Ending);

bareboat_api::opaque_debug!(Stopping);

impl Stopping {
    /// Waits until the server begins to shut down.
    pub async fn begun(self) {
        self.0.begun().await;
    }
}

/// The hooks of a server.
#[derive(Default)]
pub(crate) struct Hooks {
    on_start: Mutex<Vec<(String, OnStart, Arc<Progress>)>>,
    tasks: Mutex<Vec<Task>>,
    on_stop: Mutex<Vec<(String, OnStop)>>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

/// How far a hook is: the reason why it is not done.
struct Progress(Mutex<Option<String>>);

impl Hooks {
    pub(crate) fn add_start<F, R, E>(&mut self, name: &str, hook: F)
    where
        F: FnOnce(Server) -> R + Send + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<HookError>,
    {
        let waits = "the server has not been started".to_owned();
        let progress = Arc::new(Progress(Mutex::new(Some(waits))));
        let hook: OnStart = Box::new(move |server| {
            let running = hook(server);
            Box::pin(async move { running.await.map_err(Into::into) })
        });
        let hooks = self.on_start.get_mut();
        hooks.push((name.to_owned(), hook, progress));
    }

    pub(crate) fn add_task<F, R>(&mut self, task: F)
    where
        F: FnOnce(Server, Stopping) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let task: Task = Box::new(move |server, stopping| Box::pin(task(server, stopping)));
        self.tasks.get_mut().push(task);
    }

    pub(crate) fn add_stop<F, R>(&mut self, name: &str, hook: F)
    where
        F: FnOnce(Server) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let hook: OnStop = Box::new(move |server| Box::pin(hook(server)));
        self.on_stop.get_mut().push((name.to_owned(), hook));
    }

    /// Returns a readiness check for each start hook.
    pub(crate) fn checks(&mut self) -> Vec<(String, Check)> {
        let hooks = self.on_start.get_mut().iter();
        let check = |(name, _, progress): &(String, OnStart, Arc<Progress>)| {
            let progress = progress.clone();
            let check: Check = Arc::new(move || match &*progress.0.lock() {
                None => Ok(()),
                Some(why) => Err(why.clone()),
            });
            (format!("poststarthook/{name}"), check)
        };
        hooks.map(check).collect()
    }

    /// Starts the hooks and tasks, the first time it is called.
    pub(crate) fn start(&self, server: &Server) {
        let mut running = Vec::new();
        // Taken before the loops, which must not hold the locks.
        let hooks = std::mem::take(&mut *self.on_start.lock());
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for (name, hook, progress) in hooks {
            *progress.0.lock() = Some("it has not finished".to_owned());
            let hook = hook(server.clone());
            running.push(tokio::spawn(async move {
                let outcome = hook.await;
                if let Err(error) = &outcome {
                    tracing::error!(hook = name, %error, "a start hook failed; the server is not ready");
                }
                *progress.0.lock() = outcome.err().map(|error| error.to_string());
            }));
        }
        for task in tasks {
            let stopping = Stopping(server.state.ending());
            running.push(tokio::spawn(task(server.clone(), stopping)));
        }
        self.running.lock().extend(running);
    }

    /// Runs the stop hooks, in the order in which they were added.
    pub(crate) async fn stop(&self, server: &Server) {
        let hooks = std::mem::take(&mut *self.on_stop.lock());
        for (name, hook) in hooks {
            tracing::debug!(hook = name, "a stop hook runs");
            hook(server.clone()).await;
        }
    }

    /// Waits for hooks and tasks after the shutdown has begun, for a limited time.
    pub(crate) async fn finish(&self, limit: Duration) {
        let running = std::mem::take(&mut *self.running.lock());
        let until = tokio::time::Instant::now() + limit;
        for mut task in running {
            if tokio::time::timeout_at(until, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}
