//! Records the span of one request.

use super::context::TRACEPARENT;
use super::{ChildSpan, RequestSpans, SpanExporter, SpanId, TraceContext, TraceId};
use crate::diagnostics::Trace;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// The maximum number of calls that one request records.
const MOST_CALLS: usize = 64;

/// The span of a request that runs.
pub(crate) struct Recorder {
    exporter: Arc<dyn SpanExporter>,
    context: TraceContext,
    parent: Option<SpanId>,
    started: (SystemTime, Instant),
    calls: Mutex<Vec<ChildSpan>>,
}

impl Recorder {
    /// Starts the span of a request that is sampled, or whose client sent a context, which other servers must get.
    pub(crate) fn start(
        exporter: &Arc<dyn SpanExporter>,
        headers: &HeaderMap,
    ) -> Option<Arc<Recorder>> {
        let parent = TraceContext::of(headers);
        let trace = parent.map_or_else(TraceId::random, |parent| parent.trace);
        let sampled = exporter.samples(trace, parent.map(|parent| parent.sampled));
        if !sampled && parent.is_none() {
            return None;
        }
        Some(Arc::new(Recorder {
            exporter: exporter.clone(),
            context: TraceContext {
                trace,
                span: SpanId::random(),
                sampled,
            },
            parent: parent.map(|parent| parent.span),
            started: (SystemTime::now(), Instant::now()),
            calls: Mutex::default(),
        }))
    }

    /// Returns whether the times of all stages are needed.
    pub(crate) fn is_sampled(&self) -> bool {
        self.context.sampled
    }

    /// Starts a call of another server.
    pub(crate) fn call(self: &Arc<Self>, name: String) -> Call {
        Call {
            recorder: self.clone(),
            id: SpanId::random(),
            name,
            from: Instant::now(),
        }
    }

    /// Ends the span of the request, and exports it.
    pub(crate) fn finish(&self, trace: &Trace, code: StatusCode) {
        if !self.context.sampled {
            return;
        }
        let mut children = trace.stages();
        children.append(&mut self.calls.lock());
        self.exporter.export(RequestSpans {
            context: self.context,
            parent: self.parent,
            name: trace.span_name(),
            started: self.started.0,
            took: self.started.1.elapsed(),
            code: code.as_u16(),
            attributes: trace.attributes(),
            children,
        });
    }
}

/// A call of another server that runs.
pub(crate) struct Call {
    recorder: Arc<Recorder>,
    id: SpanId,
    name: String,
    from: Instant,
}

impl Call {
    /// Returns the context for the other server.
    pub(crate) fn context(&self) -> TraceContext {
        TraceContext {
            span: self.id,
            ..self.recorder.context
        }
    }

    /// Adds the context to the headers of the call.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(value) = self.context().header() {
            headers.insert(TRACEPARENT, value);
        }
    }

    /// Ends the call.
    pub(crate) fn end(self, failed: bool) {
        let since = |at: Instant| at.saturating_duration_since(self.recorder.started.1);
        let mut calls = self.recorder.calls.lock();
        if self.recorder.context.sampled && calls.len() < MOST_CALLS {
            calls.push(ChildSpan {
                id: self.id,
                from: since(self.from),
                to: since(Instant::now()),
                name: self.name,
                is_call: true,
                failed,
                attributes: Vec::new(),
            });
        }
    }
}
