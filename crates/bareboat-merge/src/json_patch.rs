//! JSON patch: a list of operations on paths of a document (RFC 6902).
//!
//! Follows the dialect that Kubernetes clients rely on: negative indices count from the end;
//! replacing a missing member sets it; a missing member is copied and tested as `null`; an omitted
//! value counts as `null`. The whole document can be replaced and tested, but neither added nor
//! copied. The caller parses bytes and turns errors into HTTP answers.

mod pointer;

use bareboat_api::{
    Value,
    value::{MAX_DEPTH, print_string},
};
use pointer::{Pointer, Token};

/// The maximum number of operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The maximum bytes of JSON that the copy operations of one patch may add.
pub const MAX_COPY_BYTES: usize = 3 * 1024 * 1024;

/// The maximum number of values that one patch may visit or shift, so that a small patch cannot use
/// seconds of CPU time.
const MAX_WORK: usize = 200_000_000;

/// The error of a patch that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The document is not a list of objects.
    #[error("a JSON patch must be a list of operations, not {0}")]
    NotAList(&'static str),
    /// An element of the list is not an object.
    #[error("operation {index} must be an object, not {found}")]
    NotAnObject {
        /// The index of the element in the list.
        index: usize,
        /// The JSON type found.
        found: &'static str,
    },
    /// A member of an operation has the wrong type.
    #[error("{member} of operation {index} must be a string, not {found}")]
    NotAString {
        /// The index of the operation.
        index: usize,
        /// The name of the member.
        member: &'static str,
        /// The JSON type found.
        found: &'static str,
    },
    /// The patch has this number of operations, which is more than allowed.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
}

/// The error of a parsed patch that cannot be applied: an operation is invalid, does not fit the document, or exceeds a
/// limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The operation has this unknown name.
    #[error("unexpected kind: {0}")]
    UnknownOperation(String),
    /// The operation lacks a required member.
    #[error("{operation} operation needs a {member}")]
    Incomplete {
        /// The name of the operation, such as `add`.
        operation: &'static str,
        /// The missing member.
        member: &'static str,
    },
    /// A path is not a JSON pointer.
    #[error("{operation} operation has an invalid path: {path}")]
    BadPointer {
        /// The name of the operation, such as `add`.
        operation: &'static str,
        /// The path as given.
        path: String,
    },
    /// The path does not exist.
    #[error("{operation} operation does not apply: doc is missing path: {path}")]
    Missing {
        /// The name of the operation, such as `add`.
        operation: &'static str,
        /// The path as given.
        path: String,
    },
    /// A test found another value.
    #[error("testing value {path} failed")]
    TestFailed {
        /// The path as given.
        path: String,
    },
    /// The copies would add this number of bytes, which is more than allowed.
    #[error(
        "unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {MAX_COPY_BYTES}"
    )]
    CopiesTooMuch(usize),
    /// The result would be nested too deeply.
    #[error("{operation} operation nests deeper than {MAX_DEPTH} levels: {path}")]
    TooDeep {
        /// The name of the operation, such as `add`.
        operation: &'static str,
        /// The path as given.
        path: String,
    },
    /// The patch needs too much work.
    #[error("the patch takes too many steps to apply")]
    TooMuchWork,
}

/// A parsed patch, which can be applied any number of times.
#[derive(Debug, Clone)]
pub struct JsonPatch {
    operations: Vec<Operation>,
    /// Unknown members of operations, for strict clients.
    unknown: Vec<String>,
}

#[derive(Debug, Clone)]
struct Operation {
    kind: Text,
    path: Text,
    from: Text,
    value: Value,
}

/// A member that should be a string.
#[derive(Debug, Clone)]
enum Text {
    Absent,
    Given(String),
    /// A value of this other JSON type.
    Mistyped(&'static str),
}

impl Text {
    fn of(value: Option<Value>) -> Text {
        match value {
            None | Some(Value::Null) => Text::Absent,
            Some(Value::String(text)) => Text::Given(text.into_string()),
            Some(other) => Text::Mistyped(other.type_name()),
        }
    }

