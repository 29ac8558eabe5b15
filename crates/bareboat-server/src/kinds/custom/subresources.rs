//! Parses and validates the subresources that a definition declares in an annotation, and turns them into connect
//! subresources.
//!
//! They are declared in an annotation because clients would drop or reject a field that upstream does not know. `proxy`
//! forwards the requests. `docs/subresources.md` documents the declarations.

mod reader;

use crate::kinds::connector::{Connection, Connections, RemoteServer};
use crate::outbound::Address;
use bareboat_api::kind::{Kind, Subresource, Verb, Version};
use bareboat_api::{FieldError, FieldErrors, FieldPath, Str, Value, names};
use bareboat_schema::crd;
use reader::Reader;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The annotation of a definition that declares subresources, and which servers answer them.
pub(super) const ANNOTATION: &str = "bareboat.dev/subresources";

/// Maximum number of declared subresources.
const MOST: usize = 32;
/// Maximum number of version names shown in the errors of one declaration.
const MOST_SHOWN: usize = 10_000;
/// Allowed timeouts, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<i64> = 1..=600;
/// Allowed verbs: one for each HTTP method that may be proxied.
const VERBS: [Verb; 5] = [
    Verb::Get,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
];
/// Names of the built-in subresources.
const TAKEN: [&str; 2] = ["status", "scale"];

/// A subresource as a definition declares it.
#[derive(Clone, Debug)]
struct Declared {
    name: Str,
    /// The versions that have it; empty means all.
    versions: HashSet<Str>,
    verbs: Vec<Verb>,
    response: Option<Response>,
    paths: bool,
    backend: RemoteServer,
}

/// Group, version and kind that discovery shows; missing members default to those of the object.
#[derive(Clone, Debug)]
struct Response {
    group: Option<Str>,
    version: Option<Str>,
    kind: Str,
}

impl Declared {
    fn is_in(&self, version: &str) -> bool {
        self.versions.is_empty() || self.versions.contains(version)
    }

    fn subresource(&self, group: &Str, version: &Version) -> Subresource {
        let mut made = Subresource::connection(&self.name, &self.verbs);
        if self.paths {
            made = made.with_paths();
        }
        made.response = self.response.as_ref().map(|response| {
            (
                response.group.as_ref().unwrap_or(group).clone(),
                response.version.as_ref().unwrap_or(&version.name).clone(),
                response.kind.clone(),
            )
        });
        made
    }
}

/// Adds the declared subresources to a kind, and returns their handlers.
pub(super) fn add(kind: &mut Kind, crd: &Value) -> Connections {
    let mut connections = Connections::default();
    let Some(text) = annotation(crd) else {
        return connections;
    };
    // Validation reported the errors at write time; valid declarations are served regardless.
    for declared in read(text, crd, &mut Vec::new()) {
        let connection = Connection::Remote(Arc::new(declared.backend.remote()));
        for version in &mut kind.versions {
            if declared.is_in(&version.name) && version.subresource(&declared.name).is_none() {
                let made = declared.subresource(&kind.group, version);
                connections.add(&version.name, &made.name, connection.clone());
                version.subresources.push(made);
            }
        }
    }
    connections
}

/// Validates the declarations of a definition. Declarations that have not changed are not checked.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(text) = annotation(new)
        && old.and_then(annotation) != Some(text)
    {
        read(text, new, &mut errors);
    }
    errors
}

fn annotation(crd: &Value) -> Option<&str> {
    crd.at(&["metadata", "annotations", ANNOTATION])?.as_str()
}

