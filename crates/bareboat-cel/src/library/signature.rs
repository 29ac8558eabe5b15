//! The text form of signatures: `list(A), int -> A`, with a leading dot for methods.

use crate::library::authorizer;
use crate::types::{Param, Type};

/// Parses a signature; returns whether it is a method, its arguments (receiver first), its result
/// and its type parameters.
pub(super) fn parse(signature: &str) -> (bool, Vec<Type>, Type, Vec<Param>) {
    let member = signature.starts_with('.');
    let text = signature.trim_start_matches('.');
    let (args, result) = text
        .split_once("->")
        .expect("signatures are constants of this crate and have an arrow");
    let mut params = Vec::new();
    let mut reader = Reader {
        rest: args.trim(),
        params: &mut params,
    };
    let args = reader.list("");
    reader.rest = result.trim();
    let result = reader.ty();
    (member, args, result, params)
}

struct Reader<'s, 'p> {
    rest: &'s str,
    params: &'p mut Vec<Param>,
}

impl Reader<'_, '_> {
    /// Parses types separated by commas up to the closing text.
    fn list(&mut self, close: &str) -> Vec<Type> {
        let mut types = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || (!close.is_empty() && self.rest.starts_with(close)) {
                break;
            }
            types.push(self.ty());
            self.rest = self.rest.trim_start();
            self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        }
        self.rest = self.rest.strip_prefix(close).unwrap_or(self.rest);
        types
    }

    fn ty(&mut self) -> Type {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let name = &self.rest[..end];
        self.rest = &self.rest[end..];
        let mut inner = Vec::new();
        if let Some(after) = self.rest.strip_prefix('(') {
            self.rest = after;
            inner = self.list(")");
        }
        let mut inner = inner.into_iter();
        let mut next = || {
            inner
                .next()
                .expect("signatures give lists and maps their types")
        };
        match name {
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "list" => Type::list(next()),
            "map" => {
                let key = next();
                Type::map(key, next())
            }
            "optional" => Type::optional(next()),
            "type" => Type::type_of(next()),
            "quantity" => Type::message("kubernetes.Quantity"),
            "ip" => Type::opaque("net.IP"),
            "cidr" => Type::opaque("net.CIDR"),
            "url" => Type::message("kubernetes.URL"),
            "semver" => Type::message("kubernetes.Semver"),
            "format" => Type::message("kubernetes.NamedFormat"),
            "authorizer" => Type::message(authorizer::AUTHORIZER),
            "pathcheck" => Type::message(authorizer::PATH_CHECK),
            "groupcheck" => Type::message(authorizer::GROUP_CHECK),
            "resourcecheck" => Type::message(authorizer::RESOURCE_CHECK),
            "decision" => Type::message(authorizer::DECISION),
            letter => {
                let param = Param::Named(letter.as_bytes()[0]);
                if !self.params.contains(&param) {
                    self.params.push(param);
                }
                Type::Param(param)
            }
        }
    }
}
