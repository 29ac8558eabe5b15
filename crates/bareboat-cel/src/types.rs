//! The types of expressions in the checker.
//!
//! The checker compares and joins types (`check::assign`); [`crate::DeclType`] has the sizes of
//! types.

use std::fmt;
use std::sync::Arc;

use bareboat_api::Str;

use crate::decl::ObjectType;

/// A type of the language.
#[derive(Clone, Debug)]
pub enum Type {
    /// Any type; decided during evaluation.
    Dyn,
    /// `google.protobuf.Any`: a type declared as such. Every operation is allowed on it, as on
    /// `dyn`, but messages and some result checks distinguish the two.
    Any,
    /// The type of an expression with an error; assignable to everything so that one error is
    /// reported once.
    Error,
    /// The type of `null`.
    Null,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `list(T)`.
    List(Arc<Type>),
    /// `map(K, V)`.
    Map(Arc<(Type, Type)>),
    /// `type(T)`, the type of a type; without parameter when it is unknown.
    Type(Option<Arc<Type>>),
    /// A parameter of a function's signature, or a type variable of the checker.
    Param(Param),
    /// An object with declared fields.
    Object(Arc<ObjectType>),
    /// A named type without fields, such as `kubernetes.Quantity`, or with parameters, such as
    /// `optional_type(T)`.
    Opaque(Arc<Opaque>),
}

/// A type that consists of a name and parameters.
#[derive(Debug)]
pub struct Opaque {
    /// The full name.
    pub name: Str,
    /// The type parameters, usually none.
    pub params: Vec<Type>,
    /// Whether the type counts as a message: Kubernetes declares some of its types as objects
    /// without fields and others as opaque, which affects costs and messages.
    pub message: bool,
}

/// A type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// A letter of a declared signature.
    Named(u8),
    /// The nth type variable of the checker.
    Fresh(u32),
}

/// The name of the optional type.
pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    /// Returns the CEL type `list(element)`.
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// Returns the CEL type `map(key, value)`.
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// Returns the CEL type `optional_type(of)`: a value that may be absent.
    pub fn optional(of: Type) -> Type {
        Type::Opaque(Arc::new(Opaque {
            name: OPTIONAL.into(),
            params: vec![of],
            message: false,
        }))
    }

    /// Returns a named type without parameters and fields.
    pub fn opaque(name: &str) -> Type {
        Type::Opaque(Arc::new(Opaque {
            name: name.into(),
            params: Vec::new(),
            message: false,
        }))
    }

    /// Returns a named type without fields that counts as a message.
    pub fn message(name: &str) -> Type {
        Type::Opaque(Arc::new(Opaque {
            name: name.into(),
            params: Vec::new(),
            message: true,
        }))
    }

    /// Returns the CEL type `type(of)`: the type of a type.
    pub(crate) fn type_of(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    /// Returns whether this is `dyn`, or treated like it.
    pub fn is_dyn(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        self.is_dyn() || matches!(self, Type::Error)
    }

    /// Returns the value type of an optional type, if this is one.
    pub fn as_optional(&self) -> Option<&Type> {
        match self {
            Type::Opaque(opaque) if opaque.name == OPTIONAL => opaque.params.first(),
            _ => None,
        }
    }

    /// Returns the name that `type()` shows for values of this type.
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Any => "google.protobuf.Any",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Type(_) => "type",
            Type::Param(_) => "param",
            Type::Object(object) => object.name(),
            Type::Opaque(opaque) => &opaque.name,
        }
    }

    /// Returns the type with its parameters, named as `type()` names them:
    /// `list(google.protobuf.Duration)`.
    pub(crate) fn full_name(&self) -> String {
        let with = |name: &str, params: &[&Type]| {
            let params: Vec<String> = params.iter().map(|param| param.full_name()).collect();
            format!("{name}({})", params.join(", "))
        };
        match self {
            Type::List(items) => with("list", &[items]),
            Type::Map(entry) => with("map", &[&entry.0, &entry.1]),
            Type::Type(Some(of)) => with("type", &[of]),
            Type::Opaque(opaque) if !opaque.params.is_empty() => {
                with(&opaque.name, &opaque.params.iter().collect::<Vec<_>>())
            }
            other => other.name().to_owned(),
        }
    }

    /// Returns whether both are the same type, including parameters.
    pub(crate) fn is_exactly(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) => a.is_exactly(b),
            (Type::Map(a), Type::Map(b)) => a.0.is_exactly(&b.0) && a.1.is_exactly(&b.1),
            (Type::Type(Some(a)), Type::Type(Some(b))) => a.is_exactly(b),
            (Type::Type(None), Type::Type(None)) => true,
            (Type::Param(a), Type::Param(b)) => a == b,
            (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b) || a.name() == b.name(),
            (Type::Opaque(a), Type::Opaque(b)) => {
                a.name == b.name
                    && a.params.len() == b.params.len()
                    && a.params.iter().zip(&b.params).all(|(a, b)| a.is_exactly(b))
            }
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && !matches!(self, Type::Type(_))
            }
        }
    }
}

/// Prints a type as in messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Error => f.write_str("!error!"),
            Type::Any => f.write_str("any"),
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::Param(Param::Named(letter)) => write!(f, "{}", *letter as char),
            Type::Param(Param::Fresh(number)) => write!(f, "_var{number}"),
            Type::Opaque(opaque) if !opaque.params.is_empty() => {
                write!(f, "{}(", opaque.name)?;
                for (index, param) in opaque.params.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{param}")?;
                }
                f.write_str(")")
            }
            other => f.write_str(other.name()),
        }
    }
}
