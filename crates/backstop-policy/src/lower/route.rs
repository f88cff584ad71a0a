//! `[route.NAME.CLASS]`.

use std::time::Duration;

use backstop_engine::policy::{
    Correct, DependencyId, Direct, FixedAnswer, Optional, Otherwise, PublicRead, Route, RouteClass, RouteId,
    RouteOrigins, StatusSet,
};

use super::gateway::route_limits;
use super::{authorizer, cache, composed, effect, origin, position, second, statuses};
use crate::check::{Evidence, RouteView, Secrets, StandIn, View};
use crate::default;
use crate::read::{At, List};
use crate::settings::{CorsSettings, GatewaySettings, HeaderEdits, RouteLimits, RouteSettings};
use crate::shape::{CorrectTable, CorsTable, HeaderEditsTable, KeptTable, RouteTable};
use crate::value::Language;

/// One route with what it refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lowering<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) gateway: &'a GatewaySettings,
    pub(super) route: RouteView<'a>,
    pub(super) secrets: &'a Secrets,
}

impl Lowering<'_> {
    /// The engine's part.
    pub(super) fn engine(&self, stand_in: Option<StandIn>, verified: Option<&Evidence>) -> Route {
        let common = self.route.common();
        let lane = match &self.route.entry.table {
            RouteTable::Direct(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => None,
            RouteTable::PublicRead(table) => table.kept.fallback_in_flight.as_ref(),
            RouteTable::CachedRead(table) => table.kept.fallback_in_flight.as_ref(),
            RouteTable::Optional(table) => table.fallback_in_flight.as_ref(),
        };
        let unavailable = self.route.kept().and_then(|read| read.unavailable_status.as_ref());
        Route {
            name: self.route.text().into(),
            function: common.function.as_ref().map(|function| function.value.0.clone()),
            dependency: self.dependency(),
            deadline: common.deadline.as_ref().map_or(Duration::ZERO, |deadline| deadline.value.0),
            in_flight: self.route.in_flight().unwrap_or(0),
            fallback_in_flight: lane.map_or(0, |lane| lane.value.0),
            mode: self.view.mode_of(self.route),
            declared: statuses(
                common.declared.iter().flat_map(|list| &list.value.0).map(|status| status.value.0),
            ),
            abandon_hold: common.abandon_hold.as_ref().map(|hold| hold.value.0),
            unavailable_status: unavailable.map(|status| status.value.0).unwrap_or_default(),
            retry: second::retry(self.route),
            alternative: second::alternative(self.view, self.route, verified),
            authorizer: authorizer::rules(self.view, self.route),
            class: self.class(stand_in),
            origins: RouteOrigins { fallback_in_flight: origin(lane), ..self.origins() },
        }
    }

    /// The gateway's part.
    pub(super) fn settings(&self, index: usize, verified: Option<&Evidence>) -> RouteSettings {
        let common = self.route.common();
        let ignore_cookie = self.route.kept().and_then(|read| read.ignore_cookie.as_ref());
        RouteSettings {
            id: RouteId(position(index)),
            name: self.route.text().into(),
            matches: self.route.matches().iter().map(|rule| rule.value.clone()).collect(),
            hosts: common
                .host
                .iter()
                .flat_map(|hosts| &hosts.value.0)
                .map(|host| host.value.clone())
                .collect(),
            strip_prefix: common.strip_prefix.as_ref().map(|prefix| prefix.value.0.clone()),
            request_headers: edits(common.request_headers.as_ref(), self.secrets),
            response_headers: edits(common.response_headers.as_ref(), self.secrets),
            limits: self.limits(),
            withdraws: self.withdraws(),
            parts: composed::settings(self.view, self.route),
            cors: common.cors.as_ref().map(|cors| self::cors(&cors.value)),
            verifies: common.authorizer.is_some(),
            authorizer: authorizer::of(self.view, self.route),
            ignore_cookie: ignore_cookie.is_some_and(|ignore| ignore.value),
            evidence: verified.and_then(|evidence| second::evidence(self.route, evidence)),
            origin: self.route.entry.at.origin,
        }
    }

    fn limits(&self) -> RouteLimits {
        let common = self.route.common();
        let of_gateway = self.gateway.limits.route;
        let limits = route_limits(common.limits.as_ref().map(|limits| &limits.value), of_gateway);
        match self.route.effect() {
            Some(_) => {
                RouteLimits { body_bytes: effect::body_bytes(common, of_gateway.body_bytes), ..limits }
            }
            None => limits,
        }
    }

    fn dependency(&self) -> DependencyId {
        let name = self.route.common().dependency.as_ref().map(|name| &name.value);
        let index = self.view.dependencies().position(|dependency| Some(&dependency.name.value) == name);
        DependencyId(position(index.unwrap_or(usize::MAX)))
    }

    fn withdraws(&self) -> Vec<RouteId> {
        let names = self.route.withdraws().into_iter().flat_map(|withdraws| &withdraws.value.0);
        let index = |name: &str| self.view.routes().position(|route| route.text() == name);
        names.filter_map(|name| index(&name.value.0)).map(|index| RouteId(position(index))).collect()
    }

    fn class(&self, stand_in: Option<StandIn>) -> RouteClass {
        match &self.route.entry.table {
            RouteTable::Direct(table) => {
                RouteClass::Direct(Direct { idle: table.idle.as_ref().map(|idle| idle.value.0) })
            }
            RouteTable::PublicRead(table) => RouteClass::PublicRead(kept(&table.kept, self.max_age())),
            RouteTable::CachedRead(table) => RouteClass::CachedRead(cache::cached_read(
                self.view,
                self.route,
                table,
                kept(&table.kept, self.max_age()),
            )),
            RouteTable::Optional(table) => {
                let nothing = FixedAnswer { status: 204, media_type: "".into(), body: Box::default() };
                let stand_in = stand_in.unwrap_or_else(|| Otherwise::Omit(nothing).into());
                RouteClass::Optional(Optional {
                    otherwise: stand_in.otherwise,
                    languages: languages(table.languages.as_ref()),
                    by_language: stand_in.by_language,
                })
            }
            RouteTable::Composed(_) => RouteClass::Composed(composed::rules(self.view, self.route)),
            RouteTable::Guarded(_) => RouteClass::Guarded,
            RouteTable::Effect(table) => RouteClass::Effect(Box::new(effect::rules(
                self.route,
                table,
                self.gateway.limits.route.body_bytes,
            ))),
        }
    }

    fn max_age(&self) -> Duration {
        let ttl = self.route.cached_read().and_then(|cached| cached.cache.as_ref()?.value.ttl.as_ref());
        self.route.max_age().or(ttl).map_or(Duration::ZERO, |age| age.value.0)
    }

    fn origins(&self) -> RouteOrigins {
        let common = self.route.common();
        let origins = RouteOrigins {
            route: self.route.entry.at.origin,
            deadline: origin(common.deadline.as_ref()),
            in_flight: origin(common.in_flight.as_ref()),
            declared: origin(common.declared.as_ref()),
            ..RouteOrigins::default()
        };
        match &self.route.entry.table {
            RouteTable::Direct(_)
            | RouteTable::Composed(_)
            | RouteTable::Guarded(_)
            | RouteTable::Effect(_) => origins,
            RouteTable::PublicRead(_) | RouteTable::CachedRead(_) => RouteOrigins {
                alternative: origin(self.route.max_age()),
                correct: origin(self.route.kept().and_then(|kept| kept.correct.as_ref())),
                gone: origin(self.route.kept().and_then(|kept| kept.gone.as_ref())),
                ..origins
            },
            RouteTable::Optional(table) => {
                RouteOrigins { alternative: origin(table.otherwise.as_ref()), ..origins }
            }
        }
    }
}

