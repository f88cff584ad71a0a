use std::time::Duration;

use backstop::clock::{Clock, ManualClock};
use backstop::engine::engine::{DependencyState, RouteState};
use backstop::engine::failure::FailureKind;
use backstop::engine::outcome::Outcome;
use backstop::engine::policy::{Policy, RouteId};
use backstop::engine::time::{BootId, Mono, Now, Wall, WallTrust};
use backstop::fields::Speaker;
use backstop::{Backstop, BackstopLayer, BackstopService};
use backstop_store::Copies;
use http::Request;
use tower::{Layer, Service};

use super::catalog::{Catalog, Content, Does, Fault};
use super::reply::{Pending, Reply};

pub(crate) const THIS_BOOT: BootId = BootId([1; 16]);

/// Late enough after boot for copies to be older than any limit; 2026-11-30T00:00:00Z.
pub(crate) const START: Now = Now {
    mono: Mono::from_ns(1_000_000_000_000_000),
    wall: Wall::from_unix_ns(1_795_996_800_000_000_000),
    boot: THIS_BOOT,
    wall_trust: WallTrust::Synchronised,
};

pub(crate) type Classify = fn(&Fault) -> Option<FailureKind>;
pub(crate) type Layered = BackstopService<Catalog, Classify>;

pub(crate) fn classify(fault: &Fault) -> Option<FailureKind> {
    fault.0
}

pub(crate) struct Shop {
    pub(crate) backstop: Backstop,
    pub(crate) clock: ManualClock,
    pub(crate) catalog: Catalog,
    /// The first route.
    pub(crate) service: Layered,
}

impl Shop {
    pub(crate) fn open(policy: Policy) -> Self {
        Self::over(policy, Copies::memory(64 << 20), START)
    }

    /// A shop that keeps its copies there, at this moment.
    pub(crate) fn over(policy: Policy, copies: Copies, now: Now) -> Self {
        let (clock, hand) = Clock::manual(now);
        let speaker = Speaker { name: "backstop".into(), is_gateway: false };
        let backstop = Backstop::new(policy, clock, copies, speaker).unwrap();
        let catalog = Catalog::new();
        let route = backstop.route_by_id(RouteId(0), Box::new(|_| Vec::new()), "").unwrap();
        let service = BackstopLayer::new(route, classify as Classify).layer(catalog.clone());
        Self { backstop, clock: hand, catalog, service }
    }

    /// A request on its way.
    pub(crate) fn send(&self, request: Request<()>) -> Pending {
        self.send_with(request, "")
    }

    /// A request with content on its way; no field announces it.
    pub(crate) fn send_with(&self, request: Request<()>, content: &'static str) -> Pending {
        Pending::new(self.service.clone().call(request.map(|()| Content::from(content))))
    }

    /// A request that needs no waiting.
    pub(crate) fn ask(&self, request: Request<()>) -> Reply {
        self.send(request).reply()
    }

    /// What a request that needs no waiting comes to, in one line: see [`Reply::line`].
    pub(crate) fn line(&self, request: Request<()>) -> String {
        self.ask(request).line()
    }

    /// Has the catalog answer a request once, so that there is a copy.
    pub(crate) fn warm(&self, request: Request<()>, does: Does) {
        self.catalog.does(does);
        let reply = self.ask(request);
        assert_eq!((reply.status, reply.field("backstop")), (200, None), "warming up is a normal read");
    }

    pub(crate) fn later(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// In flight at the process, the route, its lane, and the dependency.
    pub(crate) fn in_flight(&self) -> [u32; 4] {
        let engine = self.backstop.engine();
        [
            engine.process().in_flight(),
            self.route().in_flight.in_flight(),
            self.route().fallback_lane.in_flight(),
            self.dependency().in_flight.in_flight(),
        ]
    }

    pub(crate) fn route(&self) -> &RouteState {
        &self.backstop.engine().routes()[0]
    }

    pub(crate) fn dependency(&self) -> &DependencyState {
        &self.backstop.engine().dependencies()[0]
    }

    pub(crate) fn total(&self, outcome: Outcome) -> u64 {
        self.route().tally.total(outcome)
    }

    /// Failures that the dependency is blamed for.
    pub(crate) fn failures(&self) -> u64 {
        self.dependency().tally.failures().iter().sum()
    }
}
