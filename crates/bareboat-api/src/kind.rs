//! `Kind`: everything the server must know to serve a resource, as data.
//!
//! Discovery, routing, OpenAPI, tables and the write pipeline all follow from it; behaviour that
//! is not data is in the few traits it carries.

mod action;
mod columns;
mod convert;
mod hold;
mod shape;
mod strategy;
mod verbs;

pub use action::{Acted, Action, Change, Form, Hands, Place, Posted};
pub use columns::{Cell, Column, Now};
pub use convert::{AsyncConvert, BoxFuture, Conversion, ConvertError, PureConvert};
pub use hold::{Hold, Holds};
pub use shape::{Definition, Findings, Shape, Typing, Validated};
pub use strategy::{Companion, NoStrategy, Strategy, User, WriteContext};
pub use verbs::{Verb, Verbs};

use crate::Str;
use std::fmt;
use std::sync::Arc;

/// Whether objects live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In none.
    Cluster,
}

/// What a kind is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// In URLs: `configmaps`.
    pub plural: Str,
    /// `configmap`.
    pub singular: Str,
    /// `ConfigMap`.
    pub kind: Str,
    /// `ConfigMapList`.
    pub list_kind: Str,
    /// `cm`.
    pub short: Vec<Str>,
    /// Groups of kinds such as `all`.
    pub categories: Vec<Str>,
}

impl Names {
    /// Names derived from plural and kind: the singular is the kind in lower case.
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

/// What the names of a kind's objects look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1123 subdomain of up to 253 characters.
    Subdomain,
    /// A DNS-1123 label of up to 63 characters.
    Label,
    /// A DNS-1035 label: starts with a letter.
    Label1035,
    /// Anything that can be a segment of a path.
    PathSegment,
}

/// What counts as a change of an object's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Generation {
    /// Objects have no generation.
    #[default]
    Untracked,
    /// Any change outside `metadata` and `status`.
    OutsideStatus,
    /// Any change outside `metadata`.
    OutsideMetadata,
}

/// Fields of a kind, as they concern writes through one door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The door: a subresource, or nothing for the object itself.
    pub subresource: &'static str,
    /// The members that lead to each field.
    pub paths: &'static [&'static [&'static str]],
}

impl Fields {
    /// The fields that concern a door.
    pub fn at<'a>(
        list: &'a [Fields],
        subresource: &str,
    ) -> impl Iterator<Item = &'static [&'static str]> + use<'a> {
        let found = list.iter().find(|fields| fields.subresource == subresource);
        found
            .into_iter()
            .flat_map(|fields| fields.paths.iter().copied())
    }
}

/// The rules of a kind that differ from kind to kind and are not behaviour.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What names look like.
    pub name_rule: NameRule,
    /// When `metadata.generation` moves.
    pub generation: Generation,
    /// Members of metadata whose change moves it too.
    pub generation_counts: &'static [&'static str],
    /// PUT on a missing object creates it.
    pub create_on_update: bool,
    /// PUT without a resourceVersion overwrites.
    pub unconditional_update: bool,
    /// DELETE answers with the object instead of a Status.
    pub delete_returns_object: bool,
    /// A write to `/status` may change labels, annotations, finalizers and owners too.
    pub status_keeps_metadata: bool,
    /// A new object may come with a `status` (nodes, whose kubelet knows it already).
    pub status_on_create: bool,
    /// Fields that writes through some door do not touch, beyond `status` of the object and `spec` of its status.
    pub resets: &'static [Fields],
    /// Fields that writes through some doors may touch without owning them.
    pub unowned: &'static [Fields],
    /// The only fields that writes through some doors touch.
    pub touches: &'static [Fields],
    /// Objects can be deleted gracefully (pods).
    pub graceful_deletion: bool,
    /// Objects vanish by themselves after this many seconds.
    pub ttl_seconds: Option<u64>,
    /// A DELETE that does not say what becomes of dependents orphans them (jobs and
    /// replication controllers, for the sake of old clients).
    pub orphan_by_default: bool,
    /// What is told to whoever lets dependents be orphaned by not saying anything.
    pub orphan_warning: Option<&'static str>,
    /// How a field selector that names an unknown field is refused.
    pub unknown_field: UnknownField,
    /// What a row of a table says beside its cells.
    pub row_conditions: Option<fn(&crate::Value) -> Option<crate::Value>>,
}