fn kept(table: &KeptTable, max_age: Duration) -> PublicRead {
    let gone = table.gone.as_ref().and_then(|gone| gone.value.status.as_ref());
    let choice = |flag: Option<&At<bool>>| flag.is_some_and(|flag| flag.value);
    PublicRead {
        max_age,
        after_restart: table.after_restart.as_ref().map(|choice| choice.value.0).unwrap_or_default(),
        gone: match gone {
            Some(gone) => statuses(gone.value.0.iter().map(|status| status.value.0)),
            None => StatusSet::of(&default::GONE),
        },
        incorrect: table.incorrect.as_ref().map(|choice| choice.value.0).unwrap_or_default(),
        override_origin: choice(table.override_origin.as_ref()),
        buffer_bytes: table.buffer.as_ref().map_or(default::BUFFER, |buffer| buffer.value.0),
        languages: languages(table.languages.as_ref()),
        key: table.key.iter().flat_map(|key| &key.value.0).map(|part| part.value.0.clone()).collect(),
        correct: table.correct.as_ref().map(|correct| self::correct(&correct.value)).unwrap_or_default(),
    }
}

fn languages(list: Option<&At<List<Language>>>) -> Vec<Box<str>> {
    list.into_iter().flat_map(|list| &list.value.0).map(|tag| tag.value.0.clone()).collect()
}

fn correct(table: &CorrectTable) -> Correct {
    let echo = table.echo.iter().flat_map(|echo| &echo.value.entries);
    Correct {
        media_type: table.media_type.as_ref().map(|media_type| media_type.value.0.clone()),
        has: table.has.iter().flat_map(|has| &has.value.0).map(|pointer| pointer.value.0.clone()).collect(),
        echo: echo.map(|(pointer, part)| (pointer.value.0.clone(), part.value.0.clone())).collect(),
    }
}

fn cors(table: &CorsTable) -> CorsSettings {
    let expose =
        table.expose.as_ref().map(|expose| expose.value.0.iter().map(|name| name.value.0.clone()).collect());
    CorsSettings {
        origins: table
            .origins
            .iter()
            .flat_map(|origins| &origins.value.0)
            .map(|at| at.value.0.clone())
            .collect(),
        credentials: table.credentials.as_ref().is_some_and(|credentials| credentials.value),
        expose: expose.unwrap_or_else(|| default::EXPOSE.iter().map(|&name| name.into()).collect()),
    }
}

fn edits(table: Option<&At<HeaderEditsTable>>, secrets: &Secrets) -> HeaderEdits {
    let Some(table) = table else { return HeaderEdits::default() };
    let set = table.value.set.iter().flat_map(|set| &set.value.entries);
    let remove = table.value.remove.iter().flat_map(|remove| &remove.value.0);
    HeaderEdits {
        set: set.map(|(name, value)| (name.value.0.clone(), secrets.value(&value.value))).collect(),
        remove: remove.map(|name| name.value.0.clone()).collect(),
    }
}
