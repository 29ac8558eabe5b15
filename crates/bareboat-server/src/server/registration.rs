//! Puts kinds and their connectors into the catalog of a server that is being built.

use super::builder::BuildError;
use crate::kinds::catalog::{Backing, Catalog};
use crate::kinds::connector::{Connections, Connector};
use bareboat_api::kind::Kind;

/// The connectors of a kind. They are taken out of the list of all.
pub(super) fn connections_of(
    kind: &Kind,
    connectors: &mut Vec<([String; 3], Connector)>,
) -> Result<Connections, BuildError> {
    let mut connections = Connections::default();
    let mut others = Vec::new();
    for (place, connector) in connectors.drain(..) {
        let [group, plural, subresource] = &place;
        if *group != kind.group || *plural != kind.names.plural {
            others.push((place, connector));
            continue;
        }
        connector.check().map_err(|error| BuildError::Remote {
            subresource: place.join("/"),
            why: error.to_string(),
        })?;
        if !connections.add_to(kind, subresource, connector) {
            return Err(BuildError::NoSuchSubresource(place.join("/")));
        }
    }
    *connectors = others;
    Ok(connections)
}

/// Adds a kind to the catalog, if its place is free.
pub(super) fn register(catalog: &Catalog, backing: Backing) -> Result<(), BuildError> {
    let kind = backing.kind();
    let name = kind.group_resource().to_string();
    if kind.versions.is_empty() {
        return Err(BuildError::NoVersion(name));
    }
    if catalog
        .table()
        .find(&kind.group, &kind.names.plural)
        .is_some()
    {
        return Err(BuildError::SameResource(name));
    }
    catalog.insert(backing);
    Ok(())
}
