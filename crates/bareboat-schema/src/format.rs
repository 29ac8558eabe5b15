//! The string and number formats of schemas.
//!
//! Upstream: kube-openapi pkg/validation/strfmt. Names are compared without hyphens; an unknown
//! name is not checked.

mod address;
mod letters;
mod text;

use crate::schema::Kind;

/// A format that values are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Int32,
    Int64,
    Float,
    Double,
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// Returns the format of that name, if it applies to values of that kind.
    pub(crate) fn named(name: &str, kind: Kind) -> Option<Format> {
        match kind {
            Kind::Integer => match name {
                "int32" => Some(Format::Int32),
                "int64" => Some(Format::Int64),
                _ => None,
            },
            Kind::Number => match name {
                "float" => Some(Format::Float),
                "double" => Some(Format::Double),
                _ => None,
            },
            Kind::Any | Kind::String => Format::of_text(&name.replace('-', "")),
            _ => None,
        }
    }

    fn of_text(name: &str) -> Option<Format> {
        Some(match name {
            "bsonobjectid" => Format::BsonObjectId,
            "uri" => Format::Uri,
            "email" => Format::Email,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "cidr" => Format::Cidr,
            "mac" => Format::Mac,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "creditcard" => Format::CreditCard,
            "ssn" => Format::Ssn,
            "hexcolor" => Format::HexColor,
            "rgbcolor" => Format::RgbColor,
            "byte" => Format::Byte,
            "password" => Format::Password,
            "date" => Format::Date,
            "duration" => Format::Duration,
            "datetime" => Format::DateTime,
            "k8sshortname" => Format::ShortName,
            "k8slongname" => Format::LongName,
            _ => return None,
        })
    }

    /// Returns whether strings are validated against this format; number formats are not.
    pub(crate) fn is_for_text(self) -> bool {
        !matches!(
            self,
            Format::Int32 | Format::Int64 | Format::Float | Format::Double
        )
    }

    /// Returns whether a text has this format.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Format::Int32 | Format::Int64 | Format::Float | Format::Double => true,
            Format::BsonObjectId => text.len() == 24 && text::is_hex(text),
            Format::Uri => address::is_request_uri(text),
            Format::Email => address::is_email(text),
            Format::Hostname => address::is_hostname(text),
            Format::Ipv4 => address::is_ipv4(text),
            Format::Ipv6 => address::is_ipv6(text),
            Format::Cidr => address::is_cidr(text),
            Format::Mac => address::is_mac(text),
            Format::Uuid => text::is_uuid(text, None, false),
            Format::Uuid3 => text::is_uuid(text, Some(b'3'), false),
            Format::Uuid4 => text::is_uuid(text, Some(b'4'), true),
            Format::Uuid5 => text::is_uuid(text, Some(b'5'), true),
            Format::Isbn => text::is_isbn10(text) || text::is_isbn13(text),
            Format::Isbn10 => text::is_isbn10(text),
            Format::Isbn13 => text::is_isbn13(text),
            Format::CreditCard => text::is_credit_card(text),
            Format::Ssn => text::is_ssn(text),
            Format::HexColor => text::is_hex_color(text),
            Format::RgbColor => text::is_rgb_color(text),
            Format::Byte => text::is_base64(text),
            Format::Password => true,
            Format::Date => text::is_date(text),
            Format::Duration => text::is_duration(text),
            Format::DateTime => text::is_date_time(text),
            Format::ShortName => text.len() <= 63 && bareboat_api::names::is_dns1123_label(text),
            Format::LongName => {
                text.len() <= 253 && bareboat_api::names::is_dns1123_subdomain(text)
            }
        }
    }
}

/// Returns whether a text is an absolute URI.
#[cfg(feature = "expressions")]
pub(crate) fn is_uri(text: &str) -> bool {
    Format::Uri.accepts(text)
}

#[cfg(test)]
mod tests;
