//! Parses and checks the options of each verb from the query.

use super::query::Query;
use bareboat_api::status::GroupResource;
use bareboat_api::{FieldError, FieldPath, Status, Value};
use std::time::Duration;

/// How a write handles unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops unknown fields silently.
    Ignore,
    /// Drops unknown fields and sends a Warning header.
    Warn,
    /// Refuses a write with unknown fields.
    Strict,
}

/// The options all writes share.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Whether to run everything but the write itself.
    pub dry_run: bool,
    /// The manager recorded for the written fields.
    pub field_manager: Option<String>,
    /// How to handle unknown fields.
    pub field_validation: FieldValidation,
    /// Whether server-side apply takes over conflicting fields.
    pub force: bool,
}

/// How the requested resourceVersion is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly this version.
    Exact,
    /// This version or a newer one.
    NotOlderThan,
}

/// The options of list, watch and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// The label selector, as sent.
    pub label_selector: Option<String>,
    /// The field selector, as sent.
    pub field_selector: Option<String>,
    /// The requested version; `Some(0)` is "any", `None` "the newest".
    pub resource_version: Option<u64>,
    /// How the version is matched.
    pub version_match: Option<VersionMatch>,
    /// Maximum number of items in one answer; 0 means no limit.
    pub limit: usize,
    /// The `continue` token of the previous page, as sent.
    pub continue_token: Option<String>,
    /// The lifetime of a watch.
    pub timeout: Option<Duration>,
    /// Whether the client understands bookmarks.
    pub bookmarks: bool,
    /// Whether a watch starts with the current state.
    pub send_initial_events: Option<bool>,
}

fn invalid(options: &str, error: FieldError) -> Status {
    let what = GroupResource {
        group: "meta.k8s.io",
        resource: options,
    };
    Status::invalid(what, "", &[error])
}

impl WriteOptions {
    /// Parses the options of a write; `name` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub fn parse(query: &Query, name: &'static str) -> Result<WriteOptions, Status> {
        let field_validation = match query.given("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let path = FieldPath::new("fieldValidation");
                let choices = ["", "Ignore", "Strict", "Warn"];
                return Err(invalid(
                    name,
                    FieldError::not_supported(path, other, choices),
                ));
            }
        };
        let field_manager = query.given("fieldManager").map(str::to_owned);
        if let Some(manager) = &field_manager {
            check_manager(manager).map_err(|error| invalid(name, error))?;
        }
        Ok(WriteOptions {
            dry_run: dry_run(query.all("dryRun"), name)?,
            field_manager,
            field_validation,
            force: boolean(query, "force")?.unwrap_or(false),
        })
    }

    /// Checks the options that only apply to patches.
    pub fn check_patch(&self, query: &Query, apply: bool) -> Result<(), Status> {
        let error = if apply && self.field_manager.is_none() {
            FieldError::required(
                FieldPath::new("fieldManager"),
                "is required for apply patch",
            )
        } else if !apply && query.given("force").is_some() {
            let why = "may not be specified for non-apply patch";
            FieldError::forbidden(FieldPath::new("force"), why)
        } else {
            return Ok(());
        };
        Err(invalid("PatchOptions", error))
    }
}

/// Parses `dryRun`, whose only value is `All`.
pub fn dry_run<'a>(
    given: impl Iterator<Item = &'a str>,
    options: &'static str,
) -> Result<bool, Status> {
    let given: Vec<&str> = given.filter(|value| !value.is_empty()).collect();
    if given.iter().all(|value| *value == "All") {
        return Ok(!given.is_empty());
    }
    let shown: Value = given.into_iter().collect();
    let error = FieldError::not_supported(FieldPath::new("dryRun"), shown, ["All"]);
    Err(invalid(options, error))
}

