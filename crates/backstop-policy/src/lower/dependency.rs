//! `[dependency.NAME]`.

use backstop_engine::policy::{Dependency, DependencyId};

use super::{origin, position};
use crate::check::DependencyView;
use crate::default;
use crate::settings::{DependencySettings, HostHeader};

pub(super) fn dependency(index: usize, view: DependencyView<'_>) -> (Dependency, DependencySettings) {
    let table = &view.table.value;
    let name = &view.name.value.0;
    let queue = table.queue.as_ref().map_or(default::QUEUE, |queue| queue.value.0);
    let engine = Dependency {
        name: name.clone(),
        connections: view.connections(),
        queue,
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
        origin: view.table.origin,
    };
    (engine, settings)
}
