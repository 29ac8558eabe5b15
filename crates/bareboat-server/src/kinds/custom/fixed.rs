//! Kinds from definitions that a program brings along, such as those of kube's derive macro. They are served from the start and are
//! not objects of the server.

use super::columns;
use super::objects::ObjectStrategy;
use bareboat_api::kind::{
    Generation, Kind, NameRule, Policy, SelectableField, Subresource, Version,
};
use bareboat_api::{FieldError, Str, Value};
use bareboat_schema::SchemaCache;
use bareboat_schema::crd::{self, CustomShape, Definition};
use std::sync::Arc;

/// Returns the kind that a CustomResourceDefinition defines. Several versions need a conversion: set
/// [`Kind::conversion`], or all versions must have the same schema.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
/// use bareboat::api::value;
/// use bareboat::server::kinds::kind_of_definition;
///
/// let boats = kind_of_definition(&value!({
///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
///     "metadata": {"name": "boats.sea.example.com"},
///     "spec": {
///         "group": "sea.example.com", "scope": "Namespaced",
///         "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
///             "openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}},
///         }}],
///     },
/// }));
/// assert_eq!(boats.expect("a valid definition").names.plural, "boats");
/// ```
pub fn kind_of_definition(definition: &Value) -> Result<Kind, Vec<FieldError>> {
    let mut crd = definition.clone();
    crd::default(&mut crd);
    let errors = crd::validate_create(&crd);
    if !errors.is_empty() {
        return Err(errors);
    }
    let definition = Definition::parse(&crd);
    let names = definition.names.clone();
    let mut kind = Kind::new(&definition.group, names, definition.scope).into_custom();
    kind.strategy = Arc::new(ObjectStrategy);
    kind.policy = Policy {
        name_rule: NameRule::Subdomain,
        generation: Generation::OutsideMetadata,
        unconditional_update: false,
        slow_conversion: true,
        status_keeps_metadata: false,
        ..Policy::default()
    };
    let schemas = SchemaCache::new();
    let mut versions: Vec<&crd::Version> = definition.versions.iter().collect();
    bareboat_api::sort_by(&mut versions, |a, b| {
        crd::compare_versions(&b.name, &a.name)
    });
    for version in versions {
        if version.status {
            kind.policy.generation = Generation::OutsideStatus;
        }
        let warning = definition.deprecation_warning(&version.name).map(Str::new);
        kind.versions
            .push(version_of(version, &crd, warning, &schemas));
    }
    if let Some(storage) = definition.storage_version() {
        kind.storage_api_version = kind.api_version(&storage.name);
    }
    Ok(kind)
}

fn version_of(
    version: &crd::Version,
    crd: &Value,
    deprecation: Option<Str>,
    schemas: &SchemaCache,
) -> Version {
    let text = crd::schema_of(crd, &version.name).cloned();
    let compiled = crd::compile(crd, &version.name, schemas);
    let shape = CustomShape::new(
        compiled,
        version.scale.clone(),
        Arc::new(move || text.clone()),
    );
    let scale = version.scale.iter().cloned().map(Subresource::scale);
    let status = version.status.then(Subresource::status);
    let fields = version.selectable.iter();
    Version {
        name: version.name.clone(),
        served: version.served,
        deprecation,
        shape: Arc::new(shape),
        columns: columns::of(version),
        subresources: status.into_iter().chain(scale).collect(),
        selectable: fields
            .map(|path| SelectableField::at_path(path.trim_start_matches('.')))
            .collect(),
    }
}