/// Returns the valid declarations; adds an error for each invalid one.
fn read(text: &str, crd: &Value, errors: &mut Vec<FieldError>) -> Vec<Declared> {
    let path = FieldPath::new("metadata")
        .child("annotations")
        .key(ANNOTATION);
    let parsed = match bareboat_wire::yaml::parse(text.as_bytes()) {
        Ok(parsed) => parsed,
        Err(error) => {
            let why = format!("must be a list in YAML or JSON: {error}");
            errors.push(FieldError::invalid_whole(path, why));
            return Vec::new();
        }
    };
    for twice in parsed.duplicates {
        errors.push(FieldError::invalid_whole(path.clone(), twice));
    }
    let Value::Array(entries) = &parsed.value else {
        let why = "must be a list of subresources, each with name, verbs and clientConfig";
        errors.push(FieldError::invalid_whole(path, why));
        return Vec::new();
    };
    if entries.len() > MOST {
        errors.push(FieldError::too_many(path, entries.len(), MOST));
        return Vec::new();
    }
    let versions = versions_of(crd);
    let mut declared: Vec<Declared> = Vec::new();
    let mut taken: HashSet<(Str, Str)> = HashSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let at = path.index(index);
        let before = errors.len();
        let found = one(Reader::new(entry, at.clone(), errors), &versions);
        let Some(found) = found.filter(|_| errors.len() == before) else {
            continue;
        };
        let own = versions.iter().filter(|version| found.is_in(version));
        let own: Vec<(Str, Str)> = own
            .map(|version| (found.name.clone(), version.clone()))
            .collect();
        if own.iter().any(|place| taken.contains(place)) {
            errors.push(FieldError::duplicate(at.child("name"), found.name.as_str()));
            continue;
        }
        taken.extend(own);
        declared.push(found);
    }
    declared
}

fn versions_of(crd: &Value) -> HashSet<Str> {
    let versions = crd.at(&["spec", "versions"]).and_then(Value::as_array);
    let names = versions.unwrap_or(&[]).iter();
    names
        .filter_map(|version| version.get("name")?.as_str().map(Str::new))
        .collect()
}

fn one(mut entry: Reader<'_>, versions: &HashSet<Str>) -> Option<Declared> {
    const FIELDS: [&str; 7] = [
        "name",
        "versions",
        "verbs",
        "responseKind",
        "paths",
        "timeoutSeconds",
        "clientConfig",
    ];
    entry.only(&FIELDS)?;
    let name = name(&mut entry);
    let chosen = chosen_versions(&mut entry, versions);
    let verbs = verbs(&mut entry);
    let response = entry.object("responseKind").and_then(response);
    let paths = entry.boolean("paths").unwrap_or(false);
    let timeout = timeout(&mut entry);
    let backend = match entry.object("clientConfig") {
        Some(client) => backend(client),
        None => {
            entry.requires("clientConfig", "say who answers: a url, or a service");
            None
        }
    };
    let mut backend = backend?;
    if let Some(limit) = timeout {
        backend = backend.timeout(limit);
    }
    Some(Declared {
        name: name?,
        versions: chosen,
        verbs,
        response,
        paths,
        backend,
    })
}

fn name(entry: &mut Reader<'_>) -> Option<Str> {
    let Some(name) = entry.text("name") else {
        entry.requires("name", "the last segment of the URL, such as start");
        return None;
    };
    if TAKEN.contains(&name) {
        let why = "is a subresource of every definition that asks for it under spec.versions[*].subresources; choose another name";
        entry.wrong("name", name, why);
    }
    for problem in names::dns1123_label(name) {
        entry.wrong("name", name, problem);
    }
    Some(Str::new(name))
}

fn chosen_versions(entry: &mut Reader<'_>, versions: &HashSet<Str>) -> HashSet<Str> {
    let chosen = entry.texts("versions");
    let mut known: Vec<&str> = versions.iter().map(Str::as_str).collect();
    known.sort_unstable();
    // Counts names, because each error lists all versions.
    let mut shown = 0;
    for (index, name) in chosen.iter().enumerate() {
        if !versions.contains(*name) && shown <= MOST_SHOWN {
            shown += known.len();
            let at = entry.path("versions").index(index);
            entry.report(FieldError::not_supported(at, *name, known.iter().copied()));
        }
    }
    chosen.into_iter().map(Str::new).collect()
}

