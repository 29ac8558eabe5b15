"""Reads export requests of OTLP with the published messages, and prints their spans as JSON lines.

python read_spans.py FILE...
"""

import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


for name in sys.argv[1:]:
    with open(name, "rb") as file:
        request = ExportTraceServiceRequest.FromString(file.read())
    for group in request.resource_spans:
        resource = {pair.key: value(pair.value) for pair in group.resource.attributes}
        for scoped in group.scope_spans:
            for span in scoped.spans:
                print(json.dumps({
                    "resource": resource,
                    "scope": scoped.scope.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": Span.SpanKind.Name(span.kind),
                    "nanoseconds": span.end_time_unix_nano - span.start_time_unix_nano,
                    "started": span.start_time_unix_nano,
                    "failed": span.status.code == 2,
                    "attributes": {pair.key: value(pair.value) for pair in span.attributes},
                }))
