//! Settings of distributed tracing.

use anyhow::{Context as _, Result, bail};
use bareboat::server::otlp::OtlpSettings;
use std::path::PathBuf;

/// Where spans of requests are sent. Variables of OpenTelemetry (`OTEL_…`) count where a flag is not given.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Distributed tracing")]
pub(crate) struct TracingSettings {
    /// Send spans of requests to the OpenTelemetry collector at this URL, by OTLP over HTTP: http://HOST:4318. Without it,
    /// OTEL_EXPORTER_OTLP_ENDPOINT counts
    #[arg(long, value_name = "URL", env = "BAREBOAT_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,

    /// The part of requests that are sampled, from 0 to 1, unless the client decided it in the header traceparent [default: 1]
    #[arg(long, value_name = "RATIO", env = "BAREBOAT_OTLP_SAMPLE_RATIO")]
    pub(crate) otlp_sample_ratio: Option<f64>,

    /// Trust a collector with a certificate of these authorities (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE", env = "BAREBOAT_OTLP_CA_FILE")]
    pub(crate) otlp_ca_file: Option<PathBuf>,

    /// Send these headers to the collector, one NAME: VALUE a line, such as credentials
    #[arg(long, value_name = "FILE", env = "BAREBOAT_OTLP_HEADERS_FILE")]
    pub(crate) otlp_headers_file: Option<PathBuf>,
}

impl TracingSettings {
    /// Returns where spans are sent; `None` if nowhere.
    pub(crate) fn exporter(&self) -> Result<Option<OtlpSettings>> {
        let get = |name: &str| std::env::var(name).ok();
        let mut settings = match &self.otlp_endpoint {
            None => match OtlpSettings::from_environment(&get)? {
                Some(settings) => settings,
                None => return Ok(None),
            },
            Some(endpoint) => {
                let mut settings = OtlpSettings::new(OtlpSettings::url_of(endpoint));
                settings.apply_environment(&get)?;
                settings
            }
        };
        settings.set_attribute("service.version", env!("CARGO_PKG_VERSION"));
        settings.set_attribute("host.name", &crate::aggregation::hostname());
        if let Some(ratio) = self.otlp_sample_ratio {
            if !(0.0..=1.0).contains(&ratio) {
                bail!("--otlp-sample-ratio {ratio} is not from 0 to 1");
            }
            settings.ratio = ratio;
        }
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path)
                .with_context(|| format!("{} cannot be read", path.display()))
        };
        if let Some(path) = &self.otlp_ca_file {
            settings.authorities = read(path)?;
        }
        if let Some(path) = &self.otlp_headers_file {
            let text = read(path)?;
            let lines = text.lines().enumerate();
            let lines = lines.filter(|(_, line)| !line.trim().is_empty());
            for (number, line) in lines {
                // The line may have a credential, so it is not quoted.
                let Some((name, value)) = line.split_once(':') else {
                    bail!(
                        "line {} of {} is not NAME: VALUE",
                        number + 1,
                        path.display()
                    );
                };
                let header = (name.trim().to_owned(), value.trim().to_owned());
                settings.headers.push(header);
            }
        }
        Ok(Some(settings))
    }
}
