//! The file as the checks see it: routes with their class, dependencies and resources by name.

use std::ops::Range;

use backstop_engine::policy::Mode;

use crate::default;
use crate::read::{At, Context, List, OneOrMany};
use crate::shape::{
    AlternativeTable, AuthorizerTable, CachedReadTable, Common, ComposedTable, DependencyTable, EffectTable,
    File, GatewayTable, KeptTable, OptionalTable, ResourceTable, RetryTable, RouteEntry, RouteTable,
    StoreTable,
};
use crate::value::{Address, Language, MatchRule, Method, Name, PositiveTime, Template};

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

/// An authorizer with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorizerView<'a> {
    pub(crate) name: &'a At<Name>,
    pub(crate) table: &'a At<AuthorizerTable>,
}

/// A resource with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceView<'a> {
    pub(crate) name: &'a At<Name>,
    pub(crate) table: &'a At<ResourceTable>,
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

    pub(crate) fn resources(&self) -> impl Iterator<Item = ResourceView<'a>> + Clone + use<'a> {
        let resources = self.file.resource.iter().flat_map(|resources| &resources.value.entries);
        resources.map(|(name, table)| ResourceView { name, table })
    }

    pub(crate) fn authorizers(&self) -> impl Iterator<Item = AuthorizerView<'a>> + Clone + use<'a> {
        let authorizers = self.file.authorizer.iter().flat_map(|authorizers| &authorizers.value.entries);
        authorizers.map(|(name, table)| AuthorizerView { name, table })
    }

    /// Who says whether the callers of a route may, if that is defined.
    pub(crate) fn authorizer_of(&self, route: RouteView<'a>) -> Option<AuthorizerView<'a>> {
        let name = &route.common().authorizer.as_ref()?.value;
        self.authorizers().find(|authorizer| authorizer.name.value == *name)
    }

    /// Whether what is decided on a route is carried out.
    pub(crate) fn mode_of(&self, route: RouteView<'a>) -> Mode {
        let general = self.gateway().and_then(|gateway| gateway.mode.as_ref());
        route.common().mode.as_ref().or(general).map_or(Mode::Enforce, |mode| mode.value.0)
    }

    pub(crate) fn route(&self, name: &str) -> Option<RouteView<'a>> {
        self.routes().find(|route| *route.name.value.0 == *name)
    }

    /// Whether a route writes operations.
    pub(crate) fn has_effects(&self) -> bool {
        self.routes().any(|route| route.effect().is_some())
    }

    /// The dependency that a route asks first, if it is defined.
    pub(crate) fn dependency_of(&self, route: RouteView<'a>) -> Option<DependencyView<'a>> {
        self.dependency(&route.common().dependency.as_ref()?.value)
    }

    /// The dependency of this name, if it is defined.
    pub(crate) fn dependency(&self, name: &Name) -> Option<DependencyView<'a>> {
        self.dependencies().find(|dependency| dependency.name.value == *name)
    }

    /// The routes that ask this dependency, first or as their alternative.
    pub(crate) fn callers(
        &self,
        dependency: DependencyView<'a>,
    ) -> impl Iterator<Item = RouteView<'a>> + Clone {
        self.routes().filter(move |route| {
            let alternative =
                route.alternative().and_then(|alternative| alternative.value.dependency.as_ref());
            let mut asked = route.common().dependency.iter().chain(alternative);
            asked.any(|name| name.value == dependency.name.value)
        })
    }

    /// Every route name that is written, readable or not.
    pub(crate) fn route_names(&self) -> impl Iterator<Item = &'a str> {
        self.file.route.iter().flat_map(|routes| &routes.value.names).map(|name| &**name)
    }

    /// Every resource name that is written, readable or not.
    pub(crate) fn resource_names(&self) -> impl Iterator<Item = &'a str> {
        self.file.resource.iter().flat_map(|resources| &resources.value.names).map(|name| &**name)
    }

    /// Every authorizer name that is written, readable or not.
    pub(crate) fn authorizer_names(&self) -> impl Iterator<Item = &'a str> {
        self.file.authorizer.iter().flat_map(|authorizers| &authorizers.value.names).map(|name| &**name)
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

    /// Whether its class has no alternative at all, and so may write.
    pub(crate) fn may_write(&self) -> bool {
        matches!(&self.entry.table, RouteTable::Direct(_) | RouteTable::Guarded(_) | RouteTable::Effect(_))
    }

    /// Whether it is `guarded`.
    pub(crate) fn is_guarded(&self) -> bool {
        matches!(&self.entry.table, RouteTable::Guarded(_))
    }

    /// The routes whose copies its writes withdraw.
    pub(crate) fn withdraws(&self) -> Option<&'a At<OneOrMany<Name>>> {
        match &self.entry.table {
            RouteTable::Direct(table) => table.withdraws.as_ref(),
            RouteTable::Guarded(table) => table.withdraws.as_ref(),
            RouteTable::Effect(table) => table.withdraws.as_ref(),
            RouteTable::PublicRead(_)
            | RouteTable::CachedRead(_)
            | RouteTable::Optional(_)
            | RouteTable::Composed(_) => None,
        }
    }

    /// What it says about the answers that it keeps, if it keeps any.
    pub(crate) fn kept(&self) -> Option<&'a KeptTable> {
        match &self.entry.table {
            RouteTable::PublicRead(table) => Some(&table.kept),
            RouteTable::CachedRead(table) => Some(&table.kept),
            RouteTable::Direct(_)
            | RouteTable::Optional(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
        }
    }

    pub(crate) fn cached_read(&self) -> Option<&'a CachedReadTable> {
        match &self.entry.table {
            RouteTable::CachedRead(table) => Some(table),
            RouteTable::Direct(_)
            | RouteTable::PublicRead(_)
            | RouteTable::Optional(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
        }
    }

    /// The age limit of its copies.
    pub(crate) fn max_age(&self) -> Option<&'a At<PositiveTime>> {
        match &self.entry.table {
            RouteTable::PublicRead(table) => table.max_age.as_ref(),
            RouteTable::CachedRead(table) => table.local_copy.as_ref()?.value.max_age.as_ref(),
            RouteTable::Direct(_)
            | RouteTable::Optional(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
        }
    }

    pub(crate) fn optional(&self) -> Option<&'a OptionalTable> {
        match &self.entry.table {
            RouteTable::Optional(table) => Some(table),
            RouteTable::Direct(_)
            | RouteTable::PublicRead(_)
            | RouteTable::CachedRead(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
        }
    }

    pub(crate) fn composed(&self) -> Option<&'a ComposedTable> {
        match &self.entry.table {
            RouteTable::Composed(route) => Some(&route.table),
            RouteTable::Direct(_)
            | RouteTable::PublicRead(_)
            | RouteTable::CachedRead(_)
            | RouteTable::Optional(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
        }
    }

    pub(crate) fn effect(&self) -> Option<&'a EffectTable> {
        match &self.entry.table {
            RouteTable::Effect(table) => Some(table),
            RouteTable::Direct(_)
            | RouteTable::PublicRead(_)
            | RouteTable::CachedRead(_)
            | RouteTable::Optional(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_) => None,
        }
    }

    /// The name of its class.
    pub(crate) fn class(&self) -> &'static str {
        match &self.entry.table {
            RouteTable::Direct(_) => "direct",
            RouteTable::PublicRead(_) => "public_read",
            RouteTable::CachedRead(_) => "cached_read",
            RouteTable::Optional(_) => "optional",
            RouteTable::Composed(_) => "composed",
            RouteTable::Guarded(_) => "guarded",
            RouteTable::Effect(_) => "effect",
        }
    }

    /// The languages that it negotiates, if it does.
    pub(crate) fn languages(&self) -> Option<&'a At<List<Language>>> {
        match &self.entry.table {
            RouteTable::PublicRead(table) => table.kept.languages.as_ref(),
            RouteTable::CachedRead(table) => table.kept.languages.as_ref(),
            RouteTable::Optional(table) => table.languages.as_ref(),
            RouteTable::Direct(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
        }
    }

    /// The most specific of its rules that answers a GET of this path, whatever the parameters of the path are.
    pub(crate) fn rule_for(&self, path: &Template) -> Option<&'a MatchRule> {
        let reads = |method: &Method| match method {
            Method::Any => true,
            Method::Named(name) => **name == *"GET",
        };
        let rules = self.matches().iter().map(|rule| &rule.value);
        let answering = rules.filter(|rule| reads(&rule.method) && rule.template.takes(path).is_some());
        answering.max_by_key(|rule| rule.template.rank())
    }

    pub(crate) fn retry(&self) -> Option<&'a At<RetryTable>> {
        match &self.entry.table {
            RouteTable::Direct(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
            RouteTable::PublicRead(table) => table.kept.retry.as_ref(),
            RouteTable::CachedRead(table) => table.kept.retry.as_ref(),
            RouteTable::Optional(table) => table.retry.as_ref(),
        }
    }

    /// The other dependency that it asks, if any.
    pub(crate) fn alternative(&self) -> Option<&'a At<AlternativeTable>> {
        match &self.entry.table {
            RouteTable::Direct(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
            RouteTable::PublicRead(table) => table.kept.alternative.as_ref(),
            RouteTable::CachedRead(table) => table.kept.alternative.as_ref(),
            RouteTable::Optional(table) => table.alternative.as_ref(),
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

impl<'a> DependencyView<'a> {
    pub(crate) fn text(&self) -> &'a str {
        &self.name.value.0
    }

    /// Where it listens.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &'a Address> + use<'a> {
        self.table.value.url.iter().flat_map(|url| &url.value.0).map(|url| &url.value.0)
    }

    pub(crate) fn connections(&self) -> u32 {
        self.table.value.connections.as_ref().map_or(default::CONNECTIONS, |count| count.value.0)
    }

    /// Where its connections are written, or its name where they are not.
    pub(crate) fn connections_place(&self) -> Range<usize> {
        let written = self.table.value.connections.as_ref();
        written.map_or(self.name.bytes.clone(), |connections| connections.bytes.clone())
    }

    /// Whether this key is written but could not be read.
    pub(crate) fn is_unreadable(&self, key: &str, cx: &Context<'_>) -> bool {
        cx.is_unreadable(&format!("dependency.{}.{key}", self.text()))
    }

    /// The resources that it names.
    pub(crate) fn uses(&self) -> impl Iterator<Item = &'a At<Name>> + Clone + use<'a> {
        self.table.value.uses.iter().flat_map(|uses| &uses.value.0)
    }
}
