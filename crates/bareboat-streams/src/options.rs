//! The parameters of streaming requests, with the rules and messages of kube-apiserver.

use bareboat_api::Status;
use bareboat_api::field::{FieldError, FieldPath};
use bareboat_api::status::GroupResource;
use bareboat_api::time::Timestamp;
use bareboat_server::request::query::Query;
use std::fmt::Write as _;

/// Parses the query of a request.
pub(crate) fn query(uri: &http::Uri) -> Result<Query, Status> {
    Query::parse(uri.query().unwrap_or(""))
        .map_err(|_| Status::bad_request("the query of the URL cannot be decoded"))
}

/// Returns whether a parameter is true: it is present, and neither `0` nor `false`.
fn is_set(query: &Query, name: &str) -> bool {
    let value = query.get(name);
    value.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

fn number(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    match text.parse::<i64>() {
        Ok(number) => Ok(Some(number)),
        Err(error) => {
            let out_of_range = matches!(
                error.kind(),
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow
            );
            let why = if out_of_range {
                "value out of range"
            } else {
                "invalid syntax"
            };
            Err(Status::bad_request(format!(
                "strconv.ParseInt: parsing {text:?}: {why}"
            )))
        }
    }
}

/// The parameters of exec and attach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandOptions {
    /// Whether the client sends standard input.
    pub stdin: bool,
    /// Whether the client reads standard output.
    pub stdout: bool,
    /// Whether the client reads standard error. Never true with a terminal.
    pub stderr: bool,
    /// Whether the client has a terminal.
    pub tty: bool,
    /// The container; empty if the client did not name a container.
    pub container: String,
    /// The command of exec.
    pub command: Vec<String>,
}

impl CommandOptions {
    pub(crate) fn parse(query: &Query, subresource: &str) -> CommandOptions {
        // By default, a client that attaches reads both output and errors.
        let output = |name| match query.get(name) {
            None => subresource == "attach",
            Some(_) => is_set(query, name),
        };
        CommandOptions {
            stdin: is_set(query, "stdin"),
            stdout: output("stdout"),
            stderr: output("stderr"),
            tty: is_set(query, "tty"),
            container: query.get("container").unwrap_or("").to_owned(),
            command: query.all("command").map(str::to_owned).collect(),
        }
    }

    /// Returns the query for the kubelet.
    pub(crate) fn for_kubelet(&self) -> String {
        let mut out = String::new();
        for command in &self.command {
            add(&mut out, "command", command);
        }
        let flags = [
            ("error", self.stderr),
            ("input", self.stdin),
            ("output", self.stdout),
            ("tty", self.tty),
        ];
        for (name, _) in flags.iter().filter(|(_, set)| *set) {
            add(&mut out, name, "1");
        }
        out
    }

    /// Applies the rule for terminals: standard error is a part of the output.
    #[must_use]
    pub(crate) fn with_terminal_rules(mut self) -> CommandOptions {
        self.stderr = self.stderr && !self.tty;
        self
    }
}

/// The parameters of a log request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// The container; empty if the client did not name a container.
    pub container: String,
    /// Whether to continue as the log grows.
    pub follow: bool,
    /// Whether to read the log of the previous container.
    pub previous: bool,
    /// Whether each line starts with its time.
    pub timestamps: bool,
    /// The maximum age of lines in seconds.
    pub since_seconds: Option<i64>,
    /// The earliest time of lines, as in RFC 3339.
    pub since_time: Option<String>,
    /// The maximum number of lines, counted from the end.
    pub tail_lines: Option<i64>,
    /// The maximum number of bytes.
    pub limit_bytes: Option<i64>,
    /// Whether to skip the verification of the kubelet's certificate.
    pub insecure_backend: bool,
}

impl LogOptions {
    pub(crate) fn parse(query: &Query, name: &str) -> Result<LogOptions, Status> {
        let since_time = match query.get("sinceTime").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => {
                let time = Timestamp::parse(text).map_err(|_| {
                    Status::bad_request(format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                    ))
                })?;
                Some(time.print_seconds())
            }
        };
        let options = LogOptions {
            container: query.get("container").unwrap_or("").to_owned(),
            follow: is_set(query, "follow"),
            previous: is_set(query, "previous"),
            timestamps: is_set(query, "timestamps"),
            since_seconds: number(query, "sinceSeconds")?,
            since_time,
            tail_lines: number(query, "tailLines")?,
            limit_bytes: number(query, "limitBytes")?,
            insecure_backend: is_set(query, "insecureSkipTLSVerifyBackend"),
        };
        options.check(name, query.get("stream"))?;
        Ok(options)
    }

    fn check(&self, name: &str, stream: Option<&str>) -> Result<(), Status> {
        let mut errors = Vec::new();
        let path = FieldPath::new;
        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(path("tailLines"), lines, why));
        }
        if let Some(bytes) = self.limit_bytes.filter(|bytes| *bytes < 1) {
            let why = "must be greater than 0";
            errors.push(FieldError::invalid(path("limitBytes"), bytes, why));
        }
        match (self.since_seconds, &self.since_time) {
            (Some(_), Some(_)) => errors.push(FieldError::forbidden(
                FieldPath::nameless(),
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            )),
            (Some(seconds), None) if seconds < 1 => {
                let why = "must be greater than 0";
                errors.push(FieldError::invalid(path("sinceSeconds"), seconds, why));
            }
            _ => {}
        }
        if stream.is_some() {
            errors.push(FieldError::forbidden(
                path("stream"),
                "may not be specified",
            ));
        }
        if errors.is_empty() {
            return Ok(());
        }
        let what = GroupResource {
            group: "",
            resource: "PodLogOptions",
        };
        Err(Status::invalid(what, name, &errors))
    }

    /// Returns the query for the kubelet.
    pub(crate) fn for_kubelet(&self) -> String {
        let mut out = String::new();
        let text = |number: Option<i64>| number.map(|number| number.to_string());
        let flag = |set: bool| set.then(|| "true".to_owned());
        let all = [
            ("follow", flag(self.follow)),
            ("limitBytes", text(self.limit_bytes)),
            ("previous", flag(self.previous)),
            ("sinceSeconds", text(self.since_seconds)),
            ("sinceTime", self.since_time.clone()),
            ("tailLines", text(self.tail_lines)),
            ("timestamps", flag(self.timestamps)),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                add(&mut out, name, &value);
            }
        }
        out
    }
}

/// Returns the ports in the query of a port-forward.
pub(crate) fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let lists = query.all("ports").flat_map(|list| list.split(','));
    let given = lists.map(str::trim).filter(|port| !port.is_empty());
    given
        .map(|port| {
            let number: u16 = port.parse().map_err(|_| {
                Status::bad_request(format!(
                    "strconv.ParseInt: parsing {port:?}: invalid syntax"
                ))
            })?;
            Ok(number)
        })
        .collect()
}

/// Appends a parameter to a query.
pub(crate) fn add(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push('&');
    }
    escape(name, out);
    out.push('=');
    escape(value, out);
}

/// Appends `text` to `out`, escaped for a path or a query.
pub(crate) fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests;
