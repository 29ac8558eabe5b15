//! Storage migration: rewrites the objects of a custom kind in the version that is stored today, then says so in the
//! definition.
//!
//! It is a client like any other: whoever can send requests ([`Api`]) can migrate, in this process or over a socket. An
//! empty patch is all it takes, because a write that changes nothing is left out only if the bytes in the store would stay
//! the same. Objects are rewritten one by one while others read and write them; a migration can be interrupted
//! and run again at any time.

mod objects;
mod trim;

use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Str, Value};
use http::Method;
use objects::Objects;
use std::fmt;

/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Sends requests to a server.
pub trait Api: Send + Sync {
    /// Sends a request and reads the answer; failures come back as the Status the server gave.
    ///
    /// `accept` is the media type wanted; a body is sent as a merge patch.
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        accept: &'static str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}

/// How to migrate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Everything is tried, nothing is written.
    pub dry_run: bool,
}

/// What happens, for those who watch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Objects may be stored in other versions than the storage version.
    Started {
        /// The versions they may be stored in.
        stored: &'a [Str],
        /// The version they are stored in from now on.
        storage: &'a str,
    },
    /// So many objects were looked at.
    Looked {
        /// The objects so far.
        objects: usize,
        /// Those that were rewritten.
        rewritten: usize,
    },
    /// An object could not be rewritten.
    Failed {
        /// Its namespace and name, or its name.
        object: &'a str,
        /// Why.
        why: &'a str,
    },
}

/// What became of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// All objects are in the storage version already, says the definition.
    UpToDate,
    /// All objects are in the storage version now.
    Migrated {
        /// How many objects there are.
        objects: usize,
        /// How many were rewritten; with a dry run this is not known.
        rewritten: usize,
    },
    /// Some objects could not be rewritten; the definition was left as it was.
    Incomplete {
        /// How many objects there are.
        objects: usize,
        /// How many were rewritten.
        rewritten: usize,
        /// How many could not be.
        failed: usize,
    },
}

/// Why a definition could not be migrated.
#[derive(Debug)]
#[non_exhaustive]
pub enum MigrateError {
    /// A request failed.
    Request {
        /// What was tried.
        what: &'static str,
        /// What the server said.
        status: Status,
    },
    /// The definition is not established, or being deleted.
    NotInUse,
    /// No version of the definition is served, so that objects cannot be reached.
    NotServed,
    /// The definition was changed while its objects were being rewritten.
    Changed,
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MigrateError::Request { what, status } => {
                write!(f, "{what}: {} (code {})", status.message, status.code)
            }
            MigrateError::NotInUse => {
                f.write_str("the definition is not established, or is being deleted")
            }
            MigrateError::NotServed => f.write_str(
                "no version of the kind is served, so that its objects cannot be reached; set \
                 served: true for one in spec.versions",
            ),
            MigrateError::Changed => f.write_str(
                "the versions of the definition were changed meanwhile; run the migration again",
            ),
        }
    }
}

impl std::error::Error for MigrateError {}

fn request(what: &'static str) -> impl FnOnce(Status) -> MigrateError {
    move |status| MigrateError::Request { what, status }
}

const JSON: &str = "application/json";

/// The names of all definitions.
pub async fn definitions(api: &dyn Api) -> Result<Vec<String>, MigrateError> {
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = api
        .send(Method::GET, DEFINITIONS, accept, None)
        .await
        .map_err(request("definitions cannot be listed"))?;
    let items = list.get("items").and_then(Value::as_array).unwrap_or(&[]);
    let names = items
        .iter()
        .filter_map(|item| item.at(&["metadata", "name"])?.as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Migrates the objects of one definition.
pub async fn migrate(
    api: &dyn Api,
    definition: &str,
    options: Options,
    tell: &(dyn Fn(Progress<'_>) + Send + Sync),
) -> Result<Outcome, MigrateError> {
    let definition = Definition::read(api, definition).await?;
    if !definition.in_use {
        return Err(MigrateError::NotInUse);
    }
    if definition.stored == [definition.storage.clone()] {
        return Ok(Outcome::UpToDate);
    }
    tell(Progress::Started {
        stored: &definition.stored,
        storage: &definition.storage,
    });
    let done = Objects::of(&definition, api, options)?
        .rewrite(tell)
        .await?;
    if done.failed > 0 {
        return Ok(Outcome::Incomplete {
            objects: done.looked,
            rewritten: done.rewritten,
            failed: done.failed,
        });
    }
    if !options.dry_run {
        trim::stored_versions(api, &definition).await?;
    }
    Ok(Outcome::Migrated {
        objects: done.looked,
        rewritten: done.rewritten,
    })
}

/// A definition, as far as a migration looks at it.
struct Definition {
    path: String,
    uid: Str,
    resource_version: Str,
    group: Str,
    plural: Str,
    storage: Str,
    stored: Vec<Str>,
    /// The version to reach objects in: the storage version, which needs the least conversion, or another.
    reached: Option<Str>,
    in_use: bool,
}

impl Definition {
    async fn read(api: &dyn Api, name: &str) -> Result<Definition, MigrateError> {
        let path = format!("{DEFINITIONS}/{name}");
        let crd = api
            .send(Method::GET, &path, JSON, None)
            .await
            .map_err(request("the definition cannot be read"))?;
        Ok(Definition::of(&crd, path))
    }

    fn of(crd: &Value, path: String) -> Definition {
        let text = |path: &[&str]| Str::new(crd.at(path).and_then(Value::as_str).unwrap_or(""));
        let list = |path: &[&str]| crd.at(path).and_then(Value::as_array).unwrap_or(&[]);
        let versions = list(&["spec", "versions"]);
        let is = |version: &Value, key: &str| version.get(key) == Some(&Value::Bool(true));
        let name = |version: &Value| {
            let name = version.get("name").and_then(Value::as_str);
            Str::new(name.unwrap_or(""))
        };
        let storage = versions.iter().find(|version| is(version, "storage"));
        let served = || versions.iter().filter(|version| is(version, "served"));
        let holds = |kind: &str| {
            list(&["status", "conditions"]).iter().any(|condition| {
                condition.get("type").and_then(Value::as_str) == Some(kind)
                    && condition.get("status").and_then(Value::as_str) == Some("True")
            })
        };
        Definition {
            path,
            uid: text(&["metadata", "uid"]),
            resource_version: text(&["metadata", "resourceVersion"]),
            group: text(&["spec", "group"]),
            plural: text(&["spec", "names", "plural"]),
            storage: storage.map(name).unwrap_or_default(),
            stored: list(&["status", "storedVersions"])
                .iter()
                .filter_map(Value::as_str)
                .map(Str::new)
                .collect(),
            reached: served()
                .find(|version| is(version, "storage"))
                .or_else(|| served().next())
                .map(name),
            in_use: holds("Established") && crd.at(&["metadata", "deletionTimestamp"]).is_none(),
        }
    }
}
