//! The paths and operations of one version of a kind.

use super::{Answer, Body, OBJECT, Operation, Route, group_version_kind};
use crate::openapi::Sources;
use crate::openapi::names::{
    META, kind_definition, list_definition, operation_scope, root, tag, title, with_article,
};
use crate::openapi::parameters::{self, Parameter};
use bareboat_api::kind::{OpenApiStyle, Subresource, SubresourceRole, Verb, Verbs, Version};
use bareboat_api::{Kind, Str, Value};

const COLLECTION: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const TEXTUAL: &[&str] = &["application/json", "application/yaml"];
const TEXT: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const ANY: &[&str] = &["*/*"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// Without strategic merge patch, which needs types.
const UNTYPED_PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

/// State shared by the operations of a kind.
pub(super) struct Builder<'a> {
    kind: &'a Kind,
    version: &'a Version,
    sources: &'a Sources,
    scope: String,
    tag: String,
    definition: Str,
    /// `Namespaced` for namespaced kinds, in operation names.
    namespaced: &'static str,
    /// The path of the collection, within a namespace if the kind is namespaced.
    collection: String,
}

impl Builder<'_> {
    /// Prepares for one version of a kind.
    pub(super) fn new<'a>(
        kind: &'a Kind,
        version: &'a Version,
        sources: &'a Sources,
    ) -> Builder<'a> {
        let root = root(&kind.group, &version.name);
        let plural = &kind.names.plural;
        Builder {
            kind,
            version,
            sources,
            scope: operation_scope(&kind.group, &version.name),
            tag: tag(&kind.group, &version.name),
            definition: kind_definition(kind, version),
            namespaced: if kind.namespaced() { "Namespaced" } else { "" },
            collection: if kind.namespaced() {
                format!("/{root}/namespaces/{{namespace}}/{plural}")
            } else {
                format!("/{root}/{plural}")
            },
        }
    }

    /// Returns the OpenAPI paths of this version of the kind, with their operations; paths without any are left out.
    pub(super) fn routes(&self) -> Vec<Route> {
        let mut routes = Vec::new();
        self.collections(&mut routes);
        self.objects(&mut routes);
        for sub in &self.version.subresources {
            self.subresource(sub, &mut routes);
        }
        if self.kind.conventions.openapi == OpenApiStyle::Typed {
            self.watches(&mut routes);
        }
        routes.retain(|route| !route.operations.is_empty());
        routes
    }

    fn collections(&self, routes: &mut Vec<Route>) {
        let verbs = self.kind.verbs;
        if self.kind.namespaced() && verbs.has(Verb::List) {
            let path = format!(
                "/{}/{}",
                root(&self.kind.group, &self.version.name),
                self.kind.names.plural
            );
            let mut list = self.list();
            list.id = format!("list{}{}ForAllNamespaces", self.scope, self.kind.names.kind);
            routes.push(Route {
                path,
                parameters: vec![parameters::query(parameters::PRETTY)],
                operations: vec![("get", list)],
            });
        }
        let mut operations = Vec::new();
        if verbs.has(Verb::List) {
            operations.push(("get", self.list()));
        }
        if verbs.has(Verb::Create) {
            operations.push(("post", self.create(None)));
        }
        if verbs.has(Verb::DeleteCollection) {
            operations.push(("delete", self.delete_collection()));
        }
        routes.push(Route {
            path: self.collection.clone(),
            parameters: self.path_parameters(false),
            operations,
        });
    }

    fn objects(&self, routes: &mut Vec<Route>) {
        let mut operations = self.parts(self.kind.verbs, None);
        if self.kind.verbs.has(Verb::Delete) {
            operations.push(("delete", self.delete()));
        }
        routes.push(Route {
            path: format!("{}/{{name}}", self.collection),
            parameters: self.path_parameters(true),
            operations,
        });
    }

    fn subresource(&self, sub: &Subresource, routes: &mut Vec<Route>) {
        let path = format!("{}/{{name}}/{}", self.collection, sub.name);
        if let SubresourceRole::Connect { paths } = sub.role {
            return self.connection(sub, path, paths, routes);
        }
        let mut operations = self.parts(sub.verbs, Some(sub));
        if sub.verbs.has(Verb::Create) {
            operations.push(("post", self.create(Some(sub))));
        }
        routes.push(Route {
            path,
            parameters: self.path_parameters(true),
            operations,
        });
    }

    fn connection(&self, sub: &Subresource, path: String, paths: bool, routes: &mut Vec<Route>) {
        let mut parameters = self.path_parameters(true);
        parameters.retain(|parameter| parameter.name != parameters::PRETTY);
        parameters.extend(self.options(sub));
        let mut deeper = self.connections(sub);
        for (_, operation) in &mut deeper {
            operation.id.push_str("WithPath");
        }
        let below = Route {
            path: format!("{path}/{{path}}"),
            parameters: parameters
                .iter()
                .cloned()
                .chain([Parameter::path()])
                .collect(),
            operations: deeper,
        };
        routes.push(Route {
            path,
            parameters,
            operations: self.connections(sub),
        });
        if paths {
            routes.push(below);
        }
    }

    /// Returns the options of a connection: the fields of a type such as PodExecOptions.
    fn options(&self, sub: &Subresource) -> Vec<Parameter> {
        let typed = sub.response.as_ref();
        let typed = typed.filter(|(_, _, kind)| kind.ends_with("Options"));
        // Logs are read: their answer has another type than their options.
        let name = match typed {
            Some((_, _, kind)) => kind.to_string(),
            None => format!("{}{}Options", self.kind.names.kind, title(&sub.name)),
        };
        let (group, version) = match typed {
            Some((group, version, _)) => (group.as_str(), version.as_str()),
            None => (self.kind.group.as_str(), self.version.name.as_str()),
        };
        let Some(message) = self.sources.message(group, version, &name) else {
            return Vec::new();
        };
        let fields = message.fields.iter();
        let fields =
            fields.filter(|field| !matches!(field.json.as_str(), "" | "apiVersion" | "kind"));
        fields
            .map(|field| Parameter::option(field, &name))
            .collect()
    }

    /// Returns get, replace and patch of an object or a subresource.
    fn parts(&self, verbs: Verbs, sub: Option<&Subresource>) -> Vec<(&'static str, Operation)> {
        let kind = &self.kind.names.kind;
        let what = match sub {
            Some(sub) => format!("{} of the specified {kind}", sub.name),
            None => format!("the specified {kind}"),
        };
        let definition = self.response_definition(sub);
        let body = |definition: &Str, media| {
            Some(Body {
                definition: definition.clone(),
                media,
                required: true,
            })
        };
        let mut operations = Vec::new();
        if verbs.has(Verb::Get) {
            let read = self.operation("read", "get", format!("read {what}"), sub);
            operations.push(("get", read));
        }
        if verbs.has(Verb::Update) {
            let replace = Operation {
                query: parameters::WRITE,
                body: body(&definition, self.bodies()),
                codes: &[200, 201],
                ..self.operation("replace", "put", format!("replace {what}"), sub)
            };
            operations.push(("put", replace));
        }
        if verbs.has(Verb::Patch) {
            let media = match self.kind.conventions.strategic_merge {
                true => PATCHES,
                false => UNTYPED_PATCHES,
            };
            let patch = Operation {
                query: parameters::PATCH,
                body: body(&Str::new(format!("{META}Patch")), media),
                codes: &[200, 201],
                ..self.operation("patch", "patch", format!("partially update {what}"), sub)
            };
            operations.push(("patch", patch));
        }
        operations
    }

    fn create(&self, sub: Option<&Subresource>) -> Operation {
        let what = with_article(&self.kind.names.kind);
        let description = match sub {
            Some(sub) => format!("create {} of {what}", sub.name),
            None => format!("create {what}"),
        };
        Operation {
            query: parameters::WRITE,
            body: Some(Body {
                definition: self.response_definition(sub),
                media: self.bodies(),
                required: true,
            }),
            codes: &[200, 201, 202],
            ..self.operation("create", "post", description, sub)
        }
    }

    fn list(&self) -> Operation {
        let kind = &self.kind.names.kind;
        let watch = if self.kind.verbs.has(Verb::Watch) {
            "list or watch"
        } else {
            "list"
        };
        let description = format!("{watch} objects of kind {kind}");
        Operation {
            query: parameters::LIST,
            produces: self.produces(COLLECTION),
            answer: Answer::Definition(list_definition(self.kind, self.version)),
            ..self.operation("list", "list", description, None)
        }
    }

    fn delete(&self) -> Operation {
        let kind = &self.kind.names.kind;
        let answer = if self.kind.policy.delete_returns_object {
            self.definition.clone()
        } else {
            Str::new(format!("{META}Status"))
        };
        Operation {
            query: parameters::DELETE,
            body: self.delete_options(),
            answer: Answer::Definition(answer),
            codes: &[200, 202],
            ..self.operation(
                "delete",
                "delete",
                format!("delete {}", with_article(kind)),
                None,
            )
        }
    }

    fn delete_collection(&self) -> Operation {
        let kind = &self.kind.names.kind;
        Operation {
            id: format!("delete{}Collection{}{kind}", self.scope, self.namespaced),
            query: parameters::DELETE_COLLECTION,
            body: self.delete_options(),
            answer: Answer::Definition(Str::new(format!("{META}Status"))),
            ..self.operation(
                "delete",
                "deletecollection",
                format!("delete collection of {kind}"),
                None,
            )
        }
    }

    fn delete_options(&self) -> Option<Body> {
        Some(Body {
            definition: Str::new(format!("{META}DeleteOptions")),
            media: self.bodies(),
            required: false,
        })
    }

    /// Connect subresources take every method whose verb they have, and any media type.
    fn connections(&self, sub: &Subresource) -> Vec<(&'static str, Operation)> {
        let kind = &self.kind.names.kind;
        if sub.verbs == Verbs::of(&[Verb::Get]) {
            // A subresource that is read, such as logs.
            let read = Operation {
                produces: TEXT,
                answer: Answer::Text,
                ..self.operation(
                    "read",
                    "get",
                    format!("read {} of the specified {kind}", sub.name),
                    Some(sub),
                )
            };
            return vec![("get", read)];
        }
        let methods = [
            (Verb::Get, "get"),
            (Verb::Create, "post"),
            (Verb::Update, "put"),
            (Verb::Patch, "patch"),
            (Verb::Delete, "delete"),
        ];
        methods
            .into_iter()
            .filter(|(verb, _)| sub.verbs.has(*verb))
            .map(|(_, method)| {
                let upper = method.to_uppercase();
                let operation = Operation {
                    id: format!(
                        "connect{}{}{}{kind}{}",
                        self.scope,
                        title(method),
                        self.namespaced,
                        title(&sub.name)
                    ),
                    produces: ANY,
                    answer: Answer::Text,
                    ..self.operation(
                        "connect",
                        "connect",
                        format!("connect {upper} requests to {} of {kind}", sub.name),
                        Some(sub),
                    )
                };
                (method, operation)
            })
            .collect()
    }

    /// The deprecated watch paths.
    fn watches(&self, routes: &mut Vec<Route>) {
        if !self.kind.verbs.has(Verb::Watch) {
            return;
        }
        let kind = &self.kind.names.kind;
        let root = root(&self.kind.group, &self.version.name);
        let head = format!("/{root}/");
        let watched = self.collection.replacen(&head, &format!("{head}watch/"), 1);
        let operation = |action, id: String, what: &str| Operation {
            id: format!("watch{}{id}", self.scope),
            query: parameters::LIST,
            produces: COLLECTION,
            answer: Answer::Definition(Str::new(format!("{META}WatchEvent"))),
            ..self.operation(
                "watch",
                action,
                format!("{what} {kind}; deprecated: list with the watch parameter instead"),
                None,
            )
        };
        let many = "watch individual changes to a list of";
        if self.kind.namespaced() {
            let id = format!("{kind}ListForAllNamespaces");
            routes.push(Route {
                path: format!("{head}watch/{}", self.kind.names.plural),
                parameters: vec![parameters::query(parameters::PRETTY)],
                operations: vec![("get", operation("watchlist", id, many))],
            });
        }
        let id = format!("{}{kind}List", self.namespaced);
        routes.push(Route {
            path: watched.clone(),
            parameters: self.path_parameters(false),
            operations: vec![("get", operation("watchlist", id, many))],
        });
        let id = format!("{}{kind}", self.namespaced);
        routes.push(Route {
            path: format!("{watched}/{{name}}"),
            parameters: self.path_parameters(true),
            operations: vec![(
                "get",
                operation("watch", id, "watch changes to an object of kind"),
            )],
        });
    }

    /// Returns an operation that answers with the object or the subresource's own type.
    fn operation(
        &self,
        verb: &str,
        action: &'static str,
        description: String,
        sub: Option<&Subresource>,
    ) -> Operation {
        let part = sub.map(|sub| title(&sub.name)).unwrap_or_default();
        let kind = &self.kind.names.kind;
        Operation {
            id: format!("{verb}{}{}{kind}{part}", self.scope, self.namespaced),
            description,
            tag: self.tag.clone(),
            action: Some((action, self.subject(sub))),
            query: &[],
            body: None,
            produces: self.produces(OBJECT),
            answer: Answer::Definition(self.response_definition(sub)),
            codes: &[200],
        }
    }

    /// Returns group, version and kind of body and answer.
    fn subject(&self, sub: Option<&Subresource>) -> Value {
        let response = sub.and_then(|sub| sub.response.as_ref());
        // Upstream names the declared kind itself, even for its Scale.
        match response.filter(|_| self.kind.conventions.openapi == OpenApiStyle::Typed) {
            Some((group, version, kind)) => group_version_kind(group, version, kind),
            None => group_version_kind(&self.kind.group, &self.version.name, &self.kind.names.kind),
        }
    }

    fn response_definition(&self, sub: Option<&Subresource>) -> Str {
        match sub.and_then(|sub| sub.response.as_ref()) {
            Some((group, version, kind)) => self.sources.definition(group, version, kind),
            None => self.definition.clone(),
        }
    }

    /// Returns these media types, or only the text ones if the kind has no protobuf.
    fn produces(&self, all: &'static [&'static str]) -> &'static [&'static str] {
        match self.kind.conventions.protobuf {
            true => all,
            false => TEXTUAL,
        }
    }

    fn bodies(&self) -> &'static [&'static str] {
        self.produces(ANY)
    }

    fn path_parameters(&self, name: bool) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        if name {
            parameters.push(Parameter::name(&self.kind.names.kind));
        }
        if self.kind.namespaced() {
            parameters.push(Parameter::namespace());
        }
        parameters.push(parameters::query(parameters::PRETTY));
        parameters
    }
}