/// The words for a field that selectors may not name; clients of old match on some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownField {
    /// Those of most kinds.
    #[default]
    Plain,
    /// With the kind.
    OfKind,
    /// With the whole type.
    OfType,
}

impl Default for Policy {
    /// The rules of most built-in kinds.
    fn default() -> Policy {
        Policy {
            name_rule: NameRule::Subdomain,
            generation: Generation::Untracked,
            generation_counts: &[],
            create_on_update: false,
            unconditional_update: true,
            delete_returns_object: false,
            status_keeps_metadata: true,
            status_on_create: false,
            resets: &[],
            unowned: &[],
            touches: &[],
            graceful_deletion: false,
            ttl_seconds: None,
            orphan_by_default: false,
            orphan_warning: None,
            unknown_field: UnknownField::Plain,
            row_conditions: None,
        }
    }
}

/// A field that field selectors may name, and where its value is.
#[derive(Clone)]
pub struct SelectableField {
    /// The name in selectors, such as `status.phase`.
    pub name: Str,
    /// Reads its text out of an object; an absent field is the empty text.
    pub read: fn_of::Text,
}

/// Types of functions that a kind carries.
pub mod fn_of {
    use crate::Value;
    use std::sync::Arc;

    /// A text read out of an object.
    pub type Text = Arc<dyn Fn(&Value) -> crate::Str + Send + Sync>;
}

impl SelectableField {
    /// A field found under its own dotted name.
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

    /// A field whose value is computed.
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

/// What a subresource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubresourceRole {
    /// The `status` of the object, written apart from the rest.
    Status,
    /// The same object under a strategy of its own (`finalize`, `approval`, `ephemeralcontainers`).
    Part,
    /// The number of replicas as an `autoscaling/v1` Scale.
    Scale(ScalePaths),
    /// Something else is posted here and acted upon (`binding`, `eviction`, `token`).
    Action,
    /// A connection: requests are answered by a program or somebody outside (`exec`, `proxy`, `log`).
    Connect {
        /// Whether paths below it (`proxy/some/page`) are its own as well.
        paths: bool,
    },
}

/// Where the numbers of a Scale are in the object; dotted paths with a leading dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Such as `.spec.replicas`.
    pub spec_replicas: Str,
    /// Such as `.status.replicas`.
    pub status_replicas: Str,
    /// Such as `.status.selector`; a label selector as text or as an object.
    pub label_selector: Option<Str>,
}

/// A part of an object with a URL of its own.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last segment of the URL.
    pub name: Str,
    /// What it is.
    pub role: SubresourceRole,
    /// What can be done with it.
    pub verbs: Verbs,
    /// Group, version and kind of what it takes and gives, where that is not the object itself.
    pub response: Option<(Str, Str, Str)>,
    /// Acts upon what is posted, where the role is [`SubresourceRole::Action`].
    pub action: Option<Arc<dyn Action>>,
}

impl Subresource {
    /// The usual `status`.
    pub fn status() -> Subresource {
        Subresource::part("status", SubresourceRole::Status)
    }

    /// A `scale` with the given paths.
    pub fn scale(paths: ScalePaths) -> Subresource {
        Subresource {
            response: Some(("autoscaling".into(), "v1".into(), "Scale".into())),
            ..Subresource::part("scale", SubresourceRole::Scale(paths))
        }
    }

