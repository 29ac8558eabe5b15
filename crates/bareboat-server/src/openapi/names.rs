//! Names in OpenAPI documents: definitions, operations, tags.

use bareboat_api::kind::{OpenApiStyle, PublishedSchema, Version};
use bareboat_api::{Kind, Str};

/// Location of definitions in OpenAPI 3 documents.
pub(super) const COMPONENTS: &str = "#/components/schemas/";

/// Name prefix of the types all kinds share.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Returns the definition name of a message: `k8s.io.api.core.v1.Pod` is `io.k8s.api.core.v1.Pod`.
pub(super) fn message_definition(message: &str) -> Str {
    let Some(rest) = message.strip_prefix("k8s.io.") else {
        return Str::new(message);
    };
    // Protobuf packages cannot have dashes; module names, and so definitions, do.
    Str::new(format!("io.k8s.{}", rest.replace('_', "-")))
}

/// Returns the definition name of a kind in one version.
pub(super) fn kind_definition(kind: &Kind, version: &Version) -> Str {
    let given = version.shape.definition_name();
    if !given.is_empty() {
        return given;
    }
    if let Some(message) = version.shape.message() {
        return message_definition(&message.name);
    }
    // A declared schema is copied when it is read, and does not name a message.
    let declared = kind.conventions.openapi == OpenApiStyle::Declared;
    if !declared && let PublishedSchema::Message(message) = version.shape.published_schema() {
        return message_definition(&message.name);
    }
    let name = derived_definition(&kind.group, &version.name, &kind.names.kind);
    if declared { apart(name) } else { name }
}

/// The packages of built-in types. A group of custom kinds may be spelled like one of them, `core.api.k8s.io` for example.
const PACKAGES: [&str; 4] = [
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.apiextensions-apiserver.pkg.",
    "io.k8s.kube-aggregator.pkg.",
];

/// Returns the definition name of a custom kind, which never equals that of a built-in type.
fn apart(name: Str) -> Str {
    match PACKAGES.iter().any(|package| name.starts_with(package)) {
        true => Str::new(format!("{name}_v2")),
        false => name,
    }
}

/// Returns the definition name of a kind's list in one version, in the kind's package.
pub(super) fn list_definition(kind: &Kind, version: &Version) -> Str {
    if kind.conventions.openapi == OpenApiStyle::Declared
        && version.shape.definition_name().is_empty()
    {
        let list = &kind.names.list_kind;
        return apart(derived_definition(&kind.group, &version.name, list));
    }
    sibling(&kind_definition(kind, version), &kind.names.list_kind)
}

/// Returns the definition of another name in the same package.
fn sibling(definition: &str, name: &str) -> Str {
    match definition.rsplit_once('.') {
        Some((package, _)) => Str::new(format!("{package}.{name}")),
        None => Str::new(name),
    }
}

/// Returns the definition name derived from group, version and kind: `com.example.v1.Widget`.
pub(super) fn derived_definition(group: &str, version: &str, kind: &str) -> Str {
    let mut name = String::new();
    for part in group.rsplit('.').filter(|part| !part.is_empty()) {
        name.push_str(part);
        name.push('.');
    }
    name.push_str(version);
    name.push('.');
    name.push_str(kind);
    Str::new(name)
}

/// Returns the path of a version, without leading slash: `api/v1`, `apis/apps/v1`.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Returns group and version as in operation names: `AppsV1`, `CoreV1`, `RbacAuthorizationV1`.
pub(super) fn operation_scope(group: &str, version: &str) -> String {
    format!(
        "{}{}",
        identifier(group_word(group), true),
        identifier(version, true)
    )
}

/// Returns the tag of a version's operations: `apps_v1`, `core_v1`, `rbacAuthorization_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!(
        "{}_{}",
        identifier(group_word(group), false),
        identifier(version, false)
    )
}

/// Returns the tag of a group's operations.
pub(super) fn group_tag(group: &str) -> String {
    identifier(group_word(group), false)
}

fn group_word(group: &str) -> &str {
    if group.is_empty() {
        return "core";
    }
    group.strip_suffix(".k8s.io").unwrap_or(group)
}

/// Keeps letters and digits; a letter after any other character becomes a capital.
pub(super) fn identifier(text: &str, capital: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut capital = capital;
    for (index, letter) in text.char_indices() {
        let usable =
            letter.is_alphabetic() || letter == '_' || (index != 0 && letter.is_ascii_digit());
        if !usable {
            capital = true;
        } else if capital {
            out.extend(letter.to_uppercase());
            capital = false;
        } else {
            out.push(letter);
        }
    }
    out
}

/// Capitalizes a word.
pub(super) fn title(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Adds the article to a noun: `a Pod`, `an Event`, `Endpoints`.
pub(super) fn with_article(noun: &str) -> String {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return noun.to_owned();
    }
    let vowel = noun
        .chars()
        .next()
        .is_some_and(|first| "aeiouAEIOU".contains(first));
    format!("{} {noun}", if vowel { "an" } else { "a" })
}
