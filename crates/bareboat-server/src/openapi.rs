//! OpenAPI documents of the served kinds: one per group and version (3.0), and one for all (2.0).
//!
//! Documents are made from the kinds on request. The index needs only a digest of each kind, which is kept across
//! generations. The caller caches documents, encodes, compresses and redirects.

mod custom;
mod definitions;
mod digest;
mod message;
mod names;
mod parameters;
mod roots;
mod routes;
#[cfg(test)]
pub(crate) mod sample;
mod v2;
mod v3;
mod walk;

use bareboat_api::facts::MessageRef;
use bareboat_api::kind::{OpenApiStyle, Version};
use bareboat_api::{Kind, Map, Str, Value, value};
use definitions::{Definitions, SchemaDialect};
use digest::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Returns a JSON schema with descriptions for a definition name.
pub type Descriptions = fn(&str) -> Option<Value>;

/// Returns the protobuf message of a group, version and kind.
pub type Messages = fn(&str, &str, &str) -> Option<MessageRef>;

/// Sources of documents beside the kinds.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The title of the documents.
    pub title: Str,
    /// The version of the documents.
    pub version: Str,
    /// Source of descriptions and of the lists of required members.
    pub descriptions: Option<Descriptions>,
    /// Source of messages that only subresources return.
    pub messages: Option<Messages>,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources {
            title: Str::const_new("Kubernetes"),
            version: Str::const_new("unversioned"),
            descriptions: None,
            messages: None,
        }
    }
}

impl Sources {
    fn message(&self, group: &str, version: &str, kind: &str) -> Option<MessageRef> {
        self.messages
            .and_then(|messages| messages(group, version, kind))
    }

    /// Returns the definition of a kind that is known by name only.
    fn definition(&self, group: &str, version: &str, kind: &str) -> Str {
        if let Some(message) = self.message(group, version, kind) {
            return names::message_definition(&message.name);
        }
        if (group, version, kind) == ("autoscaling", "v1", "Scale") {
            return Str::const_new("io.k8s.api.autoscaling.v1.Scale");
        }
        names::derived_definition(group, version, kind)
    }
}

/// An OpenAPI 3 document of another server.
#[derive(Clone, Debug)]
pub struct RemoteDocument {
    /// Its path without leading slash, such as `apis/metrics.k8s.io/v1beta1`.
    pub path: Str,
    /// A hash that changes whenever the document does.
    pub hash: Str,
}

/// By group and version, the kinds in the order of registration with the index of the version.
type ByVersion = BTreeMap<(Str, Str), Vec<(Arc<Entry>, usize)>>;

/// The documents of one generation of kinds.
#[derive(Debug)]
pub struct OpenApi {
    sources: Sources,
    entries: HashMap<usize, Arc<Entry>>,
    versions: ByVersion,
    /// All groups but core.
    groups: BTreeSet<Str>,
}

impl OpenApi {
    /// Returns the documents of these kinds.
    pub fn new(kinds: &[Arc<Kind>], sources: Sources) -> OpenApi {
        OpenApi::build(kinds, sources, &HashMap::new())
    }

    /// Returns the documents of the next generation of kinds; digests of unchanged kinds are reused.
    #[must_use]
    pub fn renew(&self, kinds: &[Arc<Kind>]) -> OpenApi {
        OpenApi::build(kinds, self.sources.clone(), &self.entries)
    }

    fn build(kinds: &[Arc<Kind>], sources: Sources, known: &HashMap<usize, Arc<Entry>>) -> OpenApi {
        let mut entries = HashMap::with_capacity(kinds.len());
        let mut versions = ByVersion::new();
        for kind in kinds {
            // The address identifies the kind, because an entry keeps its kind alive.
            let address = Arc::as_ptr(kind) as usize;
            let entry = match known.get(&address) {
                Some(entry) => entry.clone(),
                None => Arc::new(Entry::new(kind.clone())),
            };
            for (index, version) in kind.versions.iter().enumerate() {
                if version.served {
                    versions
                        .entry((kind.group.clone(), version.name.clone()))
                        .or_default()
                        .push((entry.clone(), index));
                }
            }
            entries.insert(address, entry);
        }
        let mut groups = BTreeSet::new();
        for (group, _) in versions.keys().filter(|(group, _)| !group.is_empty()) {
            groups.insert(group.clone());
        }
        OpenApi {
            sources,
            entries,
            versions,
            groups,
        }
    }

    /// `/openapi/v3`: the location of each document, and a hash that changes with its content.
    pub fn index(&self, remotes: &[RemoteDocument]) -> Value {
        let mut paths = Map::new();
        for path in self.document_paths() {
            if let Some(hash) = self.hash(&path) {
                paths.insert(path.clone(), index_entry(&path, &hash));
            }
        }
        for remote in remotes {
            paths.insert(remote.path.clone(), index_entry(&remote.path, &remote.hash));
        }
        value!({"paths": paths})
    }

    /// Returns the hash of the document under a path such as `api/v1` or `apis/apps/v1`, without making the document.
    /// In quotes it is the document's entity tag.
    pub fn hash(&self, path: &str) -> Option<String> {
        let mut digest = digest::start(&self.sources, path);
        match self.find(path)? {
            Found::Root(_) => {}
            Found::Version(_, kinds) => digest::add_kinds(&mut digest, kinds),
        }
        Some(digest::finish(digest))
    }