    /// A connection with these verbs.
    pub fn connection(name: &str, verbs: &[Verb]) -> Subresource {
        Subresource {
            verbs: Verbs::of(verbs),
            ..Subresource::part(name, SubresourceRole::Connect { paths: false })
        }
    }

    /// The same connection with all paths below it.
    #[must_use]
    pub fn with_paths(mut self) -> Subresource {
        if let SubresourceRole::Connect { paths } = &mut self.role {
            *paths = true;
        }
        self
    }

    /// A subresource that something is posted to; `response` is what discovery says of it.
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

    /// A subresource that is read, updated and patched.
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
    /// Such as `v1beta1`.
    pub name: Str,
    /// Whether requests for it are answered.
    pub served: bool,
    /// The warning every request gets, for a version on its way out.
    pub deprecation: Option<Str>,
    /// The form of objects in this version.
    pub shape: Arc<dyn Shape>,
    /// What tables show after the name; when a column is called `Name` itself, the kind
    /// places the name (events show it last) and none is put in front.
    pub columns: Arc<[Column]>,
    /// Parts with URLs of their own.
    pub subresources: Vec<Subresource>,
    /// What field selectors may name beside `metadata.name` and `metadata.namespace`.
    pub selectable: Vec<SelectableField>,
}

impl Version {
    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// Whether `status` is written apart from the rest.
    pub fn has_status(&self) -> bool {
        self.subresources
            .iter()
            .any(|sub| sub.role == SubresourceRole::Status)
    }
}

/// Everything the server must know to serve a resource.
#[derive(Clone)]
pub struct Kind {
    /// The API group, empty for core.
    pub group: Str,
    /// What it is called.
    pub names: Names,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The versions, the preferred one first.
    pub versions: Vec<Version>,
    /// What can be done with objects.
    pub verbs: Verbs,
    /// The resource in storage, such as `apps/deployments`; two kinds may share one.
    pub store: Str,
    /// The apiVersion objects are stored in.
    pub stored_api_version: Str,
    /// The kind name objects are stored under.
    pub stored_kind: Str,
    /// A custom kind: bodies must carry type meta, items of lists carry it, and neither protobuf
    /// nor strategic merge is spoken.
    pub custom: bool,
    /// The kind itself is going away: nothing new is created, what is there can still be changed.
    pub terminating: bool,
    /// The rules of the kind.
    pub policy: Policy,
    /// How objects change between versions.
    pub conversion: Conversion,
    /// Behaviour that is not data.
    pub strategy: Arc<dyn Strategy>,
    /// Acts upon what is posted to the kind; nothing is stored then.
    pub action: Option<Arc<dyn Action>>,
    /// How early the group comes in discovery, and so what a short name means: higher is earlier.
    pub group_priority: u32,
}

impl Kind {
    /// A stored kind with the usual verbs and no versions yet.
    pub fn new(group: &str, names: Names, scope: Scope) -> Kind {
        let prefix = if group.is_empty() { "core" } else { group };
        Kind {
            group: Str::new(group),
            store: Str::new(format!("{prefix}/{}", names.plural)),
            stored_api_version: Str::default(),
            stored_kind: names.kind.clone(),
            names,
            scope,
            versions: Vec::new(),
            verbs: Verbs::ALL,
            custom: false,
            terminating: false,
            policy: Policy::default(),
            conversion: Conversion::Rename,
            strategy: Arc::new(NoStrategy),
            action: None,
            group_priority: 1000,
        }
    }

    /// The same kind with one more version; the first one added is the one stored.
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Kind {
        if self.stored_api_version.is_empty() {
            self.stored_api_version = self.api_version(&version.name);
        }
        self.versions.push(version);
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

    /// The version of that name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Whether objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The resource as a Status names it.
    pub fn group_resource(&self) -> crate::status::GroupResource<'_> {
        crate::status::GroupResource {
            group: &self.group,
            resource: &self.names.plural,
        }
    }

    /// The kind as the Status of a validation error names it: in the group where it is stored.
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
