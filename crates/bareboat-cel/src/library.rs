//! The functions: their declarations by library, and the function table of an environment.
//!
//! Operators that are evaluated in place are declared in [`standard`] for the checker, but
//! implemented in `eval`.

pub(crate) mod authorizer;
pub(crate) mod cidr;
mod convert;
mod encoders;
pub(crate) mod format;
pub(crate) mod go_regex;
pub(crate) mod interpolate;
mod ip;
pub(crate) mod lists;
mod math;
mod optional;
pub(crate) mod quantity;
mod regex;
pub(crate) mod semver;
pub(crate) mod sets;
mod signature;
mod standard;
mod strings;
mod time;
pub(crate) mod url;

pub use authorizer::{AccessCheck, AccessDecision, Authorizer};

use std::collections::HashMap;

use crate::budget::Budget;
use crate::error::EvalError;
use crate::types::{Param, Type};
use crate::value::Val;

/// The implementation of a function; a receiver is the first argument.
pub(crate) type Func = for<'a> fn(&mut Budget, &[Val<'a>]) -> Result<Val<'a>, EvalError>;

/// The declaration of a function by a library.
pub(crate) struct Decl {
    pub(crate) name: &'static str,
    pub(crate) call: Func,
    /// Overloads by name and signature: `string, int -> string`, with a leading dot for methods.
    pub(crate) overloads: &'static [(&'static str, &'static str)],
}

/// A function with all its overloads from all libraries.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) overloads: Vec<Overload>,
}

/// One overload of a function.
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) member: bool,
    pub(crate) args: Vec<Type>,
    pub(crate) result: Type,
    /// The type parameters of the signature.
    pub(crate) params: Vec<Param>,
    pub(crate) call: Func,
    /// The index of the declaration it comes from: overloads of one declaration share their code.
    pub(crate) family: u16,
}

/// The functions of an environment.
#[derive(Default)]
pub(crate) struct Functions {
    by_name: HashMap<&'static str, Function>,
    families: u16,
}

impl Functions {
    pub(crate) fn add(&mut self, decls: &[Decl]) {
        for decl in decls {
            self.families += 1;
            let function = self.by_name.entry(decl.name).or_default();
            for (id, signature) in decl.overloads {
                let (member, args, result, params) = signature::parse(signature);
                function.overloads.push(Overload {
                    id,
                    member,
                    args,
                    result,
                    params,
                    call: decl.call,
                    family: self.families,
                });
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name)
    }
}

/// A library of functions that an environment may include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Operators, conversions, strings and time of the core.
    Standard,
    /// Optional values.
    Optional,
    /// cel-go's string functions up to version 2 without `format`: `charAt` to `strings.quote`.
    Strings,
    /// `format` as version 2 has it.
    StringFormat,
    /// Additions of later versions of the string functions: another `format`, and `reverse`.
    StringsLatest,
    /// cel-go's list functions, version 3.
    Lists,
    /// cel-go's set functions: `sets.contains`, `sets.equivalent` and `sets.intersects`.
    Sets,
    /// Functions for two-variable comprehensions.
    Comprehensions,
    /// cel-go's `math` functions.
    Math,
    /// cel-go's `base64.encode` and `base64.decode`.
    Encoders,
    /// Kubernetes' list functions.
    KubernetesLists,
    /// Kubernetes' `find` and `findAll`.
    Regex,
    /// Kubernetes' URLs.
    Urls,
    /// Kubernetes' IP addresses and CIDRs.
    Network,
    /// Kubernetes' quantities.
    Quantities,
    /// Kubernetes' named formats.
    Formats,
    /// Kubernetes' semantic versions.
    Semver,
    /// Kubernetes' authorizer.
    Authorization,
    /// Kubernetes' `jsonpatch.escapeKey`.
    JsonPatch,
}

impl Library {
    pub(crate) fn decls(self) -> &'static [&'static [Decl]] {
        match self {
            Library::Standard => &[
                standard::OPERATORS,
                standard::FUNCTIONS,
                convert::FUNCTIONS,
                time::FUNCTIONS,
            ],
            Library::Optional => &[optional::FUNCTIONS],
            Library::Strings => &[strings::FUNCTIONS],
            Library::StringFormat => &[strings::FORMAT],
            Library::StringsLatest => &[strings::LATEST],
            Library::Lists => &[lists::EXTENSION],
            Library::Sets => &[sets::FUNCTIONS],
            Library::Comprehensions => &[lists::COMPREHENSIONS],
            Library::Math => &[math::FUNCTIONS],
            Library::Encoders => &[encoders::FUNCTIONS],
            Library::KubernetesLists => &[lists::KUBERNETES],
            Library::Regex => &[regex::FUNCTIONS],
            Library::Urls => &[url::FUNCTIONS],
            Library::Network => &[ip::FUNCTIONS, cidr::FUNCTIONS],
            Library::Quantities => &[quantity::FUNCTIONS],
            Library::Formats => &[format::FUNCTIONS],
            Library::Semver => &[semver::FUNCTIONS],
            Library::Authorization => &[authorizer::FUNCTIONS],
            Library::JsonPatch => &[strings::JSON_PATCH],
        }
    }
}

/// Returns the error of a call without a matching overload.
pub(crate) fn no_such_overload<'a>() -> Result<Val<'a>, EvalError> {
    Err(EvalError::no_such_overload())
}