fn check_manager(manager: &str) -> Result<(), FieldError> {
    let path = FieldPath::new("fieldManager");
    if manager.len() > 128 {
        return Err(FieldError::too_long(path, 128));
    }
    match manager
        .char_indices()
        .find(|(_, character)| character.is_control())
    {
        Some((index, character)) => Err(FieldError::invalid(
            path,
            manager,
            format!("invalid character {character:?} (at position {index})"),
        )),
        None => Ok(()),
    }
}

fn boolean(query: &Query, key: &str) -> Result<Option<bool>, Status> {
    Ok(query.get(key).map(is_true))
}

/// Parses a boolean parameter: everything but `0` and `false` means true, also an empty text.
pub fn is_true(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

/// Refuses `export`, which old clients send with GET.
pub(crate) fn refuse_export(query: &Query) -> Result<(), Status> {
    match query.get("export") {
        Some(text) if is_true(text) => Err(Status::bad_request(
            "the export parameter, deprecated since v1.14, is no longer supported",
        )),
        _ => Ok(()),
    }
}

fn integer(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    let Some(text) = query.given(key) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let shown = bareboat_api::field::go_quote(text);
        Status::bad_request(format!("strconv.ParseInt: parsing {shown}: invalid syntax"))
    })
}

/// Parses a resourceVersion; `None` if it is absent.
pub fn resource_version(text: Option<&str>) -> Result<Option<u64>, Status> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let shown = bareboat_api::field::go_quote(text);
        Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {shown}: \
             strconv.ParseUint: parsing {shown}: invalid syntax"
        ))
    })
}

impl ListOptions {
    /// Parses the options of list, watch or deletecollection.
    pub fn parse(query: &Query, watch: bool) -> Result<ListOptions, Status> {
        let options = ListOptions {
            label_selector: query.given("labelSelector").map(str::to_owned),
            field_selector: query.given("fieldSelector").map(str::to_owned),
            resource_version: None,
            version_match: None,
            limit: usize::try_from(integer(query, "limit")?.unwrap_or(0)).unwrap_or(0),
            continue_token: query.given("continue").map(str::to_owned),
            timeout: integer(query, "timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0)
                // Bounded to a year, which is longer than any watch, so that clocks do not overflow.
                .map(|seconds| Duration::from_secs(seconds.min(365 * 24 * 3600))),
            bookmarks: boolean(query, "allowWatchBookmarks")?.unwrap_or(false),
            send_initial_events: boolean(query, "sendInitialEvents")?,
        };
        options.check(query, watch)
    }

    fn check(mut self, query: &Query, watch: bool) -> Result<ListOptions, Status> {
        let version = query.given("resourceVersion");
        let matching = query.given("resourceVersionMatch");
        let path = || FieldPath::new("resourceVersionMatch");
        let refuse = |error| Err(invalid("ListOptions", error));
        let forbid = |why| refuse(FieldError::forbidden(path(), why));

        if self.send_initial_events.is_some() {
            if !watch {
                let why = "sendInitialEvents is forbidden for list";
                return refuse(FieldError::forbidden(
                    FieldPath::new("sendInitialEvents"),
                    why,
                ));
            }
            if matching.is_none() {
                return forbid(
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                );
            }
        } else if watch && matching.is_some() {
            return forbid(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        self.version_match = match matching {
            None => None,
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some("Exact") if watch => {
                return refuse(FieldError::not_supported(path(), "Exact", ["NotOlderThan"]));
            }
            Some("Exact") => Some(VersionMatch::Exact),
            Some(other) => {
                let choices = ["Exact", "NotOlderThan", ""];
                return refuse(FieldError::not_supported(path(), other, choices));
            }
        };
        if !watch && self.version_match.is_some() {
            if version.is_none() {
                return forbid(
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                );
            }
            if self.continue_token.is_some() {
                return forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if self.version_match == Some(VersionMatch::Exact) && version == Some("0") {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                return forbid(why);
            }
        }
        self.resource_version = resource_version(version)?;
        Ok(self)
    }
}
