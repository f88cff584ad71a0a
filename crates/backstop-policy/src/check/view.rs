//! The file as the checks see it: routes with their class, dependencies by name.

use crate::default;
use crate::read::At;
use crate::shape::{
    Common, DependencyTable, DirectTable, File, GatewayTable, OptionalTable, PublicReadTable, RouteEntry,
    RouteTable, StoreTable,
};
use crate::value::{MatchRule, Name};

/// The file as the checks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) file: &'a File,
}

/// A route with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteView<'a> {
    pub(crate) name: &'a At<Name>,
    pub(crate) entry: &'a RouteEntry,
}

/// A dependency with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DependencyView<'a> {
    pub(crate) name: &'a At<Name>,
    pub(crate) table: &'a At<DependencyTable>,
}

impl<'a> View<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self { file }
    }

    pub(crate) fn gateway(&self) -> Option<&'a GatewayTable> {
        self.file.gateway.as_ref().map(|gateway| &gateway.value)
    }

    pub(crate) fn store(&self) -> Option<&'a StoreTable> {
        self.file.store.as_ref().map(|store| &store.value)
    }

    pub(crate) fn routes(&self) -> impl Iterator<Item = RouteView<'a>> + Clone + use<'a> {
        let routes = self.file.route.iter().flat_map(|routes| &routes.value.entries);
        routes.map(|(name, entry)| RouteView { name, entry: &entry.value })
    }

    pub(crate) fn dependencies(&self) -> impl Iterator<Item = DependencyView<'a>> + Clone + use<'a> {
        let dependencies = self.file.dependency.iter().flat_map(|dependencies| &dependencies.value.entries);
        dependencies.map(|(name, table)| DependencyView { name, table })
    }

    pub(crate) fn route(&self, name: &str) -> Option<RouteView<'a>> {
        self.routes().find(|route| *route.name.value.0 == *name)
    }

    /// The dependency that a route asks first, if it is defined.
    pub(crate) fn dependency_of(&self, route: RouteView<'a>) -> Option<DependencyView<'a>> {
        let name = &route.common().dependency.as_ref()?.value;
        self.dependencies().find(|dependency| dependency.name.value == *name)
    }

    /// Every route name that is written, readable or not.
    pub(crate) fn route_names(&self) -> impl Iterator<Item = &'a str> {
        self.file.route.iter().flat_map(|routes| &routes.value.names).map(|name| &**name)
    }

    /// Every dependency name that is written, readable or not.
    pub(crate) fn dependency_names(&self) -> impl Iterator<Item = &'a str> {
        self.file.dependency.iter().flat_map(|dependencies| &dependencies.value.names).map(|name| &**name)
    }
}

impl<'a> RouteView<'a> {
    pub(crate) fn text(&self) -> &'a str {
        &self.name.value.0
    }

    pub(crate) fn common(&self) -> &'a Common {
        self.entry.common()
    }

    pub(crate) fn direct(&self) -> Option<&'a DirectTable> {
        match &self.entry.table {
            RouteTable::Direct(table) => Some(table),
            RouteTable::PublicRead(_) | RouteTable::Optional(_) => None,
        }
    }

    pub(crate) fn public_read(&self) -> Option<&'a PublicReadTable> {
        match &self.entry.table {
            RouteTable::PublicRead(table) => Some(table),
            RouteTable::Direct(_) | RouteTable::Optional(_) => None,
        }
    }

    pub(crate) fn optional(&self) -> Option<&'a OptionalTable> {
        match &self.entry.table {
            RouteTable::Optional(table) => Some(table),
            RouteTable::Direct(_) | RouteTable::PublicRead(_) => None,
        }
    }

    /// Its matches; none if they could not be read.
    pub(crate) fn matches(&self) -> &'a [At<MatchRule>] {
        self.common().matches.as_ref().map_or(&[], |matches| &matches.value.0)
    }

    pub(crate) fn in_flight(&self) -> Option<u32> {
        self.common().in_flight.as_ref().map(|count| count.value.0)
    }
}

impl DependencyView<'_> {
    pub(crate) fn connections(&self) -> u32 {
        self.table.value.connections.as_ref().map_or(default::CONNECTIONS, |count| count.value.0)
    }
}
