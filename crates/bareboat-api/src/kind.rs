//! `Kind`: all data the server needs to serve a resource.
//!
//! Discovery, routing, OpenAPI, tables and the write pipeline are derived from it; behaviour that
//! is not data is in the few traits it carries.

mod action;
mod columns;
mod conventions;
mod convert;
mod policy;
mod reading;
mod reservation;
mod shape;
mod strategy;
mod verbs;

pub use action::{Acted, Action, ObjectAccess, ObjectEdit, ObjectRef, Posted, PostedType};
pub use columns::{Cell, Column, Now};
pub use conventions::{
    Conventions, Decoding, DiscoveryStyle, FieldSelectors, MediaErrors, OpenApiStyle, Routes,
    ScaleStyle,
};
pub use convert::{AsyncConvert, BoxFuture, Conversion, ConvertError, PureConvert};
pub use policy::{Fields, Generation, NameRule, Policy, UnknownField};
pub use reading::{AskedRight, OnGet, ReadFilter, Reader, Search, Sees, Sought, Visibility};
pub use reservation::{Dependency, Reservation, Reservations};
pub use shape::{Findings, PublishedSchema, Shape, Typing, Validated};
pub use strategy::{Companion, NoStrategy, Strategy, User, WriteContext};
pub use verbs::{Verb, Verbs};

use crate::Str;
use std::fmt;
use std::sync::Arc;

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in namespaces.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// Who defines a kind. How its objects are treated is in its [`Conventions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The API itself. A definition cannot take its name.
    BuiltIn,
    /// A CustomResourceDefinition, or the program that embeds the server.
    Custom,
}

/// The names of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The plural in URLs: `configmaps`.
    pub plural: Str,
    /// The singular: `configmap`.
    pub singular: Str,
    /// The kind: `ConfigMap`.
    pub kind: Str,
    /// The kind of lists: `ConfigMapList`.
    pub list_kind: Str,
    /// Short names: `cm`.
    pub short: Vec<Str>,
    /// Categories such as `all`.
    pub categories: Vec<Str>,
}

impl Names {
    /// Derives all names from the plural and the kind; the singular is the kind in lower case.
    pub fn new(plural: &str, kind: &str) -> Names {
        Names {
            plural: Str::new(plural),
            singular: Str::new(kind.to_lowercase()),
            kind: Str::new(kind),
            list_kind: Str::new(format!("{kind}List")),
            short: Vec::new(),
            categories: Vec::new(),
        }
    }
}

/// A field that field selectors may name, and where its value is.
#[derive(Clone)]
pub struct SelectableField {
    /// The name in selectors, such as `status.phase`.
    pub name: Str,
    /// Reads its text from an object; an absent field is the empty text.
    pub read: fn_of::Text,
}

/// Types of functions that a kind holds.
pub mod fn_of {
    use crate::Value;
    use std::sync::Arc;

    /// Reads a text from an object.
    pub type Text = Arc<dyn Fn(&Value) -> crate::Str + Send + Sync>;
}

impl SelectableField {
    /// Returns a field that is found under its own dotted name.
    pub fn at_path(name: &str) -> SelectableField {
        let path: Vec<Str> = name.split('.').map(Str::new).collect();
        SelectableField::computed(name, move |object| {
            let found = path.iter().try_fold(object, |value, key| value.get(key));
            match found {
                None | Some(crate::Value::Null) => Str::default(),
                Some(crate::Value::String(text)) => text.clone(),
                Some(other) => Str::new(other.to_string()),
            }
        })
    }

    /// Returns a field whose value is computed.
    pub fn computed(
        name: &str,
        read: impl Fn(&crate::Value) -> Str + Send + Sync + 'static,
    ) -> SelectableField {
        SelectableField {
            name: Str::new(name),
            read: Arc::new(read),
        }
    }
}