    fn given(&self) -> Option<&str> {
        match self {
            Text::Given(text) => Some(text),
            _ => None,
        }
    }
}

impl JsonPatch {
    /// Parses a patch. Invalid operations are reported when they are applied.
    pub fn parse(patch: Value) -> Result<JsonPatch, DecodeError> {
        let items = match patch {
            Value::Array(items) => items,
            // A null patch changes nothing.
            Value::Null => Vec::new(),
            other => return Err(DecodeError::NotAList(other.type_name())),
        };
        if items.len() > MAX_OPERATIONS {
            return Err(DecodeError::TooManyOperations(items.len()));
        }
        let mut unknown = Vec::new();
        let mut operations = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut members = match item {
                Value::Object(members) => members,
                Value::Null => Default::default(),
                other => {
                    let found = other.type_name();
                    return Err(DecodeError::NotAnObject { index, found });
                }
            };
            operations.push(Operation {
                kind: Text::of(members.remove("op")),
                path: Text::of(members.remove("path")),
                from: Text::of(members.remove("from")),
                value: members.remove("value").unwrap_or_default(),
            });
            let rest = members.iter();
            unknown.extend(rest.map(|(name, _)| format!("unknown field \"[{index}].{name}\"")));
        }
        Ok(JsonPatch {
            operations,
            unknown,
        })
    }

