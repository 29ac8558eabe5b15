//! The values of Kubernetes' own types.

use std::net::IpAddr;

use crate::error::EvalError;
use crate::library::authorizer::Authz;
use crate::library::cidr::Cidr;
use crate::library::format::Format;
use crate::library::quantity::Quantity;
use crate::library::semver::Version;
use crate::library::url::Url;
use crate::types::Type;

/// A value of one of Kubernetes' own types.
pub(crate) enum Special {
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Url),
    Semver(Version),
    Format(&'static Format),
    Authz(Authz),
}

impl Special {
    pub(crate) fn ty(&self) -> Type {
        match self {
            Special::Quantity(_) => Type::message("kubernetes.Quantity"),
            Special::Ip(_) => Type::opaque("net.IP"),
            Special::Cidr(_) => Type::opaque("net.CIDR"),
            Special::Url(_) => Type::message("kubernetes.URL"),
            Special::Semver(_) => Type::message("kubernetes.Semver"),
            Special::Format(_) => Type::message("kubernetes.NamedFormat"),
            Special::Authz(value) => Type::message(value.type_name()),
        }
    }

    /// Returns the size for cost calculations: for addresses, the number of bytes.
    pub(crate) fn size(&self) -> Option<usize> {
        match self {
            Special::Ip(IpAddr::V4(_)) => Some(4),
            Special::Ip(IpAddr::V6(_)) => Some(16),
            Special::Cidr(cidr) => Some(usize::from(cidr.bits.div_ceil(8))),
            _ => None,
        }
    }

    pub(crate) fn equals(&self, other: &Special) -> Result<bool, EvalError> {
        Ok(match (self, other) {
            (Special::Quantity(a), Special::Quantity(b)) => a.nanos == b.nanos,
            (Special::Ip(a), Special::Ip(b)) => a == b,
            (Special::Cidr(a), Special::Cidr(b)) => a == b,
            (Special::Url(a), Special::Url(b)) => a.text == b.text,
            (Special::Semver(a), Special::Semver(b)) => a.order(b).is_eq(),
            (Special::Format(a), Special::Format(b)) => a.name == b.name,
            (Special::Authz(a), Special::Authz(b)) => return a.equals(b),
            _ => false,
        })
    }

    /// Returns the text of values that have one.
    pub(crate) fn text(&self) -> Option<String> {
        Some(match self {
            Special::Quantity(quantity) => quantity.text.to_string(),
            Special::Ip(ip) => ip.to_string(),
            Special::Cidr(cidr) => cidr.to_string(),
            Special::Url(url) => url.text.to_string(),
            Special::Semver(version) => version.to_string(),
            Special::Format(format) => format.name.to_owned(),
            Special::Authz(_) => return None,
        })
    }
}