impl fmt::Debug for SelectableField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The role of a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubresourceRole {
    /// The `status` of the object, written apart from the rest.
    Status,
    /// The same object with its own strategy (`finalize`, `approval`, `ephemeralcontainers`).
    Part,
    /// The number of replicas as an `autoscaling/v1` Scale.
    Scale(ScalePaths),
    /// An object of another type is posted and processed (`binding`, `eviction`, `token`).
    Action,
    /// A connection: requests are answered by another program (`exec`, `proxy`, `log`).
    Connect {
        /// Whether paths below it (`proxy/some/page`) belong to it as well.
        paths: bool,
    },
}

/// The paths of a Scale's numbers in the object, dotted and with a leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Such as `.spec.replicas`.
    pub spec_replicas: Str,
    /// Such as `.status.replicas`.
    pub status_replicas: Str,
    /// Such as `.status.selector`; a label selector as text or as an object.
    pub label_selector: Option<Str>,
}

/// A part of an object with its own URL.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last segment of the URL.
    pub name: Str,
    /// What the subresource does: status, scale, and so on.
    pub role: SubresourceRole,
    /// The verbs it supports.
    pub verbs: Verbs,
    /// Group, version and kind of the request and response body, where that is not the object
    /// itself.
    pub response: Option<(Str, Str, Str)>,
    /// Processes posted objects, where the role is [`SubresourceRole::Action`].
    pub action: Option<Arc<dyn Action>>,
}

impl Subresource {
    /// Returns the usual `status` subresource.
    pub fn status() -> Subresource {
        Subresource::part("status", SubresourceRole::Status)
    }

    /// Returns a `scale` with the given paths.
    pub fn scale(paths: ScalePaths) -> Subresource {
        Subresource {
            response: Some(("autoscaling".into(), "v1".into(), "Scale".into())),
            ..Subresource::part("scale", SubresourceRole::Scale(paths))
        }
    }

    /// Returns a connection with these verbs.
    pub fn connection(name: &str, verbs: &[Verb]) -> Subresource {
        Subresource {
            verbs: Verbs::of(verbs),
            ..Subresource::part(name, SubresourceRole::Connect { paths: false })
        }
    }

    /// Returns the same connection with all paths below it.
    #[must_use]
    pub fn with_paths(mut self) -> Subresource {
        if let SubresourceRole::Connect { paths } = &mut self.role {
            *paths = true;
        }
        self
    }

    /// Returns a subresource that accepts POST; `response` is the type in discovery.
    pub fn action(
        name: &str,
        response: (&str, &str, &str),
        action: impl Action + 'static,
    ) -> Subresource {
        Subresource {
            verbs: Verbs::of(&[Verb::Create]),
            response: Some((response.0.into(), response.1.into(), response.2.into())),
            action: Some(Arc::new(action)),
            ..Subresource::part(name, SubresourceRole::Action)
        }
    }

    /// Returns a subresource that can be read, updated and patched.
    pub fn part(name: &str, role: SubresourceRole) -> Subresource {
        Subresource {
            name: Str::new(name),
            role,
            verbs: Verbs::of(&[Verb::Get, Verb::Patch, Verb::Update]),
            response: None,
            action: None,
        }
    }
}

/// One version of a kind.
#[derive(Clone)]
pub struct Version {
    /// The name, such as `v1beta1`.
    pub name: Str,
    /// Whether the version is served.
    pub served: bool,
    /// The warning sent with every answer, for a deprecated version.
    pub deprecation: Option<Str>,
    /// The form of objects in this version.
    pub shape: Arc<dyn Shape>,
    /// The table columns after the name. If one of them is called `Name`, the kind places the name
    /// itself (events show it last) and no name column is put in front.
    pub columns: Arc<[Column]>,
    /// The subresources that this version serves.
    pub subresources: Vec<Subresource>,
    /// The fields that field selectors may name, in addition to `metadata.name` and
    /// `metadata.namespace`.
    pub selectable: Vec<SelectableField>,
}

crate::opaque_debug!(Version);

impl Version {
    /// Returns the subresource with that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Returns whether `status` is written separately from the rest.
    pub fn has_status(&self) -> bool {
        self.subresources
            .iter()
            .any(|sub| sub.role == SubresourceRole::Status)
    }
}

