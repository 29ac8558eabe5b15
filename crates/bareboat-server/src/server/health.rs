//! `/healthz`, `/livez` and `/readyz`.

use crate::reply::{Response, plain_text};
use crate::request::query::Query;
use http::{HeaderValue, StatusCode, header};
use std::fmt::Write as _;
use std::sync::Arc;

/// A health check; the error is the reason for the log.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The checks of a server.
#[derive(Default)]
pub(crate) struct Health {
    /// Checks of liveness.
    live: Vec<(String, Check)>,
    /// Additional checks of readiness.
    ready: Vec<(String, Check)>,
}

impl Health {
    pub(crate) fn add_live(&mut self, name: impl Into<String>, check: Check) {
        self.live.push((name.into(), check));
    }

    pub(crate) fn add_ready(&mut self, name: impl Into<String>, check: Check) {
        self.ready.push((name.into(), check));
    }

    /// Answers `/healthz`, `/livez`, `/readyz`, and each of their checks.
    pub(crate) fn answer(&self, path: &str, query: &Query) -> Option<Response> {
        let mut segments = path.trim_matches('/').splitn(2, '/');
        let root = segments.next()?;
        let ready: &[(String, Check)] = match root {
            "readyz" | "healthz" => &self.ready,
            "livez" => &[],
            _ => return None,
        };
        let checks = || self.live.iter().chain(ready);
        if let Some(name) = segments.next() {
            let (_, check) = checks().find(|(known, _)| known == name)?;
            return Some(match check() {
                Ok(()) => ok("ok"),
                Err(why) => failed(format!("internal server error: {why}\n")),
            });
        }
        let excluded: Vec<&str> = query.all("exclude").collect();
        let mut report = String::new();
        let mut broken = Vec::new();
        for (name, check) in checks() {
            if excluded.contains(&name.as_str()) {
                let _ = writeln!(report, "[+]{name} excluded: ok");
                continue;
            }
            match check() {
                Ok(()) => {
                    let _ = writeln!(report, "[+]{name} ok");
                }
                Err(why) => {
                    tracing::warn!(check = name, %why, "a health check failed");
                    broken.push(name.clone());
                    let _ = writeln!(report, "[-]{name} failed: reason withheld");
                }
            }
        }
        if !broken.is_empty() {
            let _ = writeln!(report, "{root} check failed");
            return Some(failed(report));
        }
        if query.get("verbose").is_none() {
            return Some(ok("ok"));
        }
        let _ = writeln!(report, "{root} check passed");
        Some(ok(&report))
    }
}

fn ok(text: &str) -> Response {
    nosniff(plain_text(StatusCode::OK, text))
}

fn failed(text: String) -> Response {
    nosniff(plain_text(StatusCode::INTERNAL_SERVER_ERROR, text))
}

fn nosniff(mut response: Response) -> Response {
    response.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}
