//! Where in an object something is wrong, and what: field paths and field errors.
//!
//! The texts are those Kubernetes prints, because operators' tests match on them.

use crate::Value;
use std::fmt::{self, Write as _};

/// A path to a field, printed like `spec.containers[0].env[name]`.
#[derive(Clone, Debug, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub struct FieldPath {
    text: String,
    nameless: bool,
}

impl FieldPath {
    /// The object itself; prints as nothing.
    pub fn root() -> FieldPath {
        FieldPath::default()
    }

    /// A path that begins with a member without a name, as some checks of upstream do; prints as nothing at all.
    pub fn nameless() -> FieldPath {
        FieldPath {
            nameless: true,
            ..FieldPath::default()
        }
    }

    /// A path that starts at a member of the object.
    pub fn new(name: impl Into<String>) -> FieldPath {
        FieldPath::of(name.into())
    }

    /// The member of this place.
    #[must_use]
    pub fn child(&self, name: &str) -> FieldPath {
        if self.text.is_empty() {
            return FieldPath::new(name);
        }
        self.with([".", name, ""])
    }

    /// The element at an index of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> FieldPath {
        self.with(["[", &index.to_string(), "]"])
    }

    /// The value under a key of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> FieldPath {
        self.with(["[", key, "]"])
    }

    /// This path and a step more. Checks make paths by the dozen whether or not something is wrong, so this is no
    /// place for formatting.
    fn with(&self, step: [&str; 3]) -> FieldPath {
        let length = self.text.len() + step.iter().map(|part| part.len()).sum::<usize>();
        let mut path = String::with_capacity(length);
        path.push_str(&self.text);
        step.iter().for_each(|part| path.push_str(part));
        FieldPath::of(path)
    }

    /// Whether this is the object itself.
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    fn of(text: String) -> FieldPath {
        FieldPath {
            text,
            nameless: false,
        }
    }

    /// The printed path.
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

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// Refers to something that does not exist.
    NotFound,
    /// Must be given and is not.
    Required,
    /// Stands twice where it may stand once.
    Duplicate,
    /// Has a value it may not have.
    Invalid,
    /// Is none of the values that are allowed.
    NotSupported,
    /// May not be set here or by this caller.
    Forbidden,
    /// Is longer than allowed.
    TooLong,
    /// Has more elements than allowed.
    TooMany,
    /// Has fewer elements than needed.
    TooFew,
    /// Has a value of the wrong type.
    TypeInvalid,
    /// Is shorter than needed.
    TooShort,
    /// Could not be checked because of a fault of the server.
    Internal,
}

impl FieldErrorKind {
    /// The `reason` of the cause in a Status.
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

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: FieldErrorKind,
    /// Where.
    pub path: FieldPath,
    /// The offending value; `None` when showing it would not help.
    pub value: Option<Value>,
    /// Why, in words.
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

    /// The field has a value it may not have.
    pub fn invalid(path: FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            path,
            Some(value.into()),
            detail.into(),
        )
    }

    /// The field is invalid as a whole; its value is not shown.
    pub fn invalid_whole(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, None, detail.into())
    }

    /// The field has a value of the wrong type.
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

    /// The field must be given.
    pub fn required(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, path, None, detail.into())
    }

    /// The value stands there already.
    pub fn duplicate(path: FieldPath, value: impl Into<Value>) -> Self {
        Self::new(
            FieldErrorKind::Duplicate,
            path,
            Some(value.into()),
            String::new(),
        )
    }

    /// What the field refers to does not exist.
    pub fn not_found(path: FieldPath, value: impl Into<Value>) -> Self {
        Self::new(
            FieldErrorKind::NotFound,
            path,
            Some(value.into()),
            String::new(),
        )
    }

    /// The value is none of those supported.
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

    /// The field may not be set.
    pub fn forbidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, None, detail.into())
    }

    /// The text is longer than so many bytes.
    pub fn too_long(path: FieldPath, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self::new(FieldErrorKind::TooLong, path, None, detail)
    }

    /// The list has more elements than allowed.
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

    /// The list has fewer elements than needed.
    pub fn too_few(path: FieldPath, count: usize, limit: usize) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at least {limit} {items}");
        Self::new(
            FieldErrorKind::TooFew,
            path,
            Some(Value::Int(count as i64)),
            detail,
        )
    }

    /// The check itself failed.
    pub fn internal(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, path, None, detail.into())
    }

    /// The text without the path, as a cause carries it.
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

/// A float as Go's `%v` prints it: an exponent from a million on, and below a ten-thousandth.
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

/// Data as Go's `%v` prints it: `map[a:1 b:[x y]]`. Recursion follows the value, whose depth its reader has bounded.
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

/// A string in double quotes as Go's `%q` prints it.
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
