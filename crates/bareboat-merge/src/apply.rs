//! Server-side apply, and the update of managed fields on every other write.
//!
//! A [`FieldManager`] is created for one request from the caller's knowledge of the kind: its types
//! per version, the fields its endpoint resets, and a [`Converter`] between versions. The caller
//! does defaulting, validation and storing afterwards.

mod conflict;
mod convert;
mod last_applied;
mod own;
mod prune;
mod update;

pub use conflict::{Conflict, Conflicts};
pub use convert::{Conversions, ConvertError, Converter, NoConversion};

use crate::{
    fields::FieldSet,
    managed::{self, Entry, Managed, Operation},
    typed::{self, TypeError},
};
use bareboat_api::{Str, Value, typing::TypeNode};

/// The types and fields of a kind per version; [`FieldManager`] has an example.
///
/// The main endpoint of a kind with a status subresource leaves `status` alone:
///
/// ```
/// use bareboat_api::typing::{NodeType, TypeNode};
/// use bareboat_api::value;
/// use bareboat_merge::apply::{FieldManager, NoConversion, Versions, Writer};
/// use bareboat_merge::fields::FieldSet;
///
/// struct Anything;
/// impl TypeNode for Anything {
///     fn node_type(&self) -> NodeType { NodeType::Untyped }
///     fn field(&self, _: &str) -> Option<&dyn TypeNode> { Some(&Anything) }
///     fn items(&self) -> Option<&dyn TypeNode> { Some(&Anything) }
/// }
/// struct MainEndpoint(FieldSet);
/// impl Versions for MainEndpoint {
///     fn type_of(&self, _: &str) -> Option<&dyn TypeNode> { Some(&Anything) }
///     fn reset_fields(&self, _: &str) -> Option<&FieldSet> { Some(&self.0) }
/// }
///
/// let versions = MainEndpoint(FieldSet::of_names(&["status"]));
/// let fields = FieldManager {
///     api_version: "v1", kind: "Ship", versions: &versions, converter: &NoConversion, empty: &|| None,
/// };
/// let ship = value!({
///     "apiVersion": "v1", "kind": "Ship", "metadata": {"name": "s"},
///     "spec": {"sails": 2}, "status": {"phase": "Afloat"},
/// });
/// let writer = Writer { manager: "captain", subresource: "", now: "2024-01-01T00:00:00Z" };
/// let written = fields.apply(None, &ship, false, writer)?;
/// let owned = &written.at(&["metadata", "managedFields"]).and_then(|list| list.as_array()).expect("a list")[0];
/// assert!(owned.at(&["fieldsV1", "f:spec", "f:sails"]).is_some());
/// assert!(owned.at(&["fieldsV1", "f:status"]).is_none());
/// # Ok::<(), bareboat_merge::apply::ApplyError>(())
/// ```
pub trait Versions {
    /// Returns the type of the kind in a version; `None` for versions that no longer exist.
    fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode>;

    /// Returns the fields that writes through this endpoint do not change, such as `status` of the
    /// main one.
    fn reset_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }

    /// Returns the only fields that writes through this endpoint change, such as
    /// `spec.ephemeralContainers`; `None` for all fields.
    fn kept_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        None
    }
}

/// The manager, endpoint and time of a write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The name of the field manager; an empty one counts as `unknown`.
    pub manager: &'a str,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, in the API's format.
    pub now: &'a str,
}