    /// Rejects members of the wrong type. Without this check the operation fails later.
    pub fn check_types(&self) -> Result<(), DecodeError> {
        for (index, operation) in self.operations.iter().enumerate() {
            let members = [
                ("op", &operation.kind),
                ("path", &operation.path),
                ("from", &operation.from),
            ];
            for (member, text) in members {
                if let Text::Mistyped(found) = *text {
                    return Err(DecodeError::NotAString {
                        index,
                        member,
                        found,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the unknown members of operations.
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Changes the document; on an error it is left half changed.
    pub fn apply(&self, document: &mut Value) -> Result<(), ApplyError> {
        let mut budget = Budget { copied: 0, work: 0 };
        for operation in &self.operations {
            operation.apply(document, &mut budget)?;
        }
        Ok(())
    }
}

struct Budget {
    copied: usize,
    work: usize,
}

impl Budget {
    fn spend(&mut self, work: usize) -> Result<(), ApplyError> {
        self.work += work;
        if self.work > MAX_WORK {
            return Err(ApplyError::TooMuchWork);
        }
        Ok(())
    }
}

impl Operation {
    fn apply(&self, document: &mut Value, budget: &mut Budget) -> Result<(), ApplyError> {
        match self.kind.given().unwrap_or("unknown") {
            "add" => {
                let step = Step::new("add", "path", &self.path)?;
                step.check_depth(&self.value, budget)?;
                step.add(document, self.value.clone(), budget)
            }
            "remove" => {
                let step = Step::new("remove", "path", &self.path)?;
                step.remove(document, budget).map(drop)
            }
            "replace" => {
                let step = Step::new("replace", "path", &self.path)?;
                step.check_depth(&self.value, budget)?;
                step.replace(document, self.value.clone(), budget)
            }
            "test" => Step::new("test", "path", &self.path)?.test(document, &self.value),
            "copy" => self.copy(document, budget),
            "move" => {
                let from = Step::new("move", "from", &self.from)?;
                let to = Step::new("move", "path", &self.path)?;
                let value = from.remove(document, budget)?;
                // A value that was shallow enough at its old path is so at any path that is not
                // deeper.
                if to.pointer.len() > from.pointer.len() {
                    to.check_depth(&value, budget)?;
                }
                to.add(document, value, budget)
            }
            other => Err(ApplyError::UnknownOperation(print_string(other))),
        }
    }

    fn copy(&self, document: &mut Value, budget: &mut Budget) -> Result<(), ApplyError> {
        let from = Step::new("copy", "from", &self.from)?;
        let to = Step::new("copy", "path", &self.path)?;
        let source = from.source(document)?.unwrap_or(&Value::Null);
        // The size is counted before copying, so that memory stays within the limit.
        budget.copied = budget.copied.saturating_add(json_size(source));
        if budget.copied > MAX_COPY_BYTES {
            return Err(ApplyError::CopiesTooMuch(budget.copied));
        }
        let value = source.clone();
        to.check_depth(&value, budget)?;
        to.add(document, value, budget)
    }
}

/// One end of an operation.
struct Step<'a> {
    operation: &'static str,
    path: &'a str,
    pointer: Pointer,
}

impl<'a> Step<'a> {
    fn new(
        operation: &'static str,
        member: &'static str,
        path: &'a Text,
    ) -> Result<Step<'a>, ApplyError> {
        let missing = ApplyError::Incomplete { operation, member };
        let path = path.given().ok_or(missing)?;
        let pointer = Pointer::parse(path).ok_or_else(|| ApplyError::BadPointer {
            operation,
            path: path.into(),
        })?;
        Ok(Step {
            operation,
            path,
            pointer,
        })
    }

    fn missing(&self) -> ApplyError {
        ApplyError::Missing {
            operation: self.operation,
            path: self.path.into(),
        }
    }

    fn check_depth(&self, value: &Value, budget: &mut Budget) -> Result<(), ApplyError> {
        let room = MAX_DEPTH.saturating_sub(self.pointer.len());
        let mut walked = 0;
        let fits = fits(value, room, &mut walked);
        budget.spend(walked)?;
        if fits {
            return Ok(());
        }
        Err(ApplyError::TooDeep {
            operation: self.operation,
            path: self.path.into(),
        })
    }

    fn add(
        &self,
        document: &mut Value,
        value: Value,
        budget: &mut Budget,
    ) -> Result<(), ApplyError> {
        let Some((parent, last)) = self.pointer.parent(document) else {
            return Err(self.missing());
        };
        match parent {
            Value::Object(members) => {
                budget.spend(members.len())?;
                members.insert(last.name(), value);
                Ok(())
            }
            Value::Array(items) => {
                let place = last
                    .place_to_insert(items.len())
                    .ok_or_else(|| self.missing())?;
                budget.spend(items.len() - place)?;
                items.insert(place, value);
                Ok(())
            }
            _ => Err(self.missing()),
        }
    }

    fn remove(&self, document: &mut Value, budget: &mut Budget) -> Result<Value, ApplyError> {
        let Some((parent, last)) = self.pointer.parent(document) else {
            // A document that was removed as a whole has no members.
            return Err(self.missing());
        };
        match parent {
            Value::Object(members) => {
                budget.spend(members.len())?;
                members.remove(last.name()).ok_or_else(|| self.missing())
            }
            Value::Array(items) => {
                let place = last.place(items.len()).ok_or_else(|| self.missing())?;
                budget.spend(items.len() - place)?;
                Ok(items.remove(place))
            }
            _ => Err(self.missing()),
        }
    }

    fn replace(
        &self,
        document: &mut Value,
        value: Value,
        budget: &mut Budget,
    ) -> Result<(), ApplyError> {
        let Some((parent, last)) = self.pointer.parent(document) else {
            if self.pointer.is_root() && matches!(value, Value::Object(_) | Value::Array(_)) {
                *document = value;
                return Ok(());
            }
            return Err(self.missing());
        };
        match parent {
            // Upstream: evanphx/json-patch v4 sets a missing member, and clients rely on it.
            Value::Object(members) => {
                budget.spend(members.len())?;
                members.insert(last.name(), value);
                Ok(())
            }
            Value::Array(items) => {
                let place = last.place(items.len()).ok_or_else(|| self.missing())?;
                items[place] = value;
                Ok(())
            }
            _ => Err(self.missing()),
        }
    }

    /// Returns the value at a place of an existing container: required in a list, optional in an
    /// object.
    fn source<'d>(&self, document: &'d Value) -> Result<Option<&'d Value>, ApplyError> {
        let Some((parent, last)) = self.pointer.container(document) else {
            return Err(self.missing());
        };
        match parent {
            Value::Object(members) => Ok(members.get(last.name())),
            Value::Array(items) => match last.place(items.len()) {
                Some(place) => Ok(Some(&items[place])),
                None => Err(self.missing()),
            },
            _ => Err(self.missing()),
        }
    }

    fn test(&self, document: &Value, expected: &Value) -> Result<(), ApplyError> {
        let found = match self.pointer.is_root() {
            true => document,
            false => self.source(document)?.unwrap_or(&Value::Null),
        };
        let failed = || ApplyError::TestFailed {
            path: self.path.into(),
        };
        (found == expected).then_some(()).ok_or_else(failed)
    }
}

/// Returns whether the value nests no deeper than `room`; counts the visited values.
fn fits(value: &Value, room: usize, walked: &mut usize) -> bool {
    *walked += 1;
    match value {
        Value::Array(items) => room > 0 && items.iter().all(|item| fits(item, room - 1, walked)),
        Value::Object(members) => {
            room > 0 && members.values().all(|item| fits(item, room - 1, walked))
        }
        _ => true,
    }
}

/// Returns the approximate size of the value as JSON.
fn json_size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Int(_) | Value::Float(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| json_size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            let sizes = members
                .iter()
                .map(|(key, item)| key.len() + 4 + json_size(item));
            sizes.sum::<usize>() + 2
        }
    }
}

impl Token {
    /// Returns the index of this token in a list of `len` elements.
    fn place(&self, len: usize) -> Option<usize> {
        self.index(len).filter(|place| *place < len)
    }

    /// Returns the insertion index of this token in a list of `len` elements.
    fn place_to_insert(&self, len: usize) -> Option<usize> {
        if self.name() == "-" {
            return Some(len);
        }
        // Counted from the end of the list after the insertion, so that -1 appends.
        self.index(len + 1).filter(|place| *place <= len)
    }
}

#[cfg(test)]
mod tests;
