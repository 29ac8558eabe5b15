//! Log lines as JSON: one object a line, with the fields of the event beside `time`, `level`, `target` and `message`, and
//! those of the spans around it under `span`.

use std::fmt;
use std::fmt::Write as _;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Fields as members of a JSON object, without its braces.
pub(super) struct Fields;

/// Events as JSON objects.
pub(super) struct Lines;

impl<'w> FormatFields<'w> for Fields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut members = Members::default();
        fields.record(&mut members);
        writer.write_str(&members.text)
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &tracing::span::Record<'_>,
    ) -> fmt::Result {
        let mut members = Members::default();
        fields.record(&mut members);
        if !current.fields.is_empty() && !members.text.is_empty() {
            current.fields.push(',');
        }
        current.fields.push_str(&members.text);
        Ok(())
    }
}

impl<S> FormatEvent<S, Fields> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Fields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Members::default();
        line.text("time", &jiff::Timestamp::now().to_string());
        line.text("level", event.metadata().level().as_str());
        line.text("target", event.metadata().target());
        event.record(&mut line);
        let mut around = String::new();
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<Fields>>();
            if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
                if !around.is_empty() {
                    around.push(',');
                }
                around.push_str(&fields.fields);
            }
        }
        if !around.is_empty() {
            line.member("span", format_args!("{{{around}}}"));
        }
        writeln!(writer, "{{{}}}", line.text)
    }
}

/// Members of an object, as they are written.
#[derive(Default)]
struct Members {
    text: String,
}

impl Members {
    /// Adds a member whose value is JSON already.
    fn member(&mut self, name: &str, json: fmt::Arguments<'_>) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        let _ = write!(self.text, "{}:{json}", quoted(name));
    }

    fn text(&mut self, name: &str, value: &str) {
        self.member(name, format_args!("{}", quoted(value)));
    }
}

/// Encodes a text as JSON, always on one line.
fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    bareboat::api::value::write_string(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field.name(), format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field.name(), format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field.name(), format_args!("{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match value.is_finite() {
            true => self.member(field.name(), format_args!("{value}")),
            false => self.text(field.name(), &value.to_string()),
        }
    }
}
