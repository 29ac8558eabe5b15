//! The environment variables of OpenTelemetry.

use super::OtlpSettings;
use std::path::PathBuf;
use std::time::Duration;

/// A variable cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {why}")]
pub struct EnvironmentError {
    name: String,
    why: String,
}

impl OtlpSettings {
    /// Returns the settings of the variables `OTEL_…`; `None` without an endpoint, or if they switch tracing off.
    /// `get` returns the value of a variable.
    pub fn from_environment(
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<OtlpSettings>, EnvironmentError> {
        let get = |name: &str| get(name).filter(|text| !text.trim().is_empty());
        if is_off(&get) {
            return Ok(None);
        }
        let url = match (
            get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
            get("OTEL_EXPORTER_OTLP_ENDPOINT"),
        ) {
            (Some(whole), _) => whole,
            (None, Some(base)) => OtlpSettings::url_of(&base),
            (None, None) => return Ok(None),
        };
        let mut settings = OtlpSettings::new(url);
        settings.apply_environment(&get)?;
        Ok(Some(settings))
    }

    /// Returns the URL for spans below the endpoint of a collector.
    pub fn url_of(endpoint: &str) -> String {
        format!("{}/v1/traces", endpoint.trim().trim_end_matches('/'))
    }

    /// Takes everything but the endpoint from the variables `OTEL_…`.
    pub fn apply_environment(
        &mut self,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), EnvironmentError> {
        let get = |name: &str| get(name).filter(|text| !text.trim().is_empty());
        // Variables for traces come before those for everything.
        let either = |end: &str| {
            let names = [
                format!("OTEL_EXPORTER_OTLP_TRACES_{end}"),
                format!("OTEL_EXPORTER_OTLP_{end}"),
            ];
            names.into_iter().find_map(|name| Some((get(&name)?, name)))
        };
        if let Some((protocol, name)) = either("PROTOCOL")
            && protocol != "http/protobuf"
        {
            return Err(wrong(
                &name,
                format!("{protocol} is not supported; use http/protobuf"),
            ));
        }
        if let Some((text, name)) = either("HEADERS") {
            // Values may be credentials, so they are not quoted.
            let pairs = pairs(&text).ok_or_else(|| wrong(&name, "it is not a list of NAME=VALUE"));
            self.headers = pairs?;
        }
        if let Some((text, name)) = either("TIMEOUT") {
            self.timeout = milliseconds(&name, &text)?;
        }
        if let Some((path, name)) = either("CERTIFICATE") {
            let read = std::fs::read_to_string(PathBuf::from(&path));
            self.authorities = read.map_err(|error| wrong(&name, format!("{path}: {error}")))?;
        }
        if let Some(text) = get("OTEL_RESOURCE_ATTRIBUTES") {
            let name = "OTEL_RESOURCE_ATTRIBUTES";
            let pairs = pairs(&text).ok_or_else(|| wrong(name, "it is not a list of NAME=VALUE"));
            for (name, value) in pairs? {
                self.set_attribute(&name, &value);
            }
        }
        if let Some(name) = get("OTEL_SERVICE_NAME") {
            self.set_attribute("service.name", &name);
        }
        let number = |name: &str| -> Result<Option<usize>, EnvironmentError> {
            let text = get(name).map(|text| text.parse());
            text.transpose()
                .map_err(|_| wrong(name, "it is not a number"))
        };
        self.buffer = number("OTEL_BSP_MAX_QUEUE_SIZE")?.unwrap_or(self.buffer);
        self.batch = number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE")?.unwrap_or(self.batch);
        if let Some(text) = get("OTEL_BSP_SCHEDULE_DELAY") {
            self.delay = milliseconds("OTEL_BSP_SCHEDULE_DELAY", &text)?;
        }
        self.sampler(&get)
    }

    fn sampler(&mut self, get: &dyn Fn(&str) -> Option<String>) -> Result<(), EnvironmentError> {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        let Some(sampler) = get(NAME) else {
            return Ok(());
        };
        const ARG: &str = "OTEL_TRACES_SAMPLER_ARG";
        let (parents, kind) = match sampler.strip_prefix("parentbased_") {
            Some(kind) => (true, kind),
            None => (false, sampler.as_str()),
        };
        self.follows_parents = parents;
        self.ratio = match kind {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => match get(ARG).map(|text| text.parse()) {
                None => 1.0,
                Some(Ok(ratio)) if (0.0..=1.0).contains(&ratio) => ratio,
                Some(_) => return Err(wrong(ARG, "it is not a number from 0 to 1")),
            },
            _ => return Err(wrong(NAME, format!("{sampler} is not known"))),
        };
        Ok(())
    }
}

/// Returns whether the variables switch tracing off.
fn is_off(get: &dyn Fn(&str) -> Option<String>) -> bool {
    let off = get("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    off || get("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter == "none")
}

fn wrong(name: &str, why: impl Into<String>) -> EnvironmentError {
    EnvironmentError {
        name: name.to_owned(),
        why: why.into(),
    }
}

fn milliseconds(name: &str, text: &str) -> Result<Duration, EnvironmentError> {
    let number = text.trim().parse();
    let number = number.map_err(|_| wrong(name, "it is not a number of milliseconds"))?;
    Ok(Duration::from_millis(number))
}

/// Reads a list `NAME=VALUE,NAME=VALUE`. Values may be escaped as in URLs.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = crate::request::query::percent_decode(value.trim())?;
        Some((name.trim().to_owned(), value.into_owned()))
    };
    parts.map(pair).collect()
}