/// Updates `managedFields` when objects are written.
///
/// ```
/// use bareboat_api::{typing::{NodeType, TypeNode}, value};
/// use bareboat_merge::apply::{FieldManager, NoConversion, Versions, Writer};
///
/// struct Anything;
/// impl TypeNode for Anything {
///     fn node_type(&self) -> NodeType { NodeType::Untyped }
///     fn field(&self, _: &str) -> Option<&dyn TypeNode> { Some(&Anything) }
///     fn items(&self) -> Option<&dyn TypeNode> { Some(&Anything) }
/// }
/// struct OneVersion;
/// impl Versions for OneVersion {
///     fn type_of(&self, api_version: &str) -> Option<&dyn TypeNode> {
///         (api_version == "example.com/v1").then_some(&Anything as &dyn TypeNode)
///     }
/// }
///
/// let fields = FieldManager {
///     api_version: "example.com/v1",
///     kind: "Ship",
///     versions: &OneVersion,
///     converter: &NoConversion,
///     empty: &|| None,
/// };
/// let writer = |manager| Writer { manager, subresource: "", now: "2024-01-01T00:00:00Z" };
/// let ship = |sails: i64| value!({
///     "apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "s"}, "spec": {"sails": sails}
/// });
/// let live = fields.apply(None, &ship(2), false, writer("captain"))?;
/// let mutiny = fields.apply(Some(&live), &ship(0), false, writer("crew")).unwrap_err();
/// assert_eq!(
///     mutiny.to_string(),
///     "Apply failed with 1 conflict: conflict with \"captain\": .spec.sails"
/// );
/// # Ok::<(), bareboat_merge::apply::ApplyError>(())
/// ```
#[derive(Clone, Copy)]
pub struct FieldManager<'a> {
    /// The group and version of the request.
    pub api_version: &'a str,
    /// The kind of the request.
    pub kind: &'a str,
    /// The types of the kind.
    pub versions: &'a dyn Versions,
    /// Conversion between versions, for entries of managers that used another version.
    pub converter: &'a dyn Converter,
    /// Returns an object of the kind with nothing set: the structs a typed object always has, such as
    /// `{"spec": {"strategy": {}}, "status": {}}`. The creator of an object does not own them.
    /// `None` for kinds without such structs, like custom ones. Few writes ask for it.
    pub empty: &'a dyn Fn() -> Option<Value>,
}

bareboat_api::opaque_debug!(FieldManager<'_>);

/// The error of a configuration that cannot be applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The configuration has another kind or version: a bad request.
    #[error("invalid object type: {0}")]
    WrongType(String),
    /// The configuration has managed fields: a bad request.
    #[error("metadata.managedFields must be nil")]
    HasManagedFields,
    /// The configuration does not fit the type; Kubernetes answers 500.
    #[error("failed to create typed patch object ({object}): {error}")]
    Untyped {
        /// Namespace, name and type of the configuration.
        object: String,
        /// Where and why the configuration does not fit.
        error: TypeError,
    },
    /// The type of the requested version is unknown.
    #[error("no corresponding type for {0}")]
    NoType(String),
    /// Other managers own fields that the configuration changes.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// An object could not be converted to the version of some manager.
    #[error("failed to convert object to {version}: {text}")]
    Conversion {
        /// The version of the manager's fields.
        version: Str,
        /// The error of the converter.
        text: String,
    },
    /// The converter needs another result first; see [`Conversions`].
    #[error("an object has to be converted first")]
    NeedsConversion,
}