    /// Returns the OpenAPI 3.0 document under a path such as `api/v1` or `apis/apps/v1`.
    pub fn document(&self, path: &str) -> Option<Value> {
        let mut definitions =
            Definitions::new(&self.sources, SchemaDialect::V3, self.builtin_kinds());
        let mut paths = Map::new();
        match self.find(path)? {
            Found::Root(route) => {
                let item = v3::path_item(&route, &mut |name| definitions.want(name.clone()));
                paths.insert(route.path.as_str(), item);
            }
            Found::Version((group, version), kinds) => {
                definitions.speak_options(group, version);
                let mut routes = vec![routes::resources(group, version)];
                self.gather(kinds, &mut definitions, &mut routes);
                for route in routes {
                    let item = v3::path_item(&route, &mut |name| definitions.want(name.clone()));
                    paths.insert(route.path.as_str(), item);
                }
            }
        }
        let schemas = definitions.finish();
        let Sources { title, version, .. } = &self.sources;
        Some(v3::document(title, version, paths, schemas))
    }

    /// Returns the hash of the OpenAPI 2.0 document; in quotes it is its entity tag.
    pub fn v2_hash(&self) -> String {
        let mut digest = digest::start(&self.sources, "v2");
        for kinds in self.versions.values() {
            digest::add_kinds(&mut digest, kinds);
        }
        digest::finish(digest)
    }

    /// `/openapi/v2`: all kinds in one OpenAPI 2.0 document.
    pub fn v2(&self) -> Value {
        let mut definitions =
            Definitions::new(&self.sources, SchemaDialect::V2, self.builtin_kinds());
        let mut routes: Vec<routes::Route> = self
            .groups
            .iter()
            .map(|group| roots::group(group))
            .chain([roots::core(), roots::groups(), roots::version()])
            .collect();
        for ((group, version), kinds) in &self.versions {
            // Listing every custom group would make the list as long as the number of definitions.
            if kinds
                .iter()
                .any(|(entry, _)| entry.kind.conventions.openapi == OpenApiStyle::Typed)
            {
                definitions.speak_options(group, version);
            }
            routes.push(routes::resources(group, version));
            self.gather(kinds, &mut definitions, &mut routes);
        }
        let mut paths = Map::with_capacity(routes.len());
        for route in routes {
            let item = v2::path_item(&route, &mut |name| definitions.want(name.clone()));
            paths.insert(route.path.as_str(), item);
        }
        let mut definitions = definitions.finish();
        definitions
            .iter_mut()
            .for_each(|(_, schema)| v2::convert(schema));
        let Sources { title, version, .. } = &self.sources;
        v2::document(title, version, paths, definitions)
    }

    /// Adds the schemas and paths of kinds.
    fn gather(
        &self,
        kinds: &[(Arc<Entry>, usize)],
        definitions: &mut Definitions<'_>,
        routes: &mut Vec<routes::Route>,
    ) {
        for (entry, index) in kinds {
            let kind = &entry.kind;
            let version = &kind.versions[*index];
            definitions.add_kind(kind, version);
            for (group, version, kind) in responses(version) {
                if let Some(message) = self.sources.message(group, version, kind) {
                    let subject = routes::group_version_kind(group, version, kind);
                    definitions.know_kind(message, subject);
                }
            }
            routes.extend(routes::of(kind, version, &self.sources));
        }
    }

    /// Returns the group, version and kind of each definition of a built-in kind.
    fn builtin_kinds(&self) -> impl Iterator<Item = (Str, Value)> {
        self.versions
            .iter()
            .flat_map(|((group, version), kinds)| {
                kinds
                    .iter()
                    .map(move |(entry, index)| (group, version, entry, *index))
            })
            .filter(|(_, _, entry, _)| entry.kind.conventions.openapi == OpenApiStyle::Typed)
            .map(|(group, version, entry, index)| {
                let kind = &entry.kind;
                let definition = names::kind_definition(kind, &kind.versions[index]);
                let subject = routes::group_version_kind(group, version, &kind.names.kind);
                (definition, subject)
            })
    }

    fn document_paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = ["api", "apis", "version"].map(str::to_owned).to_vec();
        paths.extend(self.groups.iter().map(|group| format!("apis/{group}")));
        paths.extend(
            self.versions
                .keys()
                .map(|(group, version)| names::root(group, version)),
        );
        paths
    }

    fn find(&self, path: &str) -> Option<Found<'_>> {
        let mut segments = path.split('/');
        let key = match (segments.next()?, segments.next(), segments.next()) {
            ("version", None, _) => return Some(Found::Root(roots::version())),
            ("api", None, _) => return Some(Found::Root(roots::core())),
            ("apis", None, _) => return Some(Found::Root(roots::groups())),
            ("apis", Some(group), None) if self.groups.contains(group) => {
                return Some(Found::Root(roots::group(group)));
            }
            ("api", Some(version), None) => (Str::default(), Str::new(version)),
            ("apis", Some(group), Some(version)) if !group.is_empty() => {
                (Str::new(group), Str::new(version))
            }
            _ => return None,
        };
        if segments.next().is_some() {
            return None;
        }
        let (key, kinds) = self.versions.get_key_value(&key)?;
        Some(Found::Version(key, kinds))
    }
}

/// The target of a path.
enum Found<'a> {
    /// A path of discovery.
    Root(routes::Route),
    /// A group and version, and its kinds.
    Version(&'a (Str, Str), &'a [(Arc<Entry>, usize)]),
}

/// Returns group, version and kind of the types that subresources return.
fn responses(version: &Version) -> impl Iterator<Item = (&Str, &Str, &Str)> {
    version
        .subresources
        .iter()
        .filter_map(|sub| sub.response.as_ref())
        .map(|(group, version, kind)| (group, version, kind))
}

fn index_entry(path: &str, hash: &str) -> Value {
    value!({"serverRelativeURL": (format!("/openapi/v3/{path}?hash={hash}"))})
}

#[cfg(test)]
mod tests;
