//! The names in OpenAPI documents: definitions, operations, tags.

use bareboat_api::kind::{Definition, Version};
use bareboat_api::{Kind, Str};

/// Where definitions stand in documents of version 3.
pub(super) const COMPONENTS: &str = "#/components/schemas/";

/// The name prefix of the types all kinds share.
pub(super) const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The definition name of a message: `k8s.io.api.core.v1.Pod` is `io.k8s.api.core.v1.Pod`.
pub(super) fn message_definition(message: &str) -> Str {
    let Some(rest) = message.strip_prefix("k8s.io.") else {
        return Str::new(message);
    };
    // Package names in protobuf cannot have dashes; module names, and so definitions, do.
    Str::new(format!("io.k8s.{}", rest.replace('_', "-")))
}

/// The definition name of a kind in one version.
pub(super) fn kind_definition(kind: &Kind, version: &Version) -> Str {
    let given = version.shape.definition_name();
    if !given.is_empty() {
        return given;
    }
    if let Some(message) = version.shape.message() {
        return message_definition(&message.name);
    }
    // Asking a custom kind copies its schema, and it would not name a message anyway.
    if !kind.custom
        && let Definition::Message(message) = version.shape.definition()
    {
        return message_definition(&message.name);
    }
    let name = derived_definition(&kind.group, &version.name, &kind.names.kind);
    if kind.custom { apart(name) } else { name }
}

/// The packages of built-in types. A group of custom kinds may be spelled like one of them, `core.api.k8s.io` for example.
const PACKAGES: [&str; 4] = [
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.apiextensions-apiserver.pkg.",
    "io.k8s.kube-aggregator.pkg.",
];

/// The name for the definition of a custom kind: never that of a built-in type.
fn apart(name: Str) -> Str {
    match PACKAGES.iter().any(|package| name.starts_with(package)) {
        true => Str::new(format!("{name}_v2")),
        false => name,
    }
}

/// The definition name of a kind's list in one version: beside the kind.
pub(super) fn list_definition(kind: &Kind, version: &Version) -> Str {
    if kind.custom && version.shape.definition_name().is_empty() {
        let list = &kind.names.list_kind;
        return apart(derived_definition(&kind.group, &version.name, list));
    }
    sibling(&kind_definition(kind, version), &kind.names.list_kind)
}

/// The definition of another name in the same package.
fn sibling(definition: &str, name: &str) -> Str {
    match definition.rsplit_once('.') {
        Some((package, _)) => Str::new(format!("{package}.{name}")),
        None => Str::new(name),
    }
}

/// The definition name that follows from group, version and kind: `com.example.v1.Widget`.
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

/// The path under which a version is served, without leading slash: `api/v1`, `apis/apps/v1`.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Group and version inside operation names: `AppsV1`, `CoreV1`, `RbacAuthorizationV1`.
pub(super) fn operation_scope(group: &str, version: &str) -> String {
    format!(
        "{}{}",
        identifier(group_word(group), true),
        identifier(version, true)
    )
}

/// The tag of the operations of a version: `apps_v1`, `core_v1`, `rbacAuthorization_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!(
        "{}_{}",
        identifier(group_word(group), false),
        identifier(version, false)
    )
}

/// The tag of the operations of a group.
pub(super) fn group_tag(group: &str) -> String {
    identifier(group_word(group), false)
}

fn group_word(group: &str) -> &str {
    if group.is_empty() {
        return "core";
    }
    group.strip_suffix(".k8s.io").unwrap_or(group)
}

/// Letters and digits only; what follows anything else starts with a capital.
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

/// A word with a capital first letter.
pub(super) fn title(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// The noun with the article a sentence gives it: `a Pod`, `an Event`, `Endpoints`.
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