impl FieldManager<'_> {
    /// Merges a configuration into the live object and records the owners of its fields.
    ///
    /// Returns the object to default, validate and store. Without a live object the result is to be
    /// created.
    // Upstream: structured-merge-diff, merge/update.go, Apply; apimachinery managedfields/internal.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        force: bool,
        writer: Writer<'_>,
    ) -> Result<Value, ApplyError> {
        self.check_type(config)?;
        let node = self.versions.type_of(self.api_version);
        let node =
            node.ok_or_else(|| ApplyError::NoType(type_name(self.api_version, self.kind)))?;
        if managed::of(config).is_some_and(|list| !list.is_null()) {
            return Err(ApplyError::HasManagedFields);
        }
        typed::validate(config, node).map_err(|error| ApplyError::Untyped {
            object: describe(self.api_version, self.kind, config),
            error,
        })?;

        let mut result = self.merge_config(live, config, node, force, writer);
        if writer.manager == last_applied::KUBECTL
            && let (Err(ApplyError::Conflicts(conflicts)), Some(live)) = (&result, live)
            && let Some(allowed) = last_applied::allowed(live, self.api_version, node)
        {
            let remaining = conflicts.outside(&allowed);
            result = match remaining.is_empty() {
                true => self.merge_config(Some(live), config, node, true, writer),
                false => Err(ApplyError::Conflicts(remaining)),
            };
        }
        let mut object = result?;
        if writer.manager == last_applied::KUBECTL {
            last_applied::refresh(&mut object, config);
        }
        Ok(object)
    }

    /// Merges a valid configuration.
    fn merge_config(
        &self,
        live: Option<&Value>,
        config: &Value,
        node: &dyn TypeNode,
        force: bool,
        writer: Writer<'_>,
    ) -> Result<Value, ApplyError> {
        let mut own = self.entry(Operation::Apply, writer);
        own.fields = typed::to_set(config, node);
        if let Some(reset) = self.versions.reset_fields(self.api_version) {
            own.fields.subtract_trees(reset);
        }
        if let Some(kept) = self.versions.kept_fields(self.api_version) {
            own.fields.keep_trees(kept);
        }
        let Some(live) = live else {
            own.time = Some(writer.now.into());
            managed::strip(&mut own.fields);
            let mut object = config.clone();
            put_own(&mut object, Managed::default(), own);
            return Ok(object);
        };

        let mut object = live.clone();
        let mut others = Managed::trusted(managed::take(&mut object).unwrap_or_default());
        if others.0.is_empty() {
            others.0.extend(self.before_first_apply(live, writer));
        }
        self.settle_all(&mut others);
        let last = others
            .place_of(&own)
            .map(|place| others.0.swap_remove(place));

        typed::merge(&mut object, config, node);
        let hollow = match &last {
            Some(last) => self.prune(&mut object, node, last, &own, &others, config)?,
            None => None,
        };
        self.take_from(&mut others, live, hollow.as_ref().unwrap_or(&object), force)?;

        let unchanged = managed::same_elsewhere(live, &object);
        own.time = match unchanged {
            true => last.and_then(|last| last.time),
            false => Some(writer.now.into()),
        };
        managed::strip(&mut own.fields);
        put_own(&mut object, others, own);
        Ok(object)
    }

    /// Assigns the fields of an object without managed fields to the manager
    /// `before-first-apply`.
    fn before_first_apply(&self, live: &Value, writer: Writer<'_>) -> Option<Entry> {
        let manager = "before-first-apply";
        let writer = Writer { manager, ..writer };
        let changes = self.changes_from_empty(live)?;
        let mut entry = self.entry(Operation::Update, writer);
        entry.time = Some(writer.now.into());
        entry.fields = changes.changed;
        Some(entry).filter(|entry| !entry.fields.is_empty())
    }

    /// Fits every set to its current type; drops entries of versions that no longer exist.
    fn settle_all(&self, managed: &mut Managed) {
        managed
            .0
            .retain_mut(|entry| match self.versions.type_of(&entry.api_version) {
                Some(node) => {
                    typed::settle_with_type(&mut entry.fields, node);
                    true
                }
                None => false,
            });
    }

    fn check_type(&self, config: &Value) -> Result<(), ApplyError> {
        let api_version = config
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = config
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if (api_version, kind) == (self.api_version, self.kind) {
            return Ok(());
        }
        Err(ApplyError::WrongType(type_name(api_version, kind)))
    }

    fn entry(&self, operation: Operation, writer: Writer<'_>) -> Entry {
        let manager = if writer.manager.is_empty() {
            "unknown"
        } else {
            writer.manager
        };
        Entry {
            manager: manager.into(),
            operation,
            api_version: self.api_version.into(),
            subresource: writer.subresource.into(),
            time: None,
            fields: FieldSet::new(),
        }
    }
}

/// Returns namespace, name and type of a configuration, as in Kubernetes' errors.
pub fn describe(api_version: &str, kind: &str, config: &Value) -> String {
    let text = |name| {
        config
            .at(&["metadata", name])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = type_name(api_version, kind);
    format!("{}/{}; {kind}", text("namespace"), text("name"))
}

fn put_own(object: &mut Value, mut managed: Managed, own: Entry) {
    if !own.fields.is_empty() {
        managed.0.push(own);
    }
    managed::put(object, managed);
}

/// Prints a type like Kubernetes: `apps/v1, Kind=Deployment`, with a leading slash for the core
/// group.
fn type_name(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

#[cfg(test)]
mod tests;