/// All data the server needs to serve a resource.
#[derive(Clone)]
pub struct Kind {
    /// The API group, empty for core.
    pub group: Str,
    /// The names of the kind: plural, singular, kind, and so on.
    pub names: Names,
    /// Whether objects are in namespaces or cluster-scoped.
    pub scope: Scope,
    /// The versions, the preferred one first.
    pub versions: Vec<Version>,
    /// The verbs that objects support.
    pub verbs: Verbs,
    /// The resource in storage, such as `apps/deployments`; two kinds may share one.
    pub store: Str,
    /// The apiVersion of the storage version: objects are converted to it before they are written.
    pub storage_api_version: Str,
    /// The kind in the type meta of the storage version.
    pub storage_kind: Str,
    /// Where the definition of the kind comes from.
    pub origin: Origin,
    /// The rules of the protocol that differ between kinds.
    pub conventions: Conventions,
    /// The kind itself is going away: nothing new is created, what is there can still be changed.
    pub terminating: bool,
    /// The name of the CustomResourceDefinition that made the kind. No object is stored once that is being deleted.
    pub definition: Option<Str>,
    /// The rules of the kind.
    pub policy: Policy,
    /// How objects are converted between versions.
    pub conversion: Conversion,
    /// Behaviour that is not data.
    pub strategy: Arc<dyn Strategy>,
    /// Processes posted objects of a kind that is not stored.
    pub action: Option<Arc<dyn Action>>,
    /// Decides which objects users see; `None` shows all of them to users who may read.
    pub reader: Option<Arc<dyn ReadFilter>>,
    /// Completes an object that is read by its name, for fields that are computed then. Lists and watches do not have them.
    pub on_get: Option<OnGet>,
    /// Names in field selectors whose matches a function finds.
    pub searches: Vec<Search>,
    /// The priority of the group in discovery, which also decides what a short name means: higher
    /// is earlier.
    pub group_priority: u32,
}

impl Kind {
    /// Returns a stored kind with the usual verbs and no versions yet.
    pub fn new(group: &str, names: Names, scope: Scope) -> Kind {
        let prefix = if group.is_empty() { "core" } else { group };
        Kind {
            group: Str::new(group),
            store: Str::new(format!("{prefix}/{}", names.plural)),
            storage_api_version: Str::default(),
            storage_kind: names.kind.clone(),
            names,
            scope,
            versions: Vec::new(),
            verbs: Verbs::ALL,
            origin: Origin::BuiltIn,
            conventions: Conventions::BUILT_IN,
            terminating: false,
            definition: None,
            policy: Policy::default(),
            conversion: Conversion::Rename,
            strategy: Arc::new(NoStrategy),
            action: None,
            reader: None,
            on_get: None,
            searches: Vec::new(),
            group_priority: 1000,
        }
    }

    /// Adds a version; the first version added is the stored one.
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Kind {
        if self.storage_api_version.is_empty() {
            self.storage_api_version = self.api_version(&version.name);
        }
        self.versions.push(version);
        self
    }

    /// The same kind with the conventions of custom kinds. Controllers reach its objects at the raw endpoint.
    #[must_use]
    pub fn into_custom(mut self) -> Kind {
        self.origin = Origin::Custom;
        self.conventions = Conventions::CUSTOM;
        self
    }

    /// The `apiVersion` of a version: `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self, version: &str) -> Str {
        if self.group.is_empty() {
            Str::new(version)
        } else {
            Str::new(format!("{}/{version}", self.group))
        }
    }

    /// Returns the version with that name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns whether objects are in namespaces.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns the resource as a Status names it.
    pub fn group_resource(&self) -> crate::status::GroupResource<'_> {
        crate::status::GroupResource {
            group: &self.group,
            resource: &self.names.plural,
        }
    }

    /// Returns the kind as the Status of a validation error names it: in the group where it is
    /// stored.
    pub fn group_kind(&self) -> crate::status::GroupResource<'_> {
        let group = match self.store.split_once('/') {
            Some(("core", _)) => "",
            Some((group, _)) => group,
            None => &self.group,
        };
        crate::status::GroupResource {
            group,
            resource: &self.names.kind,
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind")
            .field("group", &self.group)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}
