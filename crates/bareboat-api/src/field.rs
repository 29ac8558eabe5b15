//! Field paths and field errors: which field of an object is invalid, and why.
//!
//! The texts are those Kubernetes prints, because operators' tests match on them.

mod errors;

pub use errors::FieldErrors;

use crate::Value;
use std::fmt::{self, Write as _};

/// A path to a field, printed like `spec.containers[0].env[name]`.
#[derive(Clone, Debug, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub struct FieldPath {
    text: String,
    nameless: bool,
}

impl FieldPath {
    /// Returns the path of the object itself; prints as the empty string.
    pub fn root() -> FieldPath {
        FieldPath::default()
    }

    /// Returns a path that begins with a nameless member, as some of upstream's checks have it;
    /// prints as the empty string.
    pub fn nameless() -> FieldPath {
        FieldPath {
            nameless: true,
            ..FieldPath::default()
        }
    }

    /// Returns a path that starts at a member of the object.
    pub fn new(name: impl Into<String>) -> FieldPath {
        FieldPath::of(name.into())
    }

    /// Returns the path of a member.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        if self.text.is_empty() {
            return FieldPath::new(name);
        }
        self.with([".", name, ""])
    }

    /// Returns the path of a list element.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        self.with(["[", &index.to_string(), "]"])
    }

    /// Returns the path of a map value.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        self.with(["[", key, "]"])
    }

    /// Appends a step. Checks build many paths even when nothing is wrong, so this avoids the
    /// formatting machinery.
    fn with(&self, step: [&str; 3]) -> FieldPath {
        let length = self.text.len() + step.iter().map(|part| part.len()).sum::<usize>();
        let mut path = String::with_capacity(length);
        path.push_str(&self.text);
        step.iter().for_each(|part| path.push_str(part));
        FieldPath::of(path)
    }

    /// Returns whether this is the path of the object itself.
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    fn of(text: String) -> FieldPath {
        FieldPath {
            text,
            nameless: false,
        }
    }

    /// Returns the printed path.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text.as_str() {
            "" if !self.nameless => f.write_str("<nil>"),
            text => f.write_str(text),
        }
    }
}

/// The type of a field error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The field refers to something that does not exist.
    NotFound,
    /// The field is required and missing.
    Required,
    /// The value occurs twice but may occur only once.
    Duplicate,
    /// The value is invalid.
    Invalid,
    /// The value is not among the supported values.
    NotSupported,
    /// The field may not be set here or by this user.
    Forbidden,
    /// The value is longer than allowed.
    TooLong,
    /// The list has more elements than allowed.
    TooMany,
    /// The list has fewer elements than required.
    TooFew,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value is shorter than required.
    TooShort,
    /// The field could not be checked because of a server error.
    Internal,
}

impl FieldErrorKind {
    /// Returns the `reason` of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::TooFew => "FieldValueTooFew",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::TooShort => "FieldValueTooShort",
            FieldErrorKind::Internal => "InternalError",
        }
    }

    fn title(self) -> &'static str {
        match self {
            FieldErrorKind::NotFound => "Not found",
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Duplicate => "Duplicate value",
            FieldErrorKind::Invalid | FieldErrorKind::TypeInvalid => "Invalid value",
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::TooLong => "Too long",
            FieldErrorKind::TooMany => "Too many",
            FieldErrorKind::TooFew => "Too few",
            FieldErrorKind::TooShort => "Too short",
            FieldErrorKind::Internal => "Internal error",
        }
    }
}

/// A validation error of one field, as `field.Error` in Kubernetes: printed into a Status and its
/// causes.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The type of the error.
    pub kind: FieldErrorKind,
    /// The path of the field.
    pub path: FieldPath,
    /// The invalid value; `None` when it is not shown.
    pub value: Option<Value>,
    /// What is wrong with the value, in words.
    pub detail: String,
}

impl FieldError {
    fn new(kind: FieldErrorKind, path: FieldPath, value: Option<Value>, detail: String) -> Self {
        FieldError {
            kind,
            path,
            value,
            detail,
        }
    }

