//! Environments: the functions, variables and types that an expression may use.
//!
//! All environments of a kind share their functions, so an environment with its own variables is
//! cheap.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use bareboat_api::Str;

use crate::admission::{JSON_PATCH, OBJECT};
use crate::check::{self, Checked};
use crate::decl::{DeclType, ObjectType};
use crate::error::EvalError;
use crate::issue::Issues;
use crate::library::{Function, Functions, Library};
use crate::program::{self, Program};
use crate::syntax::{Macros, Options, parse};
use crate::types::Type;

/// The environment of an expression.
#[derive(Clone)]
pub struct Env {
    base: Arc<Base>,
    variables: Vec<(Str, Type)>,
    types: Vec<Arc<ObjectType>>,
    container: Str,
    /// Whether expressions may build undeclared objects: `Object{}`, `Object.spec{}`,
    /// `JSONPatch{}`.
    open_objects: bool,
    /// Variables that are also fields of `variables`; shared, because there may be many.
    composed: Option<Arc<Composed>>,
}

bareboat_api::opaque_debug!(Env);

/// The variables a policy defines, by name.
pub(crate) type Composed = HashMap<Str, Type>;

/// The name of the type of `variables`.
const COMPOSED: &str = "kubernetes.variables";

struct Base {
    functions: Functions,
    syntax: Options,
    /// Whether literals are validated: regular expressions, durations, lists of one type.
    validates_literals: bool,
    /// Whether a map literal with a duplicate key is an error.
    unique_keys: bool,
}

/// The target of a name.
pub(crate) enum Named {
    Variable(Type),
    Type(Type),
}

const KUBERNETES: &[Library] = &[
    Library::Standard,
    Library::Optional,
    Library::Urls,
    Library::Regex,
    Library::KubernetesLists,
    Library::Authorization,
    Library::Quantities,
    Library::Strings,
    Library::StringFormat,
    Library::Sets,
    Library::Network,
    Library::Formats,
    Library::Comprehensions,
    Library::Semver,
    Library::Lists,
];

static KUBERNETES_BASE: LazyLock<Arc<Base>> = LazyLock::new(|| {
    Arc::new(Base {
        functions: functions(KUBERNETES),
        syntax: Options {
            macros: Macros {
                two_variables: true,
                optional: true,
                sort_by: true,
                bind: false,
                math: false,
            },
            optional_syntax: true,
            quoted_names: false,
        },
        validates_literals: true,
        unique_keys: false,
    })
});

static MUTATING_BASE: LazyLock<Arc<Base>> = LazyLock::new(|| {
    let mut libraries = KUBERNETES.to_vec();
    libraries.push(Library::JsonPatch);
    Arc::new(Base {
        functions: functions(&libraries),
        syntax: KUBERNETES_BASE.syntax,
        validates_literals: true,
        unique_keys: false,
    })
});

static VARIABLES: LazyLock<Arc<ObjectType>> =
    LazyLock::new(|| Arc::new(ObjectType::new(COMPOSED, Vec::new())));

static DEVICES_BASE: LazyLock<Arc<Base>> = LazyLock::new(|| {
    let mut syntax = KUBERNETES_BASE.syntax;
    syntax.macros.bind = true;
    Arc::new(Base {
        functions: functions(KUBERNETES),
        syntax,
        validates_literals: true,
        unique_keys: false,
    })
});

static PERMISSIVE_BASE: LazyLock<Arc<Base>> = LazyLock::new(|| {
    Arc::new(Base {
        functions: functions(&[
            Library::Standard,
            Library::Optional,
            Library::Strings,
            Library::StringsLatest,
            Library::Lists,
            Library::Sets,
            Library::Comprehensions,
            Library::Math,
            Library::Encoders,
            Library::Network,
        ]),
        syntax: Options {
            macros: Macros {
                two_variables: true,
                optional: true,
                sort_by: true,
                bind: true,
                math: true,
            },
            optional_syntax: true,
            quoted_names: true,
        },
        validates_literals: false,
        unique_keys: true,
    })
});

fn functions(libraries: &[Library]) -> Functions {
    let mut functions = Functions::default();
    for library in libraries {
        for decls in library.decls() {
            functions.add(decls);
        }
    }
    functions
}

impl Env {
    /// Returns the language of Kubernetes 1.36, without variables.
    pub fn kubernetes() -> Env {
        Env::of(&KUBERNETES_BASE)
    }

    /// Returns the language of mutating policies, which adds `jsonpatch.escapeKey`.
    pub fn mutating() -> Env {
        Env::of(&MUTATING_BASE)
    }

    /// Returns the language of device selectors, which adds `cel.bind`.
    pub fn devices() -> Env {
        Env::of(&DEVICES_BASE)
    }

    /// Returns the language of CEL's conformance tests: all extensions, without Kubernetes'
    /// libraries.
    pub fn permissive() -> Env {
        Env::of(&PERMISSIVE_BASE)
    }

    fn of(base: &Arc<Base>) -> Env {
        Env {
            base: base.clone(),
            variables: Vec::new(),
            types: Vec::new(),
            container: Str::default(),
            open_objects: false,
            composed: None,
        }
    }

