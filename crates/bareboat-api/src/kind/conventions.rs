//! Rules of the protocol that are not the same for all kinds, as data.
//!
//! Kubernetes treats built-in and custom kinds differently in many small ways. Each difference has a name here, so that
//! code asks for the one it means and never for the origin of a kind.

/// Rules of the protocol that are not the same for all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// Objects can be sent and received as protobuf, if their shape has a message.
    pub protobuf: bool,
    /// Strategic merge patches are accepted.
    pub strategic_merge: bool,
    /// Bodies must carry `apiVersion` and `kind`. Otherwise the URL says what is meant.
    pub type_meta_required: bool,
    /// Items of lists carry `apiVersion` and `kind`.
    pub type_meta_in_items: bool,
    /// Objects show a `status` even if it is empty.
    pub empty_status: bool,
    /// How bodies are decoded.
    pub decoding: Decoding,
    /// What a Scale of an object looks like.
    pub scale: ScaleStyle,
    /// Which paths exist beside those of the verbs.
    pub routes: Routes,
    /// How field selectors treat fields that are not declared.
    pub field_selectors: FieldSelectors,
    /// The words of errors about media types.
    pub media_errors: MediaErrors,
    /// How discovery lists the kind.
    pub discovery: DiscoveryStyle,
    /// How OpenAPI documents show the kind.
    pub openapi: OpenApiStyle,
}

/// How bodies are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// Into a type. Strict findings come in the order of the body, and an empty list of managed fields resets them.
    Typed,
    /// Into plain JSON that is compared with a schema afterwards. Duplicate fields are reported before unknown ones.
    Structural,
}

/// What a Scale of an object looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleStyle {
    /// A missing number is 0, and the number of replicas is checked when the Scale is written.
    Typed,
    /// The number must exist, and the schema of the object checks it.
    Declared,
}

/// Which paths exist beside those of the verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routes {
    /// Every path of the group is known: others get 404 as a Status, and writes without a namespace get 405.
    Fixed,
    /// Unknown paths get 404 as plain text.
    Dynamic,
}

/// How field selectors treat fields that are not declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldSelectors {
    /// `metadata.namespace` is accepted for cluster-scoped kinds too. Errors of kinds without fields of their own list the
    /// known fields.
    Typed,
    /// `metadata.namespace` exists in namespaces only.
    Declared,
}

/// The words of errors about media types (406 and 415).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaErrors {
    /// The sentences of the HTTP layer; types are named as in Go.
    Typed,
    /// A list of the supported types; objects are called unstructured.
    Unstructured,
}

/// How discovery lists a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoveryStyle {
    /// Subresources by name, verbs by alphabet; group and version of a response are left out where they are the kind's own.
    Sorted,
    /// Subresources as declared, verbs in the order custom kinds have upstream, responses written out.
    Declared,
}

/// How OpenAPI documents show a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApiStyle {
    /// Named after its type, with the deprecated watch paths.
    Typed,
    /// Named after group, version and kind, without watch paths, with its selectable fields.
    Declared,
}

impl Conventions {
    /// The rules of built-in kinds.
    pub const BUILT_IN: Conventions = Conventions {
        protobuf: true,
        strategic_merge: true,
        type_meta_required: false,
        type_meta_in_items: false,
        empty_status: true,
        decoding: Decoding::Typed,
        scale: ScaleStyle::Typed,
        routes: Routes::Fixed,
        field_selectors: FieldSelectors::Typed,
        media_errors: MediaErrors::Typed,
        discovery: DiscoveryStyle::Sorted,
        openapi: OpenApiStyle::Typed,
    };

    /// The rules of custom kinds.
    pub const CUSTOM: Conventions = Conventions {
        protobuf: false,
        strategic_merge: false,
        type_meta_required: true,
        type_meta_in_items: true,
        empty_status: false,
        decoding: Decoding::Structural,
        scale: ScaleStyle::Declared,
        routes: Routes::Dynamic,
        field_selectors: FieldSelectors::Declared,
        media_errors: MediaErrors::Unstructured,
        discovery: DiscoveryStyle::Declared,
        openapi: OpenApiStyle::Declared,
    };
}