fn verbs(entry: &mut Reader<'_>) -> Vec<Verb> {
    let mut verbs = Vec::new();
    let named = entry.texts("verbs");
    if named.is_empty() {
        let why = "at least one of get, create, update, patch and delete, for GET, POST, PUT, PATCH and DELETE";
        entry.requires("verbs", why);
    }
    for (index, name) in named.into_iter().enumerate() {
        let at = entry.path("verbs").index(index);
        match VERBS.into_iter().find(|verb| verb.name() == name) {
            None => entry.report(FieldError::not_supported(at, name, VERBS.map(Verb::name))),
            Some(verb) if verbs.contains(&verb) => entry.report(FieldError::duplicate(at, name)),
            Some(verb) => verbs.push(verb),
        }
    }
    verbs
}

fn response(mut entry: Reader<'_>) -> Option<Response> {
    entry.only(&["group", "version", "kind"])?;
    let group = entry.text("group").map(Str::new);
    let version = entry.text("version").map(Str::new);
    match entry.text("kind") {
        Some(kind) if !kind.is_empty() => Some(Response {
            group,
            version,
            kind: Str::new(kind),
        }),
        _ => {
            entry.requires("kind", "the kind that discovery shows");
            None
        }
    }
}

fn timeout(entry: &mut Reader<'_>) -> Option<Duration> {
    let seconds = entry.integer("timeoutSeconds")?;
    if !TIMEOUTS.contains(&seconds) {
        let (least, most) = (TIMEOUTS.start(), TIMEOUTS.end());
        let why = format!("must be between {least} and {most}, inclusive");
        entry.wrong("timeoutSeconds", seconds, why);
        return None;
    }
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

fn backend(mut client: Reader<'_>) -> Option<RemoteServer> {
    client.only(&["url", "service", "caBundle", "clientCertificate"])?;
    if let Some(mut service) = client.object("service") {
        service.only(&["namespace", "name", "port", "path"])?;
        service.integer("port");
        for key in ["namespace", "name", "path"] {
            service.text(key);
        }
    }
    client.text("url");
    // YAML wraps long lines.
    let bundle: String = client
        .text("caBundle")
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let mut unbroken = client.value().clone();
    if !bundle.is_empty() {
        unbroken
            .make_object()
            .insert("caBundle", Value::string(&bundle));
    }
    let mut problems = FieldErrors::default();
    crd::check_client_config(&unbroken, client.here(), false, &mut problems);
    let sound = problems.is_empty();
    let problems = problems.into_list();
    problems.into_iter().for_each(|error| client.report(error));
    let certificate = client.object("clientCertificate").and_then(certificate);
    if !sound {
        return None;
    }
    let mut backend = RemoteServer::at(Address::parse(&unbroken)).ca_bundle_base64(bundle);
    if let Some((namespace, name)) = certificate {
        backend = backend.client_certificate(&namespace, &name);
    }
    if let Err(error) = backend.check() {
        let at = client.here().clone();
        client.report(FieldError::invalid_whole(at, error.to_string()));
        return None;
    }
    Some(backend)
}

/// Returns namespace and name of the secret with the client certificate.
fn certificate(mut entry: Reader<'_>) -> Option<(String, String)> {
    entry.only(&["namespace", "name"])?;
    let mut part = |key: &str, problems: fn(&str) -> Vec<String>| {
        let Some(text) = entry.text(key) else {
            entry.requires(key, "names a secret of type kubernetes.io/tls");
            return None;
        };
        for problem in problems(text) {
            entry.wrong(key, text, problem);
        }
        Some(text.to_owned())
    };
    Some((
        part("namespace", names::dns1123_label)?,
        part("name", names::dns1123_subdomain)?,
    ))
}

#[cfg(test)]
mod tests;
