//! `[gateway]` and `[store]`.

use backstop_engine::policy::Mode;

use crate::default;
use crate::settings::{
    AccessFormat, AccessLogSettings, GatewaySettings, Ledger, Limits, RouteLimits, StoreSettings,
    TraceSettings, WebhookSettings,
};
use crate::shape::{AccessLogTable, GatewayTable, LimitsTable, RouteLimitsTable, StoreTable, TelemetryTable};

pub(super) fn gateway(table: Option<&GatewayTable>) -> GatewaySettings {
    let get = |table: &GatewayTable| GatewaySettings {
        name: table.name.as_ref().map_or(default::NAME.into(), |name| name.value.0.clone()),
        listen: table
            .listen
            .iter()
            .flat_map(|listen| &listen.value.0)
            .map(|address| address.value.0)
            .collect(),
        admin: table.admin.as_ref().map_or(default::ADMIN, |admin| admin.value.0),
        mode: table.mode.as_ref().map_or(Mode::Enforce, |mode| mode.value.0),
        in_flight: table.in_flight.as_ref().map_or(0, |count| count.value.0),
        threads: table.threads.as_ref().map(|threads| threads.value.0),
        trusted: table.trusted.iter().flat_map(|trusted| &trusted.value.0).map(|range| range.value).collect(),
        limits: limits(table.limits.as_ref().map(|limits| &limits.value)),
        buffer_memory: table.buffer_memory.as_ref().map_or(default::BUFFER_MEMORY, |size| size.value.0),
        exercise: table.exercise.as_ref().map(|share| (share.value.0, share.origin)),
        drain: table.drain.as_ref().map_or(default::DRAIN, |drain| drain.value.0),
        webhook: table
            .attention
            .as_ref()
            .and_then(|attention| attention.value.webhook.as_ref())
            .map(|url| WebhookSettings { address: url.value.address.clone(), path: url.value.path.clone() }),
        access_log: table.access_log.as_ref().map(|log| access_log(&log.value)),
        traces: None,
    };
    table.map_or_else(
        || GatewaySettings {
            name: default::NAME.into(),
            listen: Vec::new(),
            admin: default::ADMIN,
            mode: Mode::Enforce,
            in_flight: 0,
            threads: None,
            trusted: Vec::new(),
            limits: limits(None),
            buffer_memory: default::BUFFER_MEMORY,
            exercise: None,
            drain: default::DRAIN,
            webhook: None,
            access_log: None,
            traces: None,
        },
        get,
    )
}

fn access_log(table: &AccessLogTable) -> AccessLogSettings {
    let path = table.path.as_ref().map(|path| path.value.0.clone()).filter(|path| **path != *"stdout");
    AccessLogSettings {
        format: table.format.as_ref().map_or(AccessFormat::Json, |format| format.value.0),
        path,
        query: table.query.as_ref().is_some_and(|query| query.value),
    }
}

pub(super) fn traces(table: Option<&TelemetryTable>) -> Option<TraceSettings> {
    let traces = &table?.traces.as_ref()?.value;
    let url = &traces.url.as_ref()?.value;
    Some(TraceSettings {
        address: url.address.clone(),
        path: url.path.clone(),
        sample_per_mille: traces.sample.as_ref().map_or(default::TRACE_SAMPLE, |sample| sample.value.0),
    })
}

fn limits(table: Option<&LimitsTable>) -> Limits {
    let head = table.and_then(|table| table.head.as_ref());
    let head_time = table.and_then(|table| table.head_time.as_ref());
    let defaults = RouteLimits {
        body_bytes: default::BODY_BYTES,
        body_time: default::BODY_TIME,
        reply_time: default::REPLY_TIME,
    };
    Limits {
        head_bytes: head.map_or(default::HEAD_BYTES, |size| size.value.0),
        head_time: head_time.map_or(default::HEAD_TIME, |time| time.value.0),
        route: route_limits(table.map(|table| &table.route), defaults),
    }
}

/// A route's limits, the given ones where it sets none.
pub(super) fn route_limits(table: Option<&RouteLimitsTable>, otherwise: RouteLimits) -> RouteLimits {
    let Some(table) = table else { return otherwise };
    RouteLimits {
        body_bytes: table.body.as_ref().map_or(otherwise.body_bytes, |size| size.value.0),
        body_time: table.body_time.as_ref().map_or(otherwise.body_time, |time| time.value.0),
        reply_time: table.reply_time.as_ref().map_or(otherwise.reply_time, |time| time.value.0),
    }
}

/// `has_effects`: whether a route writes operations.
pub(super) fn store(table: Option<&StoreTable>, has_effects: bool) -> StoreSettings {
    let path = table.and_then(|table| table.path.as_ref());
    let snapshots = table.and_then(|table| table.snapshots.as_ref()).map(|snapshots| &snapshots.value);
    let memory = snapshots.and_then(|snapshots| snapshots.memory.as_ref());
    let disk = snapshots.and_then(|snapshots| snapshots.disk.as_ref());
    let ledger = table.and_then(|table| table.ledger.as_ref());
    StoreSettings {
        path: path.map_or(default::STORE_PATH.into(), |path| path.value.0.clone()),
        memory_bytes: memory.map_or(default::STORE_MEMORY, |size| size.value.0),
        disk_bytes: disk.map_or(default::STORE_DISK, |size| size.value.0),
        ledger: has_effects.then(|| ledger.map_or(Ledger::Sqlite, |choice| choice.value.0)),
    }
}
