//! Rewriting the objects of a definition, page by page and several at once.

use super::{Api, Definition, MigrateError, Options, Progress, request};
use crate::kinds::push_segment;
use bareboat_api::{Status, Str, Value};
use futures_util::StreamExt as _;
use futures_util::stream;
use http::Method;
use std::time::Duration;

/// How many objects are listed at a time.
const PAGE: usize = 500;
/// How many objects are rewritten at once: enough for a server to write them in groups.
const AT_ONCE: usize = 16;
/// How often something that may pass is tried.
const TRIES: u32 = 5;
const OBJECTS: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const OBJECT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The objects of a definition.
pub(super) struct Objects<'a> {
    api: &'a dyn Api,
    definition: &'a Definition,
    version: &'a str,
    options: Options,
}

/// What was done.
#[derive(Default)]
pub(super) struct Done {
    pub(super) looked: usize,
    pub(super) rewritten: usize,
    pub(super) failed: usize,
}

/// An object of a list.
struct Item {
    namespace: Str,
    name: Str,
    resource_version: Str,
}

impl<'a> Objects<'a> {
    pub(super) fn of(
        definition: &'a Definition,
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
                // The snapshot is gone. What was rewritten stays so: looking again costs little.
                Err(status) if status.code == 410 && !token.is_empty() && restarts < TRIES => {
                    token.clear();
                    done = Done::default();
                    restarts += 1;
                    continue;
                }
                Err(status) => return Err(request("objects cannot be listed")(status)),
            };
            let items = list.get("items").and_then(Value::as_array).unwrap_or(&[]);
            let items: Vec<Item> = items.iter().map(Item::of).collect();
            done.looked += items.len();
            let mut running = stream::iter(items)
                .map(|item| async move {
                    let outcome = self.touch(&item).await;
                    (item, outcome)
                })
                .buffer_unordered(AT_ONCE);
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
        let Definition { group, plural, .. } = self.definition;
        let mut path = format!("/apis/{group}/{}/{plural}?limit={PAGE}", self.version);
        if !token.is_empty() {
            path.push_str("&continue=");
            push_segment(&mut path, token);
        }
        patiently(async || self.api.send(Method::GET, &path, OBJECTS, None).await).await
    }

    /// Writes an object as it is; tells whether that made a difference.
    async fn touch(&self, item: &Item) -> Result<bool, Status> {
        let path = self.path(item);
        let nothing = Value::object();
        let send = async || {
            self.api
                .send(Method::PATCH, &path, OBJECT, Some(&nothing))
                .await
        };
        match patiently(send).await {
            Ok(object) => Ok(Item::of(&object).resource_version != item.resource_version),
            // Deleted in the meantime.
            Err(status) if status.code == 404 => Ok(false),
            Err(status) => Err(status),
        }
    }

    fn path(&self, item: &Item) -> String {
        let Definition { group, plural, .. } = self.definition;
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

/// Tries again what may pass: somebody else was faster, or the server has too much to do.
async fn patiently(send: impl AsyncFn() -> Result<Value, Status>) -> Result<Value, Status> {
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
