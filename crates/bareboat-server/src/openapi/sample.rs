//! Sample kinds for tests of discovery and OpenAPI, similar to the real ones.

use bareboat_api::facts::{Cardinality, Element, Field, LazyMessage, Message, MessageRef, Type};
use bareboat_api::kind::{
    Findings, Names, PublishedSchema, ScalePaths, Scope, SelectableField, Shape, Subresource,
    SubresourceRole, Typing, Validated, Verb, Verbs, Version,
};
use bareboat_api::typing::{ListKey, ListType};
use bareboat_api::{Kind, Str, Value, value};
use std::sync::Arc;

/// A shape that only returns its published schema.
struct Published(PublishedSchema);

static OBJECT_META: LazyMessage =
    LazyMessage::new("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta", |name| {
        message(name, Vec::new())
    });
static CONFIG_MAP: LazyMessage = LazyMessage::new("k8s.io.api.core.v1.ConfigMap", |name| {
    let binary = Field {
        cardinality: Cardinality::Map,
        ..field("binaryData", Type::Bytes)
    };
    let data = Field {
        cardinality: Cardinality::Map,
        ..field("data", Type::String)
    };
    let immutable = Field {
        optional: true,
        ..field("immutable", Type::Bool)
    };
    message(name, vec![binary, data, immutable])
});
static SERVICE: LazyMessage = LazyMessage::new("k8s.io.api.core.v1.Service", |name| {
    let spec = Field {
        omit_empty: false,
        ..field("spec", Type::Message(MessageRef::new(&SERVICE_SPEC)))
    };
    message(name, vec![spec])
});
static SERVICE_SPEC: LazyMessage = LazyMessage::new("k8s.io.api.core.v1.ServiceSpec", |name| {
    let ports = Field {
        cardinality: Cardinality::List,
        list: ListType::Map,
        keys: vec![
            ListKey {
                name: "port".into(),
                default: None,
            },
            ListKey {
                name: "protocol".into(),
                default: Some(value!("TCP")),
            },
        ],
        patch_merge: true,
        merge_key: Some("port".into()),
        ..field("ports", Type::Message(MessageRef::new(&SERVICE_PORT)))
    };
    let selector = Field {
        cardinality: Cardinality::Map,
        atomic: true,
        ..field("selector", Type::String)
    };
    Message {
        by_number: Default::default(),
        fields: vec![ports, selector],
        ..message(name, Vec::new())
    }
});
static SERVICE_PORT: LazyMessage = LazyMessage::new("k8s.io.api.core.v1.ServicePort", |name| {
    let port = Field {
        omit_empty: false,
        ..field("port", Type::Int32)
    };
    let protocol = Field {
        default: Some(value!("TCP")),
        ..field("protocol", Type::String)
    };
    let target = Field {
        omit_empty: false,
        ..field("targetPort", Type::IntOrString)
    };
    Message {
        by_number: Default::default(),
        fields: vec![port, protocol, target],
        ..message(name, Vec::new())
    }
});

fn field(json: &str, ty: Type) -> Field {
    Field {
        json: Str::new(json),
        number: 1,
        ty,
        cardinality: Cardinality::One,
        omit_empty: true,
        optional: false,
        list: ListType::Atomic,
        keys: Vec::new(),
        atomic: false,
        granular: false,
        patch_merge: false,
        retain_keys: false,
        patch_replaces: false,
        merge_key: None,
        default: None,
        values: Vec::new(),
        element: Element(ty),
    }
}

/// Returns a kind's message: type meta, metadata and more fields, sorted by name.
fn message(name: &str, more: Vec<Field>) -> Message {
    let mut fields = more;
    if !name.ends_with("ObjectMeta") {
        fields.push(field("apiVersion", Type::String));
        fields.push(field("kind", Type::String));
        fields.push(Field {
            omit_empty: false,
            ..field("metadata", Type::Message(MessageRef::new(&OBJECT_META)))
        });
    }
    bareboat_api::sort_by(&mut fields, |a, b| a.json.cmp(&b.json));
    Message {
        by_number: Default::default(),
        name: Str::new(name),
        fields,
        atomic: false,
    }
}

impl Shape for Published {
    fn conform(&self, _: &mut Value, _: &mut Findings) -> Result<(), String> {
        Ok(())
    }
    fn default(&self, _: &mut Value) -> Result<(), String> {
        Ok(())
    }
    fn validate(&self, _: &Value, _: Option<&Value>) -> Validated {
        Validated::default()
    }
    fn typing(&self) -> Typing<'_> {
        Typing::Borrowed(MessageRef::new(&OBJECT_META).get())
    }
    fn published_schema(&self) -> PublishedSchema {
        self.0.clone()
    }
}

/// Returns a version with a definition and subresources.
pub(crate) fn version(
    name: &str,
    definition: PublishedSchema,
    subresources: Vec<Subresource>,
) -> Version {
    Version {
        name: Str::new(name),
        served: true,
        deprecation: None,
        shape: Arc::new(Published(definition)),
        columns: Arc::new([]),
        subresources,
        selectable: Vec::new(),
    }
}

fn named(plural: &str, kind: &str, short: &[&str], categories: &[&str]) -> Names {
    Names {
        short: short.iter().copied().map(Str::new).collect(),
        categories: categories.iter().copied().map(Str::new).collect(),
        ..Names::new(plural, kind)
    }
}

/// `configmaps`.
pub(crate) fn config_maps() -> Kind {
    let definition = PublishedSchema::Message(MessageRef::new(&CONFIG_MAP));
    Kind::new(
        "",
        named("configmaps", "ConfigMap", &["cm"], &[]),
        Scope::Namespaced,
    )
    .with_version(version("v1", definition, Vec::new()))
}

