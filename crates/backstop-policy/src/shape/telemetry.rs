//! `[telemetry]` and `gateway.access_log`: what is told to others of each request.

use crate::read::Need::{Default, Required};
use crate::read::table;
use crate::value::{AccessFormatChoice, AuthorizerUrl, NonEmptyText, Percent};

table! {
    /// What is told to others of requests as they go. None of it holds a request up: what cannot be taken at once is lost, and
    /// counted in `backstop_telemetry_dropped_total`.
    struct TelemetryTable {
        /// Where traces go.
        "traces" traces: TracesTable = Default("nowhere: `traceparent` is passed on as it came");
    }
}

table! {
    /// Traces by OpenTelemetry, sent as OTLP over HTTP in protobuf: one span of each request and one of each call that it led
    /// to.
    struct TracesTable {
        /// Where a collector takes them, in plain HTTP: `http://127.0.0.1:4318/v1/traces`.
        "url" url: AuthorizerUrl = Required;
        /// The share of those requests that is traced whose caller says nothing of it. A caller's `traceparent` decides for
        /// itself.
        "sample" sample: Percent = Default("`\"10%\"`");
    }
}

table! {
    /// One line for each request, when its last byte is through. A broken disk costs lines and no request; SIGHUP opens the file
    /// anew.
    struct AccessLogTable {
        /// `json`: one object a line. `common`: the Common Log Format of the NCSA and Apache.
        "format" format: AccessFormatChoice = Default("`\"json\"`");
        /// A file, to which lines are added, or `stdout`.
        "path" path: NonEmptyText = Default("`\"stdout\"`");
        /// Whether the query is written. Queries often hold what is secret.
        "query" query: bool = Default("`false`");
    }
}
