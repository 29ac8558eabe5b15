//! Rewrites the objects of a definition, page by page and several at the same time.

use super::{Api, MigrateError, MigrationTarget, Options, Progress, request};
use crate::kinds::push_segment;
use bareboat_api::{Status, Str, Value};
use futures_util::StreamExt as _;
use futures_util::stream;
use http::Method;
use std::time::Duration;

/// The page size of lists.
const PAGE: usize = 500;
/// How many objects are rewritten at the same time: enough for a server to commit them in groups.
const PARALLEL: usize = 16;
/// How often a request is tried that fails for a reason that may pass.
const TRIES: u32 = 5;
const OBJECTS: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const OBJECT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The objects of a definition.
pub(super) struct Objects<'a> {
    api: &'a dyn Api,
    definition: &'a MigrationTarget,
    version: &'a str,
    options: Options,
}

/// Counts of objects.
#[derive(Default)]
pub(super) struct Done {
    pub(super) looked: usize,
    pub(super) rewritten: usize,
    pub(super) failed: usize,
}

/// An object in a list.
struct Item {
    namespace: Str,
    name: Str,
    resource_version: Str,
}

impl<'a> Objects<'a> {
    pub(super) fn of(
        definition: &'a MigrationTarget,
        api: &'a dyn Api,
        options: Options,
    ) -> Result<Objects<'a>, MigrateError> {
        let version = definition.reached.as_deref();
        Ok(Objects {
            version: version.ok_or(MigrateError::NotServed)?,
            api,
            definition,
            options,
        })
    }

    pub(super) async fn rewrite(
        &self,
        tell: &(dyn Fn(Progress<'_>) + Send + Sync),
    ) -> Result<Done, MigrateError> {
        let mut done = Done::default();
        let mut token = String::new();
        let mut restarts = 0;
        loop {
            let list = match self.page(&token).await {
                Ok(list) => list,
                // The snapshot of the list has expired. Objects that were rewritten cost little the second time.
                Err(status) if status.code == 410 && !token.is_empty() && restarts < TRIES => {
                    token.clear();
                    done = Done::default();
                    restarts += 1;
                    continue;
                }
                Err(status) => return Err(request("cannot list objects")(status)),
            };
            let items = list.get("items").and_then(Value::as_array).unwrap_or(&[]);
            let items: Vec<Item> = items.iter().map(Item::of).collect();
            done.looked += items.len();
            let mut running = stream::iter(items)
                .map(|item| async move {
                    let outcome = self.touch(&item).await;
                    (item, outcome)
                })
                .buffer_unordered(PARALLEL);
            while let Some((item, outcome)) = running.next().await {
                match outcome {
                    Ok(rewritten) => done.rewritten += usize::from(rewritten),
                    Err(status) => {
                        done.failed += 1;
                        let (object, why) = (item.label(), status.message);
                        tell(Progress::Failed {
                            object: &object,
                            why: &why,
                        });
                    }
                }
            }
            tell(Progress::Looked {
                objects: done.looked,
                rewritten: done.rewritten,
            });
            let next = list.at(&["metadata", "continue"]).and_then(Value::as_str);
            match next.filter(|next| !next.is_empty()) {
                Some(next) => token = next.to_owned(),
                None => return Ok(done),
            }
        }
    }

    async fn page(&self, token: &str) -> Result<Value, Status> {
        let MigrationTarget { group, plural, .. } = self.definition;
        let mut path = format!("/apis/{group}/{}/{plural}?limit={PAGE}", self.version);
        if !token.is_empty() {
            path.push_str("&continue=");
            push_segment(&mut path, token);
        }
        with_retries(async || self.api.send(Method::GET, &path, OBJECTS, None).await).await
    }

    /// Writes an object without changes. Returns whether it was stored anew.
    async fn touch(&self, item: &Item) -> Result<bool, Status> {
        let path = self.path(item);
        let nothing = Value::object();
        let send = async || {
            self.api
                .send(Method::PATCH, &path, OBJECT, Some(&nothing))
                .await
        };
        match with_retries(send).await {
            Ok(object) => Ok(Item::of(&object).resource_version != item.resource_version),
            // The object was deleted meanwhile.
            Err(status) if status.code == 404 => Ok(false),
            Err(status) => Err(status),
        }
    }

    fn path(&self, item: &Item) -> String {
        let MigrationTarget { group, plural, .. } = self.definition;
        let mut path = format!("/apis/{group}/{}", self.version);
        if !item.namespace.is_empty() {
            path.push_str("/namespaces/");
            push_segment(&mut path, &item.namespace);
        }
        path.push('/');
        path.push_str(plural);
        path.push('/');
        push_segment(&mut path, &item.name);
        path.push_str("?fieldManager=bareboat-migrate");
        if self.options.dry_run {
            path.push_str("&dryRun=All");
        }
        path
    }
}

/// Sends a request again if it fails with a conflict or because the server is overloaded.
async fn with_retries(send: impl AsyncFn() -> Result<Value, Status>) -> Result<Value, Status> {
    let mut pause = Duration::from_millis(50);
    for _ in 1..TRIES {
        match send().await {
            Err(status) if matches!(status.code, 409 | 429 | 503 | 504) => {
                tokio::time::sleep(pause).await;
                pause *= 4;
            }
            other => return other,
        }
    }
    send().await
}

impl Item {
    fn of(object: &Value) -> Item {
        let text = |key: &str| {
            let found = object.at(&["metadata", key]).and_then(Value::as_str);
            Str::new(found.unwrap_or(""))
        };
        Item {
            namespace: text("namespace"),
            name: text("name"),
            resource_version: text("resourceVersion"),
        }
    }

    fn label(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.to_string(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }
}
