//! Builds the data of a custom kind from its definition.

use super::columns;
use super::conversion::Converter;
use super::declared;
use super::objects::ObjectStrategy;
use super::shape::LazyShape;
use super::warm::Warm;
use crate::outbound::Outbound;
use bareboat_api::kind::{
    Conversion, Generation, Kind, NameRule, Policy, SelectableField, Subresource, Verb, Verbs,
    Version,
};
use bareboat_api::{Str, Value};
use bareboat_schema::crd::{self, Definition};
use bareboat_storage::Entry;
use std::sync::Arc;

/// Returns the verbs of a custom kind; fewer while it is being deleted.
pub(super) const fn verbs(terminating: bool) -> Verbs {
    match terminating {
        true => Verbs::ALL.without(&[Verb::Create, Verb::Patch, Verb::Update]),
        false => Verbs::ALL,
    }
}

/// Returns the kind that a definition defines.
pub(super) fn of(
    definition: &Definition,
    crd: &Value,
    entry: &Arc<Entry>,
    warm: &Arc<Warm>,
    outbound: &Arc<Outbound>,
) -> Kind {
    let mut kind = Kind::new(
        &definition.group,
        definition.accepted.clone(),
        definition.scope,
    )
    .into_custom();
    kind.strategy = Arc::new(ObjectStrategy);
    kind.terminating = definition.terminating;
    let name = format!("{}.{}", kind.names.plural, kind.group);
    kind.definition = Some(Str::from(name));
    if definition.terminating {
        kind.verbs = verbs(true);
    }
    kind.conversion = match &definition.conversion {
        crd::Conversion::None => Conversion::Rename,
        crd::Conversion::Webhook(webhook) => {
            Conversion::Remote(Arc::new(Converter::new(webhook, outbound)))
        }
        crd::Conversion::Declared => {
            Conversion::Pure(declared::converter(entry.clone(), warm.clone()))
        }
    };
    kind.policy = Policy {
        name_rule: NameRule::Subdomain,
        generation: Generation::OutsideMetadata,
        unconditional_update: false,
        slow_conversion: true,
        status_keeps_metadata: false,
        ..Policy::default()
    };
    // Both are looked up once: a definition may have very many versions.
    let schemas = crd::schemas_of(crd);
    let recommended = definition.recommended();
    let mut versions: Vec<_> = definition.versions.iter().zip(schemas).collect();
    versions.sort_by(|(a, _), (b, _)| crd::compare_versions(&b.name, &a.name));
    for (version, schema) in versions {
        if version.status {
            kind.policy.generation = Generation::OutsideStatus;
        }
        kind.versions
            .push(version_of(definition, version, schema, entry, warm));
        let warning = definition.deprecation_of(version, recommended);
        if let (Some(warning), Some(added)) = (warning, kind.versions.last_mut()) {
            added.deprecation = Some(Str::new(warning));
        }
    }
    if let Some(storage) = definition.storage_version() {
        kind.storage_api_version = kind.api_version(&storage.name);
    }
    kind
}

fn version_of(
    definition: &Definition,
    version: &crd::Version,
    schema: Option<&Value>,
    entry: &Arc<Entry>,
    warm: &Arc<Warm>,
) -> Version {
    let mut subresources = Vec::new();
    if version.status {
        subresources.push(Subresource::status());
    }
    if let Some(paths) = &version.scale {
        subresources.push(Subresource::scale(paths.clone()));
    }
    let selectable = version
        .selectable
        .iter()
        .map(|path| SelectableField::at_path(path.trim_start_matches('.')));
    let shape = LazyShape::new(definition, version, schema, entry.clone(), warm);
    Version {
        name: version.name.clone(),
        served: version.served,
        deprecation: None,
        shape: Arc::new(shape),
        columns: columns::of(version),
        subresources,
        selectable: selectable.collect(),
    }
}
