//! The rules that differ from kind to kind and are data: names, generations, updates, deletion.

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

/// Fields of a kind, and the subresource for which a rule about them holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The subresource; empty for the object itself.
    pub subresource: &'static str,
    /// The members that lead to each field.
    pub paths: &'static [&'static [&'static str]],
}

impl Fields {
    /// The fields that are listed for a subresource.
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
    /// The rule that names of objects must follow.
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
    /// Fields that writes to a subresource leave as they are, beside `status` in writes to the object and `spec` in writes
    /// to its status.
    pub resets: &'static [Fields],
    /// Fields that writes to a subresource may change without owning them.
    pub unowned: &'static [Fields],
    /// The only fields that writes to a subresource change.
    pub touches: &'static [Fields],
    /// Objects end after a grace period, which [`Strategy::grace_seconds`](super::Strategy::grace_seconds) gives (pods).
    pub graceful_deletion: bool,
    /// Objects vanish by themselves after this many seconds.
    pub ttl_seconds: Option<u64>,
    /// A DELETE that does not say what becomes of dependents orphans them (jobs and
    /// replication controllers, for the sake of old clients).
    pub orphan_by_default: bool,
    /// The warning for a DELETE that orphans dependents because it does not say what becomes of them.
    pub orphan_warning: Option<&'static str>,
    /// How a field selector that names an unknown field is refused.
    pub unknown_field: UnknownField,
    /// Conversion between versions may take long, so that it runs on a thread for large work.
    pub slow_conversion: bool,
    /// The objects are namespaces: in URLs, the name of such an object is also the namespace of the request.
    pub is_namespace: bool,
    /// The Go package of the kind in messages, where it does not follow from the group.
    pub go_package: Option<&'static str>,
    /// What a row of a table says beside its cells.
    pub row_conditions: Option<fn(&crate::Value) -> Option<crate::Value>>,
}

/// The wording of the error for a field that selectors may not name. Old clients match on some of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownField {
    /// The wording of most kinds.
    #[default]
    Plain,
    /// A wording that names the kind.
    OfKind,
    /// A wording that names group, version and kind.
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
            slow_conversion: false,
            is_namespace: false,
            go_package: None,
            row_conditions: None,
        }
    }
}