    /// Declares a variable. A dotted name such as `variables.x` is a separate variable.
    pub fn variable(mut self, name: &str, ty: Type) -> Env {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.into(), ty));
        self
    }

    /// Declares a variable of a declared type.
    pub fn declare(self, name: &str, decl: &DeclType) -> Env {
        self.variable(name, decl.ty.clone())
    }

    /// Declares an object type that expressions may build: `Name{field: value}`.
    pub fn object_type(mut self, object: Arc<ObjectType>) -> Env {
        self.types.push(object);
        self
    }

    /// Lets expressions build objects of undeclared types: `Object{}`, `Object.spec{}` and all
    /// types below it, and `JSONPatch{}`.
    pub fn open_objects(mut self) -> Env {
        self.open_objects = true;
        self
    }

    /// Declares `variables` with those fields; each of them is also a variable by its dotted name.
    pub(crate) fn compose(mut self, variables: Arc<Composed>) -> Env {
        self.composed = Some(variables);
        self
    }

    /// Returns the type of a field that the object type does not declare itself.
    pub(crate) fn composed_field(&self, object: &ObjectType, field: &str) -> Option<Type> {
        let variables = self.composed.as_ref()?;
        let found = variables.get(field)?;
        (object.name() == COMPOSED).then(|| found.clone())
    }

    fn composed_variable(&self, name: &str) -> Option<Type> {
        let variables = self.composed.as_ref()?;
        match name.strip_prefix("variables")? {
            "" => Some(Type::Object(VARIABLES.clone())),
            dotted => variables.get(dotted.strip_prefix('.')?).cloned(),
        }
    }

    /// Sets the container in which names are looked up first.
    pub fn container(mut self, container: &str) -> Env {
        self.container = container.into();
        self
    }

    /// Parses and checks an expression.
    pub fn compile(&self, expression: &str) -> Result<Checked, Issues> {
        let ast = parse(expression, self.base.syntax).map_err(Issues)?;
        check::check(expression, ast, self)
    }

    /// Compiles a checked expression to a program. Literals are converted here, so that a
    /// conversion that always fails is reported now.
    pub fn program(&self, checked: &Checked) -> Result<Program, EvalError> {
        program::build(self, &checked.ast, Some(checked))
    }

    /// Compiles an expression to a program without checking its types.
    pub fn program_unchecked(&self, expression: &str) -> Result<Program, Issues> {
        let ast = parse(expression, self.base.syntax).map_err(Issues)?;
        program::build(self, &ast, None).map_err(|error| {
            let issue = crate::issue::Issue::new(expression, 0, error.to_string());
            Issues(vec![issue])
        })
    }

    pub(crate) fn container_name(&self) -> &str {
        &self.container
    }

    pub(crate) fn validates_literals(&self) -> bool {
        self.base.validates_literals
    }

    pub(crate) fn unique_keys(&self) -> bool {
        self.base.unique_keys
    }

    /// Returns the full names that a name may refer to, the most specific first.
    pub(crate) fn candidates(&self, name: &str) -> Vec<Str> {
        if let Some(absolute) = name.strip_prefix('.') {
            return vec![absolute.into()];
        }
        let mut candidates = Vec::with_capacity(1);
        let mut container = self.container.as_str();
        while !container.is_empty() {
            candidates.push(Str::from(format!("{container}.{name}")));
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        candidates.push(name.into());
        candidates
    }

    pub(crate) fn named(&self, name: &str) -> Option<Named> {
        if let Some((_, ty)) = self.variables.iter().find(|(known, _)| known == name) {
            return Some(Named::Variable(ty.clone()));
        }
        if let Some(ty) = self.composed_variable(name) {
            return Some(Named::Variable(ty));
        }
        if let Some(object) = self.types.iter().find(|object| object.name() == name) {
            return Some(Named::Type(Type::Object(object.clone())));
        }
        if self.open_objects {
            let open = match name {
                "JSONPatch" => Some(JSON_PATCH.clone()),
                "Object" => Some(OBJECT.clone()),
                name if name.starts_with("Object.") => {
                    Some(Arc::new(ObjectType::open(name, Vec::new())))
                }
                _ => None,
            };
            if let Some(object) = open {
                return Some(Named::Type(Type::Object(object)));
            }
        }
        Some(Named::Type(match name {
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "list" => Type::list(Type::Dyn),
            "map" => Type::map(Type::Dyn, Type::Dyn),
            "null_type" => Type::Null,
            "type" => Type::Type(None),
            "google.protobuf.Timestamp" => Type::Timestamp,
            "google.protobuf.Duration" => Type::Duration,
            "optional_type" => Type::optional(Type::Dyn),
            "net.IP" => Type::opaque("net.IP"),
            "net.CIDR" => Type::opaque("net.CIDR"),
            _ => return None,
        }))
    }

    pub(crate) fn function(&self, name: &str) -> Option<(Str, &Function)> {
        if self.container.is_empty() {
            let name = name.strip_prefix('.').unwrap_or(name);
            return Some((name.into(), self.base.functions.get(name)?));
        }
        self.candidates(name).into_iter().find_map(|candidate| {
            let function = self.base.functions.get(&candidate)?;
            Some((candidate, function))
        })
    }
}