/// `services`, whose ports have every property a list can have.
pub(crate) fn services() -> Kind {
    let definition = PublishedSchema::Message(MessageRef::new(&SERVICE));
    let proxy = Subresource {
        verbs: Verbs::of(&[
            Verb::Create,
            Verb::Delete,
            Verb::Get,
            Verb::Patch,
            Verb::Update,
        ]),
        response: Some(("".into(), "v1".into(), "ServiceProxyOptions".into())),
        ..Subresource::part("proxy", SubresourceRole::Connect { paths: false })
    };
    Kind::new(
        "",
        named("services", "Service", &["svc"], &["all"]),
        Scope::Namespaced,
    )
    .with_version(version(
        "v1",
        definition,
        vec![Subresource::status(), proxy],
    ))
}

/// `namespaces`.
pub(crate) fn namespaces() -> Kind {
    let finalize = Subresource {
        verbs: Verbs::of(&[Verb::Update]),
        ..Subresource::part("finalize", SubresourceRole::Part)
    };
    let mut kind = Kind::new(
        "",
        named("namespaces", "Namespace", &["ns"], &[]),
        Scope::Cluster,
    )
    .with_version(version(
        "v1",
        PublishedSchema::Untyped,
        vec![Subresource::status(), finalize],
    ));
    kind.verbs = Verbs::ALL.without(&[Verb::DeleteCollection]);
    kind
}

/// `serviceaccounts`, one of whose subresources takes a kind of another group.
pub(crate) fn service_accounts() -> Kind {
    let token = Subresource {
        verbs: Verbs::of(&[Verb::Create]),
        response: Some((
            "authentication.k8s.io".into(),
            "v1".into(),
            "TokenRequest".into(),
        )),
        ..Subresource::part("token", SubresourceRole::Action)
    };
    Kind::new(
        "",
        named("serviceaccounts", "ServiceAccount", &["sa"], &[]),
        Scope::Namespaced,
    )
    .with_version(version("v1", PublishedSchema::Untyped, vec![token]))
}

/// `events` of the core group or of `events.k8s.io`; both store core events.
pub(crate) fn events(group: &str, priority: u32) -> Kind {
    let mut kind = Kind::new(
        group,
        named("events", "Event", &["ev"], &[]),
        Scope::Namespaced,
    )
    .with_version(version("v1", PublishedSchema::Untyped, Vec::new()));
    kind.storage_api_version = "v1".into();
    kind.group_priority = priority;
    kind
}

/// `leases`.
pub(crate) fn leases() -> Kind {
    let mut kind = Kind::new(
        "coordination.k8s.io",
        named("leases", "Lease", &[], &[]),
        Scope::Namespaced,
    )
    .with_version(version("v1", PublishedSchema::Untyped, Vec::new()));
    kind.group_priority = 16500;
    kind
}

/// `deployments` with `scale` and `status`.
pub(crate) fn deployments() -> Kind {
    let mut kind = Kind::new(
        "apps",
        named("deployments", "Deployment", &["deploy"], &["all"]),
        Scope::Namespaced,
    )
    .with_version(version(
        "v1",
        PublishedSchema::Untyped,
        vec![Subresource::status(), Subresource::scale(scale_paths())],
    ));
    kind.group_priority = 17800;
    kind
}

/// `customresourcedefinitions`.
pub(crate) fn custom_resource_definitions() -> Kind {
    let mut kind = Kind::new(
        "apiextensions.k8s.io",
        named(
            "customresourcedefinitions",
            "CustomResourceDefinition",
            &["crd", "crds"],
            &["api-extensions"],
        ),
        Scope::Cluster,
    )
    .with_version(version(
        "v1",
        PublishedSchema::Untyped,
        vec![Subresource::status()],
    ));
    kind.group_priority = 16700;
    kind
}

/// `selfsubjectreviews`, which are not stored.
pub(crate) fn self_subject_reviews() -> Kind {
    let mut kind = Kind::new(
        "authentication.k8s.io",
        named("selfsubjectreviews", "SelfSubjectReview", &[], &[]),
        Scope::Cluster,
    )
    .with_version(version("v1", PublishedSchema::Untyped, Vec::new()));
    kind.verbs = Verbs::of(&[Verb::Create]);
    kind.group_priority = 17700;
    kind
}

/// `widgets`, a custom kind whose schema has the special cases of publishing.
pub(crate) fn widgets() -> Kind {
    let mut served = version(
        "v1",
        PublishedSchema::Structural(widget_schema()),
        vec![Subresource::status(), Subresource::scale(scale_paths())],
    );
    served.selectable = vec![SelectableField::at_path("spec.color")];
    let mut kind = Kind::new(
        "rec.example.com",
        named("widgets", "Widget", &["wi"], &[]),
        Scope::Namespaced,
    )
    .with_version(served);
    kind = kind.into_custom();
    kind
}

/// The schema of `widgets`.
pub(crate) fn widget_schema() -> Value {
    value!({
        "type": "object",
        "description": "A widget.",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["color", "note"],
                "properties": {
                    "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                    "note": {"type": "string", "nullable": true},
                    "port": {"x-kubernetes-int-or-string": true},
                    "size": {
                        "type": "integer",
                        "minimum": 1,
                        "anyOf": [{"maximum": 5}, {"minimum": 10}],
                    },
                    "template": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": true,
                        "properties": {"data": {"type": "object"}},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                             "properties": {"known": {"type": "string"}}},
                    "list": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}},
                        },
                    },
                },
            },
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    })
}

fn scale_paths() -> ScalePaths {
    ScalePaths {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: None,
    }
}
