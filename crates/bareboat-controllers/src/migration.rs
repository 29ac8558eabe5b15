//! Storage migration: rewrites the objects of a custom kind in the storage version, then updates `storedVersions` of the
//! definition.
//!
//! A migration is a client ([`Api`]) in this process or over a socket. It sends an empty patch for every object: the server
//! skips a write only if the stored bytes would stay the same. Objects are rewritten one by one while clients read and write
//! them. A migration can be interrupted and run again at any time.

mod objects;
mod trim;

use bareboat_api::kind::BoxFuture;
use bareboat_api::{Status, Str, Value};
use http::Method;
use objects::Objects;

/// The URL of definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Sends requests to a server. [`Client`](crate::Client) sends them to one in this process.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod controllers { pub use bareboat_controllers::*; } }
/// use bareboat::api::kind::BoxFuture;
/// use bareboat::api::{Status, Value};
/// use bareboat::controllers::Client;
/// use bareboat::controllers::migration::Api;
///
/// /// Says what it sends.
/// struct Loud(Client);
///
/// impl Api for Loud {
///     fn send<'a>(
///         &'a self,
///         method: http::Method,
///         path: &'a str,
///         accept: &'static str,
///         body: Option<&'a Value>,
///     ) -> BoxFuture<'a, Result<Value, Status>> {
///         println!("{method} {path}");
///         self.0.send(method, path, accept, body)
///     }
/// }
/// ```
pub trait Api: Send + Sync {
    /// Sends a request and reads the response. A failure is the Status that the server sent.
    ///
    /// `accept` is the media type of the response. A body is sent as a merge patch.
    fn send<'a>(
        &'a self,
        method: Method,
        path: &'a str,
        accept: &'static str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}

/// Options of a migration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Send every request as a dry run, and write nothing.
    pub dry_run: bool,
}

/// The progress of a migration.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Objects may be stored in other versions than the storage version.
    Started {
        /// The versions they may be stored in.
        stored: &'a [Str],
        /// The storage version.
        storage: &'a str,
    },
    /// Some objects were patched.
    Looked {
        /// How many objects were patched so far.
        objects: usize,
        /// How many of them were rewritten.
        rewritten: usize,
    },
    /// An object could not be rewritten.
    Failed {
        /// The object: `namespace/name`, or `name` if it is cluster-scoped.
        object: &'a str,
        /// The error message.
        why: &'a str,
    },
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// According to the definition, all objects are stored in the storage version.
    UpToDate,
    /// All objects are stored in the storage version now.
    Migrated {
        /// How many objects there are.
        objects: usize,
        /// How many were rewritten. A dry run does not know this.
        rewritten: usize,
    },
    /// Some objects could not be rewritten. The definition was not changed.
    Incomplete {
        /// How many objects there are.
        objects: usize,
        /// How many were rewritten.
        rewritten: usize,
        /// How many could not be rewritten.
        failed: usize,
    },
}

/// Why a definition could not be migrated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// A request failed.
    #[error("{what}: {} (code {})", status.message, status.code)]
    Request {
        /// The failed request in words.
        what: &'static str,
        /// The Status that the server answered with.
        status: Status,
    },
    /// The definition is not established, or is being deleted.
    #[error("the definition is not established, or is being deleted")]
    NotInUse,
    /// No version of the definition is served, so its objects have no URLs.
    #[error(
        "no version of the kind is served, so its objects have no URLs; set served: true for one of \
         spec.versions"
    )]
    NotServed,
    /// The definition was changed while its objects were being rewritten.
    #[error("the versions of the definition changed during the migration; run it again")]
    Changed,
}

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
        .map_err(request("cannot list definitions"))?;
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
    let definition = MigrationTarget::read(api, definition).await?;
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

/// The parts of a definition that a migration needs.
struct MigrationTarget {
    path: String,
    uid: Str,
    resource_version: Str,
    group: Str,
    plural: Str,
    storage: Str,
    stored: Vec<Str>,
    /// The version in URLs: the storage version if it is served, since that needs no conversion, or another one.
    reached: Option<Str>,
    in_use: bool,
}

impl MigrationTarget {
    async fn read(api: &dyn Api, name: &str) -> Result<MigrationTarget, MigrateError> {
        let path = format!("{DEFINITIONS}/{name}");
        let crd = api
            .send(Method::GET, &path, JSON, None)
            .await
            .map_err(request("cannot read the definition"))?;
        Ok(MigrationTarget::of(&crd, path))
    }

    fn of(crd: &Value, path: String) -> MigrationTarget {
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
        MigrationTarget {
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