    /// Returns the error for an invalid value.
    pub fn invalid(path: FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            path,
            Some(value.into()),
            detail.into(),
        )
    }

    /// Returns the error for a field that is invalid as a whole; its value is not shown.
    pub fn invalid_whole(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, None, detail.into())
    }

    /// Returns the error for a value of the wrong type.
    pub fn type_invalid(
        path: FieldPath,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(
            FieldErrorKind::TypeInvalid,
            path,
            Some(value.into()),
            detail.into(),
        )
    }

    /// Returns the error for a missing required field.
    pub fn required(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, None, detail.into())
    }

    /// Returns the error for a value that occurs twice.
    pub fn duplicate(path: FieldPath, value: impl Into<Value>) -> Self {
        Self::new(
            FieldErrorKind::Duplicate,
            path,
            Some(value.into()),
            String::new(),
        )
    }

    /// Returns the error for a reference to something that does not exist.
    pub fn not_found(path: FieldPath, value: impl Into<Value>) -> Self {
        Self::new(
            FieldErrorKind::NotFound,
            path,
            Some(value.into()),
            String::new(),
        )
    }

    /// Returns the error for a value that is not among the supported values.
    pub fn not_supported<S: AsRef<str>>(
        path: FieldPath,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut detail = String::new();
        for (index, choice) in supported.into_iter().enumerate() {
            detail.push_str(if index == 0 {
                "supported values: "
            } else {
                ", "
            });
            detail.push_str(&crate::value::print_string(choice.as_ref()));
        }
        Self::new(
            FieldErrorKind::NotSupported,
            path,
            Some(value.into()),
            detail,
        )
    }

    /// Returns the error for a field that may not be set.
    pub fn forbidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, None, detail.into())
    }

    /// Returns the error for a text longer than `limit` bytes.
    pub fn too_long(path: FieldPath, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self::new(FieldErrorKind::TooLong, path, None, detail)
    }

    /// Returns the error for a list with more elements than allowed.
    pub fn too_many(path: FieldPath, count: usize, limit: usize) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        Self::new(
            FieldErrorKind::TooMany,
            path,
            Some(Value::Int(count as i64)),
            detail,
        )
    }

    /// Returns the error for a check that failed itself.
    pub fn internal(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, path, None, detail.into())
    }

    /// Returns the text without the path, as the cause of a Status has it.
    pub fn body(&self) -> String {
        let mut text = self.kind.title().to_owned();
        if let Some(value) = &self.value {
            let shown = match value {
                Value::String(string) => go_quote(string),
                Value::Float(number) => go_float(*number),
                other => other.to_string(),
            };
            let _ = write!(text, ": {shown}");
        }
        if !self.detail.is_empty() {
            let _ = write!(text, ": {}", self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Prints a float like Go's `%v`: with an exponent from 1e6 upwards and below 1e-4.
pub fn go_float(value: f64) -> String {
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Prints a value like Go's `%v`: `map[a:1 b:[x y]]`. Recursion follows the value, whose depth its
/// parser has bounded.
pub fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Float(number) => go_float(*number),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let members = map.iter();
            let members: Vec<String> = members
                .map(|(key, value)| format!("{key}:{}", go_value(value)))
                .collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}

/// Quotes a string like Go's `%q`.
pub fn go_quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => {
                let code = u32::from(control);
                let _ = if code < 0x80 {
                    write!(out, "\\x{code:02x}")
                } else {
                    write!(out, "\\u{code:04x}")
                };
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_kubernetes_prints_them() {
        let spec = FieldPath::new("spec");
        let check = |error: FieldError, expected: &str| assert_eq!(error.to_string(), expected);
        check(
            FieldError::invalid(spec.child("x"), "a", "must be b"),
            r#"spec.x: Invalid value: "a": must be b"#,
        );
        check(
            FieldError::required(spec.child("y"), ""),
            "spec.y: Required value",
        );
        check(
            FieldError::not_supported(spec.child("mode"), "c", ["a", "b"]),
            r#"spec.mode: Unsupported value: "c": supported values: "a", "b""#,
        );
        check(
            FieldError::too_many(spec.child("l").index(2).key("k"), 3, 2),
            "spec.l[2][k]: Too many: 3: must have at most 2 items",
        );
        check(
            FieldError::invalid(FieldPath::root(), Value::Null, "no"),
            "<nil>: Invalid value: null: no",
        );
        check(
            FieldError::too_long(spec.child("s"), 4),
            "spec.s: Too long: may not be more than 4 bytes",
        );
    }
}
