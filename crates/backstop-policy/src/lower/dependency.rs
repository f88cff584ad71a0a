//! `[dependency.NAME]`.

use backstop_engine::policy::{Dependency, DependencyId};

use super::{health, origin, position, second};
use crate::check::{DependencyView, View};
use crate::default;
use crate::settings::{DependencySettings, HostHeader};

pub(super) fn dependency(
    file: &View<'_>,
    index: usize,
    view: DependencyView<'_>,
) -> (Dependency, DependencySettings) {
    let table = &view.table.value;
    let name = &view.name.value.0;
    let queue = table.queue.as_ref().map_or(default::QUEUE, |queue| queue.value.0);
    let engine = Dependency {
        name: name.clone(),
        connections: view.connections(),
        queue,
        uses: second::uses(file, view),
        breaker: table.breaker.as_ref().map(|breaker| health::breaker(breaker, file.slow(view))),
        recovery: table.breaker.as_ref().map(|_| health::recovery(table.recovery.as_ref())),
        connections_origin: origin(table.connections.as_ref()),
    };
    let settings = DependencySettings {
        id: DependencyId(position(index)),
        name: name.clone(),
        addresses: table.url.iter().flat_map(|url| &url.value.0).map(|url| url.value.0.clone()).collect(),
        connections: view.connections(),
        queue,
        connect: table.connect.as_ref().map_or(default::CONNECT, |connect| connect.value.0),
        host: table.host.as_ref().map_or(HostHeader::Client, |host| HostHeader::Fixed(host.value.0.clone())),
        idle: table.idle.as_ref().map_or(default::IDLE, |idle| idle.value.0),
        probe: table.probe.as_ref().map(health::probe),
        origin: view.table.origin,
    };
    (engine, settings)
}
